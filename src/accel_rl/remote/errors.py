"""What may go wrong between a client and a replay memory server, by type."""

STATUSES = {
    0: ("ok", ""),
    1: ("retry", "not now: the limiter does not allow it, or there is nothing to draw from yet"),
    2: ("bad_count", "a number of items is 0, or above its limit"),
    3: ("bad_length", "bytes do not fit the schema"),
    4: ("bad_priority", "priorities must be finite and at least 0"),
    5: ("bad_slot", "slots must be below the capacity"),
    6: ("bad_config", "a table's configuration is out of its range"),
    7: ("bad_name", "names must have 1 to 255 bytes and no control characters"),
    8: ("bad_version", "versions of a name must grow"),
    9: ("limit", "a limit of the server is reached"),
    10: ("none_newer", "there is no newer version"),
    11: ("out_of_memory", "the server has no memory for it"),
    16: ("busy", "another snapshot is being written"),
    17: ("io_error", "the server could not write or read a file"),
    18: ("damaged", "a checksum or a length of the snapshot does not agree"),
    19: ("truncated", "the snapshot ends too early"),
    20: ("newer_format", "the snapshot was written by a later version"),
    100: ("malformed", "the server could not read the frame"),
    101: ("bad_magic", "what came is not a frame"),
    102: ("bad_protocol", "the versions of the protocol differ"),
    103: ("unknown_op", "the server does not know the operation"),
    104: ("too_large", "the frame is above the server's limit"),
    105: ("bad_checksum", "the frame was changed on its way"),
    106: ("out_of_order", "the request does not belong in this state of the connection"),
    107: ("unauthenticated", "the secret is wrong"),
    108: ("wrong_session", "the token is not that of the connection's session"),
    109: ("no_such_table", "there is no such table"),
    110: ("table_differs", "there is a table of that name with another configuration"),
    111: ("repeated", "the request is too old to be told from one that was answered"),
    112: ("unavailable", "the server was not set up for it"),
}


class RemoteError(RuntimeError):
    """An error of the replay memory server or of the way to it.

    Attributes:
      status: the number that the server answered with, of `STATUSES`; 0 if none came.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class RequestRefused(RemoteError, ValueError):
    """What was asked for is out of its range; nothing was changed."""


class TryAgain(RemoteError):
    """The limiter did not allow it within the time that it was given; nothing was changed."""


class LimitReached(RemoteError):
    """A limit of the server on memory, tables, sessions or requests; nothing was changed."""


class NoSuchTable(RemoteError, LookupError):
    """There is no table of that name."""


class TableDiffers(RemoteError, ValueError):
    """There is a table of that name with another configuration."""


class SnapshotFailed(RemoteError, OSError):
    """A snapshot was not written, or not read; an older one is as it was."""


class AuthenticationFailed(RemoteError, PermissionError):
    """The secret is wrong, or the server does not know it."""


class ProtocolError(RemoteError):
    """One side sent what the other one does not take."""


class ConnectionLost(RemoteError, ConnectionError):
    """There is no connection, or it broke; what was asked for was not done, or changes nothing."""


class OutcomeUnknown(ConnectionLost):
    """No reply came, in time or before the connection broke, and nobody can ask for it again.

    Whether items were added, or priorities set, nobody can tell: a server that was started again
    holds what its last snapshot held. Over UDP, shared memory and DPDK's ports the first change
    after a restart raises it, too, as such a connection is not seen to end.
    """


_TYPES: dict[int, type[RemoteError]] = {
    1: TryAgain,
    9: LimitReached,
    11: LimitReached,
    **dict.fromkeys((16, 17, 18, 19, 20, 112), SnapshotFailed),
    **dict.fromkeys((100, 101, 102, 103, 104, 105, 106, 108, 111), ProtocolError),
    107: AuthenticationFailed,
    109: NoSuchTable,
    110: TableDiffers,
}


def error_of(status: int, what: str, detail: str = "") -> RemoteError:
    """The error for a status that the server answered `what`, as "push", with."""
    name, meaning = STATUSES.get(status, (f"status {status}", "of a later version"))
    text = f"{what}: {name}: {meaning}" + (f": {detail}" if detail else "")
    return _TYPES.get(status, RequestRefused)(text, status)
