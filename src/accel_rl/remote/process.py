"""Replay server in a separate process."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

from accel_rl.remote.closing import Closing
from accel_rl.remote.module import native
from accel_rl.remote.server import ReplayServer

_STOP_SECONDS = 10.0


class ReplayServerProcess(Closing):
    """`ReplayServer`, with the same arguments, in a child process that ends with this one.

    Attributes:
      addresses: addresses for clients.
      process: the child process.
    """

    def __init__(self, host: str | None = "127.0.0.1", port: int = 0, **arguments: Any) -> None:
        """Start the server and wait until it listens.

        Raises:
          RuntimeError: if the server ends instead; with its message.
          ImportError: if the server was not built.
        """
        native()
        arguments |= {"host": host, "port": port}
        for name in ("unix_path", "shm_path", "snapshot_path", "tls_certificate", "tls_key"):
            if arguments.get(name) is not None:
                arguments[name] = os.fspath(arguments[name])
        if arguments.get("secret") is not None:
            arguments["secret"] = arguments["secret"].hex()
        order = json.dumps(arguments)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from accel_rl.remote.process import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.addresses: list[str] = self._start(order)
        except BaseException:
            self.close()
            raise

    def _start(self, order: str) -> list[str]:
        """Send the arguments; return the addresses that the server listens on."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # Not on the command line, which every user can read. The pipe stays open: its end tells the
        # child that this process has ended.
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"the replay server did not start: {answer['error']}")
        return answer["addresses"]

    @property
    def address(self) -> str:
        """First of the addresses."""
        return self.addresses[0]

    def close(self) -> None:
        """End the process. Idempotent."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and ends this one
    # Keep the pipe for answers only: libraries such as DPDK print to standard output.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arguments = json.loads(sys.stdin.readline())
    if arguments.get("secret") is not None:
        arguments["secret"] = bytes.fromhex(arguments["secret"])
    try:
        server = ReplayServer(**arguments)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=pipe, flush=True)
        return
    with server:
        if not server.addresses:
            why = "host, unix_path, shm_path or dpdk must say where to listen"
            print(json.dumps({"error": f"ValueError: {why}"}), file=pipe, flush=True)
            return
        print(json.dumps({"addresses": server.addresses}), file=pipe, flush=True)
        sys.stdin.read()
