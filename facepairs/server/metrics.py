"""The server's metrics, for Prometheus: counts, nothing about anyone."""

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from facepairs.verification.verdict import Verdict

SIDES_PX = (24, 36, 60, 100, 200, 400)
BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of one server.

    Args:
        admitted: Returns the number of requests that wait or are processed.
        scores: Rising scores, limits of the histogram of scores.
    """

    def __init__(self, admitted: Callable[[], float], scores: Sequence[float] = ()) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "facepairs_requests",
            "Requests.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "facepairs_request_seconds",
            "Time from a request to its answer.",
            ("route",),
            registry=self._registry,
            buckets=BUCKETS_S,
        )
        self.refused_photos = Counter(
            "facepairs_photos_refused",
            "Photos that could not be used.",
            ("kind",),
            registry=self._registry,
        )
        self._scores = Histogram(
            "facepairs_score",
            "Scores of pairs; the limits are those at which the model was measured.",
            registry=self._registry,
            buckets=scores,
        )
        self._sides = Histogram(
            "facepairs_face_px",
            "Sides of the squares around the faces of pairs, in pixels.",
            registry=self._registry,
            buckets=SIDES_PX,
        )
        self._hints = Counter(
            "facepairs_hints", "Hints on the photos of pairs.", ("kind",), registry=self._registry
        )
        queue = Gauge(
            "facepairs_queue", "Requests that wait or are worked on.", registry=self._registry
        )
        queue.set_function(admitted)
        ProcessCollector(registry=self._registry)

    def count(self, result: object) -> None:
        """Count the score of a verdict, and sizes of and hints on its faces; nothing else."""
        if not isinstance(result, Verdict):
            return
        self._scores.observe(result.score)
        for face in filter(None, (result.left, result.right)):
            if face.box is not None:
                self._sides.observe(face.box[2])
            for hint in face.hints:
                self._hints.labels(hint.kind).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
