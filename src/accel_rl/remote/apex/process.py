"""Process of an actor or of one of several learners; its orders are a line of JSON on stdin."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from accel_rl.io.loggers import Row
from accel_rl.remote.apex import replicas, states
from accel_rl.remote.apex.acting import obey
from accel_rl.remote.apex.learning import run_learner
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.train import TrainState

GRACE = 2.0  # seconds for a learner whose standard input has ended


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
        if role == "learner":  # which may wait for a server that ended with who started both
            time.sleep(GRACE)
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if role == "actor":
        obey(order, ended)
    else:
        _learn(json.loads(order), ended, rows)


def _learn(orders: dict[str, Any], ended: threading.Event, rows: int) -> None:
    """Run a learner; the first writes rows, and names of files with states, to a descriptor."""
    output = os.fdopen(rows, "w")
    if orders["count"] > 1:
        replicas.join(orders["coordinator"], orders["number"], orders["count"])
    first = orders["number"] == 0
    training = ApexTraining.from_tables(orders["training"])

    def tell(row: Row) -> None:
        values: dict[str, Any] = {name: np.asarray(value).tolist() for name, value in row.items()}
        print(json.dumps({"row": values}), file=output, flush=True)

    def keep(state: TrainState) -> None:
        path = Path(orders["folder"]) / f"{int(state.iteration)}.npz"
        states.write(path, state)
        print(json.dumps({"state": str(path)}), file=output, flush=True)

    run_learner(
        training,
        orders["address"],
        orders["steps"],
        secret=None if orders["secret"] is None else bytes.fromhex(orders["secret"]),
        period=orders["period"],
        reconnect=orders["reconnect"],
        life=orders["life"],
        start=None if orders["start"] is None else states.read(Path(orders["start"]), training),
        every=orders["every"],
        ended=lambda: "told to stop" if ended.is_set() else None,
        on_row=tell if first else None,
        on_state=keep if first else None,
    )
    if orders["count"] > 1:
        jax.distributed.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
