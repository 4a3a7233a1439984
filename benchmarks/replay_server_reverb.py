"""A Reverb server and its client, for `replay_server.py`, in another interpreter.

Answers lines of JSON as `replay_server_ray.py` does. The server is a process of its own; with the
argument "serve" this file is that process. Pushes go by a trajectory writer that is flushed,
samples come by Reverb's TensorFlow dataset, which fetches ahead: the faster of its ways.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import reverb
import tensorflow as tf
from replay_server_items import ALPHA, make_items, p50

PUSHED = 50


def serve(capacity, item_bytes):
    """Serve until standard input ends, after printing the port."""
    items = make_items(capacity, item_bytes)
    table = reverb.Table(
        name="t",
        sampler=reverb.selectors.Prioritized(ALPHA),
        remover=reverb.selectors.Fifo(),
        max_size=capacity,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={name: tf.TensorSpec((1, *shape), tf.float32) for name, shape in items.columns},
    )
    server = reverb.Server(tables=[table])
    print(json.dumps({"port": server.port}), flush=True)
    sys.stdin.read()
    server.stop()


class Reverb:
    """A server, full, and calls of its client."""

    def __init__(self, capacity, item_bytes):
        """Start and fills it."""
        self.process = subprocess.Popen(
            [sys.executable, __file__, "serve", str(capacity), str(item_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        port = json.loads(self.process.stdout.readline())["port"]
        self.address = f"localhost:{port}"
        self.client = reverb.Client(self.address)
        self.items = make_items(capacity, item_bytes)
        self.writer = self.client.trajectory_writer(num_keep_alive_refs=1)
        for first in range(0, capacity, PUSHED):
            self.push(first)
        self.samples = {batch: self.dataset(batch) for batch in (64, 512)}
        drawn = next(self.samples[64])
        self.keys = [int(key) for key in np.asarray(drawn.info.key).reshape(-1)]

    def dataset(self, batch):
        """Batches, without end."""
        rows = reverb.TrajectoryDataset.from_table_signature(
            self.address, "t", max_in_flight_samples_per_worker=2 * batch
        )
        return rows.batch(batch).as_numpy_iterator()

    def push(self, first=0):
        """Add items."""
        part = self.items.part(first, PUSHED)
        for row in range(len(next(iter(part.values())))):
            self.writer.append({name: column[row] for name, column in part.items()})
            history = self.writer.history
            self.writer.create_item(
                "t", float(self.items.priorities[row]), {name: history[name][-1:] for name in part}
            )
        self.writer.flush()

    def calls(self):
        """By operation."""
        new = dict.fromkeys(self.keys, 1.0)
        return {
            "push 50": self.push,
            "sample 64": lambda: next(self.samples[64]),
            "sample 512": lambda: next(self.samples[512]),
            "update 64": lambda: self.client.mutate_priorities("t", new),
        }

    def close(self):
        """End the server."""
        self.samples.clear()
        self.writer.close()
        self.process.stdin.close()
        self.process.wait()


def hush():
    """Leaves standard error to Python: Reverb's library warns of each push that it is large."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def main():
    """Answers requests until the input ends."""
    hush()
    print(json.dumps({"version": importlib.metadata.version("dm-reverb")}), flush=True)
    server, calls = None, {}
    for line in sys.stdin:
        request = json.loads(line)
        if "fill" in request:
            if server is not None:
                server.close()
            server = Reverb(request["fill"], request["item_bytes"])
            calls = server.calls()
            print(json.dumps({"filled": True}), flush=True)
        else:
            call = calls[request["operation"]]
            if request["operation"].startswith("sample"):
                p50(call, request["calls"])  # what was fetched ahead while nobody asked
            found = p50(call, request["calls"])
            print(json.dumps({"p50": found}), flush=True)
    if server is not None:
        server.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
