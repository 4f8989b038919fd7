"""The error for a request that cannot be answered."""


class RequestProblem(Exception):
    """A request that cannot be answered as it is.

    Attributes:
        status: HTTP's status.
        kind: The kind of problem, for programs.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind
