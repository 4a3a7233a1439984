"""Error of the compiler driver."""


class DriverError(Exception):
    """Message for the user, or the exit status of a tool that has already printed one."""

    def __init__(self, message: str = "", status: int = 1) -> None:
        super().__init__(message)
        self.status = status
