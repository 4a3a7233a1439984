"""Process of an actor or of one of several learners; its orders are a line of JSON on stdin."""

import base64
import json
import os
import sys
import threading
from typing import Any

import jax
import numpy as np

from accel_rl.io.loggers import Row
from accel_rl.remote.apex import replicas
from accel_rl.remote.apex.acting import obey
from accel_rl.remote.apex.learning import run_learner
from accel_rl.remote.apex.training import ApexTraining


def main(role: str) -> None:
    """Run an "actor" or a "learner" until it has ended, or standard input has."""
    # Keep standard output for rows; output of libraries such as Gloo goes to standard error.
    rows = os.dup(1)
    if role == "learner":
        os.dup2(2, 1)
    order = sys.stdin.readline()
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    if role == "actor":
        obey(order, ended)
    else:
        _learn(json.loads(order), ended, rows)


def _learn(orders: dict[str, Any], ended: threading.Event, rows: int) -> None:
    """Run a learner; the first writes rows to a file descriptor and the final state to a file."""
    output = os.fdopen(rows, "w")
    replicas.join(orders["coordinator"], orders["number"], orders["count"])
    first = orders["number"] == 0

    def tell(row: Row) -> None:
        values: dict[str, Any] = {name: np.asarray(value).tolist() for name, value in row.items()}
        print(json.dumps(values), file=output, flush=True)

    done = run_learner(
        ApexTraining.from_tables(orders["training"]),
        orders["address"],
        orders["steps"],
        secret=None if orders["secret"] is None else base64.b64decode(orders["secret"]),
        period=orders["period"],
        ended=lambda: "told to stop" if ended.is_set() else None,
        on_row=tell if first else None,
    )
    if first:
        with open(orders["state"], "wb") as file:
            np.savez(file, *[np.asarray(leaf) for leaf in jax.tree.leaves(done.state)])
    jax.distributed.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
