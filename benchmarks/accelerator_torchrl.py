"""torchrl's prioritised replay for `accelerator.py`, in a process of its own, which has no JAX.

    python benchmarks/accelerator_torchrl.py ITEMS BATCH_SIZE ALPHA CALLS ROUNDS [--cpu]

ITEMS is a file of NumPy arrays: the fields of a full buffer's items, and "priorities", which have a
heavy tail. It runs on a CUDA device; with `--cpu`, on the CPU where torch finds none. It prints a
line of JSON: {"device", "seconds"}, the seconds of a call to sample and one to update by round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = 5  # calls: kernels are loaded by the first


def ask(
    items: Mapping[str, np.ndarray],
    batch_size: int,
    alpha: float,
    calls: int,
    rounds: int,
    *,
    cpu: bool = False,
    python: str = sys.executable,
    limit: float = 45.0,
) -> tuple[str, list[float]]:
    """Measure in another process; return the tree's device and each round's seconds of a step.

    Two frameworks in one process would share the CUDA libraries of the one imported first, and a
    crash would end the part of `accelerator.py`.

    Args:
      items: fields of a full buffer's items, and heavy-tailed "priorities", leaves [capacity, ...].
      batch_size: items of a batch.
      alpha: priority exponent.
      calls: calls to sample, and as many to update, in a round.
      rounds: rounds.
      cpu: run on the CPU where torch finds no CUDA device.
      python: the interpreter.
      limit: timeout of the process, in seconds.

    Raises:
      RuntimeError: if torchrl did not run; the message says why.
    """
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, **dict(items))
        file.flush()
        command = [python, str(Path(__file__).resolve()), file.name]
        command += [str(each) for each in (batch_size, alpha, calls, rounds)]
        try:
            done = subprocess.run(
                command + ["--cpu"] * cpu, capture_output=True, text=True, timeout=limit
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(str(error)) from error
    if done.returncode != 0:
        lines = done.stderr.split("\n")
        raise RuntimeError(next((x for x in reversed(lines) if x), f"code {done.returncode}"))
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["device"], answer["seconds"]


def measure(
    path: str, batch_size: int, alpha: float, calls: int, rounds: int, device: str
) -> list[float]:
    """Return each round's mean seconds of a call to sample and one to update."""
    import tensordict
    import torch
    from torchrl.data import LazyTensorStorage, PrioritizedSampler, TensorDictReplayBuffer

    with np.load(path) as file:
        held = {name: torch.from_numpy(file[name]).to(device) for name in file.files}
    priorities = held.pop("priorities")
    capacity = len(priorities)
    buffer: Any = TensorDictReplayBuffer(
        storage=LazyTensorStorage(capacity, device=device),
        # A named device is never replaced by the CPU: without CUDA trees torchrl raises.
        sampler=PrioritizedSampler(capacity, alpha=alpha, beta=1.0, device=device),
        batch_size=batch_size,
    )
    buffer.extend(tensordict.TensorDict(held, batch_size=[capacity], device=device))
    buffer.update_priority(torch.arange(capacity, device=device), priorities)
    # Proportional draws from a heavy tail average above the mean; those from an empty tree do not.
    if not priorities[buffer.sample()["index"]].mean() > priorities.mean():
        raise RuntimeError("torchrl draws by other priorities than it was given")
    new = priorities[:batch_size].clone()
    synchronize = (lambda: None) if device == "cpu" else torch.cuda.synchronize

    def steps(num: int) -> float:
        synchronize()  # kernels run behind the calls that start them
        began = time.perf_counter()
        for _ in range(num):
            drawn = buffer.sample()
            buffer.update_priority(drawn["index"], new)
        synchronize()
        return (time.perf_counter() - began) / num

    steps(WARM_UP)
    return [steps(calls) for _ in range(rounds)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer one request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items")
    parser.add_argument("batch_size", type=int)
    parser.add_argument("alpha", type=float)
    parser.add_argument("calls", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args(arguments)
    os.environ.setdefault("RL_LOGGING_LEVEL", "WARNING")
    import torch

    cuda = torch.cuda.is_available()
    if not cuda and not given.cpu:
        sys.exit("torch finds no CUDA device")
    # With its number: torchrl empties its trees at each call where "cuda" is not their "cuda:0".
    device = f"cuda:{torch.cuda.current_device()}" if cuda else "cpu"
    sizes = given.batch_size, given.alpha, given.calls, given.rounds
    seconds = measure(given.items, *sizes, device)
    print(json.dumps({"device": "CUDA" if cuda else "CPU", "seconds": seconds}))


if __name__ == "__main__":
    main()
