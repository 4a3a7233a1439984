"""Learner or actor of an Ape-X training on several machines: where nothing else starts them.

    python train.py learner --server tcp://HOST:7077 --secret-file secret --out runs/apex
    python train.py actor NUMBER --server tcp://HOST:7077 --secret-file secret

All take the same server and settings. Whoever is started again goes on: the learner from its newest
checkpoint, an actor with new episodes. Actors end by a signal.
"""

import argparse
import json
from pathlib import Path

from accel_rl import io
from accel_rl.remote import apex

STEPS = 500_000
SETTINGS = {"apex.num_actors": 8, "training.seed": 0}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("learner", "actor"))
    parser.add_argument("number", type=int, nargs="?", default=0, help="of an actor, from 0")
    parser.add_argument("--server", required=True, metavar="ADDRESS")
    parser.add_argument("--secret-file", type=Path, required=True, metavar="FILE")
    parser.add_argument("--environment", default="CartPole-v1", metavar="NAME")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE")
    parser.add_argument("--steps", type=int, default=STEPS, help="of all actors; the learner's")
    parser.add_argument("--out", type=Path, default=Path("runs/apex"), metavar="DIR")
    options = parser.parse_args()
    training = apex.load(options.environment, SETTINGS, words=options.set)
    secret = options.secret_file.read_bytes().strip()
    if options.role == "actor":
        apex.run_actor(training, options.server, options.number, secret=secret)
        return
    kept = io.Checkpoints(options.out / "checkpoints", every=max(1, options.steps // 20), keep=2)
    apex.run_learners(
        training,
        options.server,
        options.steps,
        1,
        secret=secret,
        restarts=3,
        life=int(kept.newest() is not None),
        checkpoints=kept,
        on_row=lambda row: print(json.dumps(row), flush=True),
    )


if __name__ == "__main__":
    main()
