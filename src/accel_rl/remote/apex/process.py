"""Process of a local actor; reads its orders as a line of JSON from standard input."""

import sys
import threading

from accel_rl.remote.apex.acting import obey


def main() -> None:
    """Run an actor until standard input ends."""
    order = sys.stdin.readline()
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    obey(order, ended)


if __name__ == "__main__":
    main()
