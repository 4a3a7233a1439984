"""A Ray actor with cpprb's buffer and its client, for `replay_server.py`, in another interpreter.

A line of JSON on standard input for each request: {"fill", "item_bytes"} makes the actor,
{"operation", "calls"} is answered with the p50 of so many calls in microseconds.
"""

import json
import os
import sys
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import ray
from replay_server_items import make_items, p50


@ray.remote(num_cpus=0)
class Actor:
    """The buffer, in a process of Ray's."""

    def __init__(self, capacity, item_bytes):
        """Fill it."""
        sys.path.insert(0, str(Path(__file__).resolve().parent))
        from replay_server_buffer import Buffer

        self.buffer = Buffer(make_items(capacity, item_bytes))

    def push(self, priorities, columns):
        """Add items."""
        self.buffer.push(priorities, columns)

    def sample(self, batch):
        """Draws items."""
        return self.buffer.sample(batch)

    def update(self, slots, priorities):
        """Set priorities."""
        self.buffer.update(slots, priorities)


def main():
    """Answers requests until the input ends."""
    ray.init(
        "local",  # not a cluster that somebody left
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    print(json.dumps({"version": ray.__version__}), flush=True)
    calls = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "fill" in request:
            items = make_items(request["fill"], request["item_bytes"])
            actor = Actor.remote(request["fill"], request["item_bytes"])
            some = list(items.part(0, 50).values())
            slots = ray.get(actor.sample.remote(64))[0].copy()
            first, priorities = items.priorities[:50], np.ones(64, np.float32)
            calls = {
                "push 50": lambda a=actor, s=some, p=first: a.push.remote(p, s),
                "sample 64": lambda a=actor: a.sample.remote(64),
                "sample 512": lambda a=actor: a.sample.remote(512),
                "update 64": lambda a=actor, s=slots, p=priorities: a.update.remote(s, p),
            }
            print(json.dumps({"filled": True}), flush=True)
        else:
            call = calls[request["operation"]]
            found = p50(lambda c=call: ray.get(c()), request["calls"])
            print(json.dumps({"p50": found}), flush=True)


if __name__ == "__main__":
    main()
