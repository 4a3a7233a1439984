"""Process of one of several learners; reads its orders as a line of JSON from standard input."""

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
from accel_rl.remote.apex.learning import run_learner
from accel_rl.remote.apex.training import ApexTraining


def main() -> None:
    """Run a learner; the first writes rows to standard output and the final state to a file."""
    # Keep standard output for rows; output of libraries such as Gloo goes to standard error.
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    orders = json.loads(sys.stdin.readline())
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    replicas.join(orders["coordinator"], orders["number"], orders["count"])
    first = orders["number"] == 0

    def tell(row: Row) -> None:
        values: dict[str, Any] = {name: np.asarray(value).tolist() for name, value in row.items()}
        print(json.dumps(values), file=rows, flush=True)

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
    main()
