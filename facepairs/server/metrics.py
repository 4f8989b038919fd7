"""The server's metrics, for Prometheus."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of one server.

    Args:
        admitted: Returns the number of requests that wait or are processed.
    """

    def __init__(self, admitted: Callable[[], float]) -> None:
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
        queue = Gauge(
            "facepairs_queue", "Requests that wait or are worked on.", registry=self._registry
        )
        queue.set_function(admitted)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
