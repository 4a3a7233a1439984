"""Rivals of the replay server: started, filled and called as `replay_server.py` asks."""

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common import warn
from interpreter import Interpreter
from replay_server_items import Items

HERE = Path(__file__).resolve().parent
SHUT_DOWN_SECONDS = 10.0
Calls = dict[str, Callable[[], object]]


@contextlib.contextmanager
def zmq_rival(items: Items, folder: Path) -> Iterator[Calls]:
    """Return a process with cpprb's buffer, behind a REP socket of pyzmq over TCP."""
    import zmq

    del folder
    script = str(HERE / "replay_server_zmq.py")
    item_bytes = sum(4 * int(np.prod(shape)) for _, shape in items.columns)
    process = subprocess.Popen(
        [sys.executable, script, str(items.capacity), str(item_bytes)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    try:
        socket.connect(f"tcp://127.0.0.1:{int(process.stdout.readline())}")
        some = list(items.part(0, 50).values())
        widths = [(-1, *shape) for _, shape in items.columns]

        def ask(*parts: object) -> list[memoryview]:
            socket.send_multipart(parts)
            return [frame.buffer for frame in socket.recv_multipart(copy=False)]

        def sample(batch: int) -> list[np.ndarray]:
            answer = ask(b"sample", batch.to_bytes(4, "little"))
            columns = [np.frombuffer(part, np.float32) for part in answer[1:]]
            shaped = [c.reshape(w) for c, w in zip(columns[1:], widths, strict=True)]
            return [np.frombuffer(answer[0], np.int64), columns[0], *shaped]

        slots, priorities = sample(64)[0].copy(), np.ones(64, np.float32)
        yield {
            "push 50": lambda: ask(b"push", items.priorities[:50], *some),
            "sample 64": lambda: sample(64),
            "sample 512": lambda: sample(512),
            "update 64": lambda: ask(b"update", slots, priorities),
        }
        ask(b"stop")
    finally:
        context.destroy(linger=0)
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def redis_rival(items: Items, folder: Path) -> Iterator[Calls]:
    """Return a Redis server on a Unix socket; items are strings, priorities a sorted set."""
    import redis

    server = shutil.which("redis-server")
    if server is None:
        raise FileNotFoundError("there is no redis-server (Debian's package of that name)")
    path = folder / "redis"
    process = subprocess.Popen(
        [server, "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + SHUT_DOWN_SECONDS
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.05)
        client = redis.Redis(unix_socket_path=str(path))
        random = np.random.default_rng(0)
        held, cursor = 0, 0

        def push(count: int = 50) -> None:
            nonlocal held, cursor
            part = items.part(cursor, count)
            rows = np.concatenate([c.reshape(len(c), -1) for c in part.values()], axis=1)
            keys = [cursor + n for n in range(len(rows))]
            pipe = client.pipeline(transaction=False)
            pipe.mset({key: row.tobytes() for key, row in zip(keys, rows, strict=True)})
            scores = items.priorities[: len(keys)].tolist()
            pipe.zadd("priorities", dict(zip(keys, scores, strict=True)))
            pipe.execute()
            cursor = (cursor + len(keys)) % items.capacity
            held = max(held, cursor, len(keys))

        def sample(batch: int) -> np.ndarray:
            values = client.mget(random.integers(0, held, batch).tolist())
            return np.frombuffer(b"".join(values), np.float32).reshape(batch, -1)

        for _ in range(0, items.capacity - 50, 50):
            push()
        names = [str(slot) for slot in range(64)]
        yield {
            "push 50": push,
            "sample 64": lambda: sample(64),
            "sample 512": lambda: sample(512),
            "update 64": lambda: client.zadd("priorities", dict.fromkeys(names, 1.0)),
        }
    finally:
        process.terminate()
        process.wait(SHUT_DOWN_SECONDS)


class OtherRival:
    """A system, and its client, in another interpreter."""

    def __init__(self, name: str, python: str | None, script: str, packages: str) -> None:
        """Start the script, and warns if it cannot; `packages` is what the interpreter needs."""
        self.name = name
        self._interpreter = None
        if python is None:
            warn(f"{name} does not run, its claims are null: give an interpreter with {packages}")
            return
        try:
            self._interpreter = Interpreter(python, HERE / script)
        except (OSError, RuntimeError) as error:
            warn(f"{name} did not start, and its claims are null: {error}")

    def fill(self, items: Items) -> bool:
        """Start one that holds such items; whether there is one."""
        if self._interpreter is None:
            return False
        item_bytes = sum(4 * int(np.prod(shape)) for _, shape in items.columns)
        self._interpreter.ask({"fill": items.capacity, "item_bytes": item_bytes})
        return True

    def p50(self, operation: str, calls: int) -> float | None:
        """Microseconds."""
        if self._interpreter is None:
            return None
        return float(self._interpreter.ask({"operation": operation, "calls": calls})["p50"])

    def close(self) -> None:
        """End it."""
        if self._interpreter is not None:
            self._interpreter.close()
