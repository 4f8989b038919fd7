"""A verifier for a pair or two of photos, which is open sooner and slower afterwards."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from facepairs.faces.align import AlignedFace
from facepairs.images.photo import ImageSource
from facepairs.verification.loading import Model, open_scorer
from facepairs.verification.verifier import Verifier

T = TypeVar("T")


class Background(threading.Thread, Generic[T]):
    """Runs a function in a thread of its own, which starts at once.

    It needs less time to start than `concurrent.futures`.

    Args:
        function: What to run.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self._function = function
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Run the function."""
        try:
            self._value = self._function()
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    def result(self) -> T:
        """Wait for the function and return what it returned, or raise what it raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._value


class QuickVerifier(Verifier):
    """A verifier for a process that compares a pair or two.

    The network is opened in another thread, as it is and not optimised. What is wrong with it is
    raised when it is first used.

    Args:
        bundle: A bundle or an external embedder.
        threads: Threads of one call of the network; None for one per core.
    """

    def __init__(self, bundle: Model, threads: int | None = None) -> None:
        self.bundle = bundle
        self._again = partial(open_scorer, bundle, threads, quick=True)
        self._open = Background(self._again).result

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._open = self._again

    def detect_both(
        self, left: ImageSource, right: ImageSource, every: bool
    ) -> tuple[list[AlignedFace], list[AlignedFace]]:
        """Return the faces of two photos, which are read at the same time; see `detect`.

        Raises:
            BadImage: As in `detect`, and so for NoFace and TooSmallFace.
        """
        other = Background(partial(self.detect, right, every=every))
        return self.detect(left, every=every), other.result()
