"""Exceptions of replay clients, and the server's status codes."""

NO_SUCH_TABLE = 109

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
    NO_SUCH_TABLE: ("no_such_table", "there is no such table"),
    110: ("table_differs", "there is a table of that name with another configuration"),
    111: ("repeated", "the request is too old to be told from one that was answered"),
    112: ("unavailable", "the server was not set up for it"),
}


class RemoteError(RuntimeError):
    """Error of the replay server or of the connection to it.

    Attributes:
      status: status code of the server's reply, a key of `STATUSES`; 0 without a reply.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class RequestRefused(RemoteError, ValueError):
    """Request with an argument out of range; nothing was changed."""


class TryAgain(RemoteError):
    """Request that the limiter did not allow in time; nothing was changed."""


class LimitReached(RemoteError):
    """Request beyond a server limit (memory, tables, sessions, requests); nothing was changed."""


class NoSuchTable(RemoteError, LookupError):
    """Table that does not exist."""


class TableDiffers(RemoteError, ValueError):
    """Existing table of the same name with another configuration."""


class SnapshotFailed(RemoteError, OSError):
    """Snapshot that was not written or not read; an older one is unchanged."""


class AuthenticationFailed(RemoteError, PermissionError):
    """Wrong secret, or a server that does not know it."""


class ProtocolError(RemoteError):
    """Message that violates the protocol."""


class ConnectionLost(RemoteError, ConnectionError):
    """Missing or broken connection; the request was not executed, or changes nothing."""


class OutcomeUnknown(ConnectionLost):
    """Change request whose reply was lost and which cannot be sent again.

    The reply timed out, or the connection broke before it. Items may or may not have been added,
    priorities set; a restarted server holds the contents of its last snapshot. Over UDP, shared
    memory and DPDK ports the first change after a server restart raises this error, too, because
    the client does not see such a connection end.
    """


_TYPES: dict[int, type[RemoteError]] = {
    1: TryAgain,
    9: LimitReached,
    11: LimitReached,
    **dict.fromkeys((16, 17, 18, 19, 20, 112), SnapshotFailed),
    **dict.fromkeys((100, 101, 102, 103, 104, 105, 106, 108, 111), ProtocolError),
    107: AuthenticationFailed,
    NO_SUCH_TABLE: NoSuchTable,
    110: TableDiffers,
}


def error_of(status: int, what: str, detail: str = "") -> RemoteError:
    """Return the exception for the status of a reply to the request `what`, such as "push"."""
    name, meaning = STATUSES.get(status, (f"status {status}", "of a later version"))
    text = f"{what}: {name}: {meaning}" + (f": {detail}" if detail else "")
    return _TYPES.get(status, RequestRefused)(text, status)
