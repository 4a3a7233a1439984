"""Errors of the driver."""


class DriverError(Exception):
    """A message for the user, or the exit status of a tool that has already given one."""

    def __init__(self, message: str = "", status: int = 1) -> None:
        super().__init__(message)
        self.status = status
