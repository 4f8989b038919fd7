"""The error for an image that cannot be used, and the kinds of reasons."""

from typing import Literal

from facepairs.errors import BadImage

Problem = Literal[
    "no_permission", "not_image", "too_large", "unreadable", "unsupported", "zero_byte"
]


class ImageProblem(BadImage):
    """An image that cannot be read.

    Attributes:
        problem: The kind of problem.
        reason: The problem in words, and what to do about it.
    """

    def __init__(self, name: str, problem: Problem = "unreadable", reason: str = "") -> None:
        super().__init__(f"{name}: {reason}" if reason else name)
        self.problem, self.reason = problem, reason
