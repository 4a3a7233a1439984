"""The process of a local actor; its orders come as a line of JSON on standard input."""

import base64
import json
import sys
import threading

from accel_rl.remote.apex.acting import run_actor
from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.errors import ConnectionLost


def main() -> None:
    """Acts until standard input ends."""
    orders = json.loads(sys.stdin.readline())
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    secret = None if orders["secret"] is None else base64.b64decode(orders["secret"])
    try:
        run_actor(
            ApexSettings(**orders["settings"]),
            orders["address"],
            orders["number"],
            secret=secret,
            going=lambda: not ended.is_set(),
        )
    except ConnectionLost:
        if not ended.wait(1.0):  # the server may be closed a moment before the actors are
            raise


if __name__ == "__main__":
    main()
