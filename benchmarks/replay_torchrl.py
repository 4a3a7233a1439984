"""torchrl's prioritised buffer for `replay.py` and `accelerator.py`, in a process of its own.

A line of JSON on standard input for each request, and one in answer:

| request | answer |
| --- | --- |
| {"fill", "batch_size", "alpha", "device"}: a file of items, priorities, noise | {"filled"} |
| {"calls", "repeats"}: "sample", "update" or both | {"cpu", "wall"}, seconds a repeat |
| {"draws"}: how many | {"indices", "rewards", "weights"} |
"""

import itertools
import json
import os
import sys
import time

os.environ.setdefault("RL_LOGGING_LEVEL", "WARNING")

import numpy as np
import tensordict
import torch
import torchrl
import torchrl._torchrl  # its trees, without which torchrl imports all the same
from torchrl.data import LazyTensorStorage, PrioritizedSampler, TensorDictReplayBuffer


class Buffer:
    """A full buffer in memory or on a CUDA device, its tree with it."""

    def __init__(self, path, batch_size, alpha, device):
        """Fill it."""
        if device == "cuda":
            # With its number: torchrl empties a tree on "cuda:0" at each call for "cuda".
            device = f"cuda:{torch.cuda.current_device()}"
        with np.load(path) as file:
            held = {name: torch.from_numpy(file[name]).to(device) for name in file.files}
        priorities, noise = held.pop("priorities"), held.pop("noise")
        capacity = len(priorities)
        self.batch_size = batch_size
        # Calls return before the kernels that they start have run.
        self.wait = torch.cuda.synchronize if device != "cpu" else lambda: None
        self.buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(capacity, device=device),
            # A device that is named is not replaced by the CPU: without CUDA trees it raises.
            sampler=PrioritizedSampler(capacity, alpha=alpha, beta=1.0, device=device),
            batch_size=batch_size,
        )
        self.buffer.extend(tensordict.TensorDict(held, batch_size=[capacity], device=device))
        self.buffer.update_priority(torch.arange(capacity, device=device), priorities)
        self.noise = itertools.cycle(noise.unbind())
        self.sample()

    def sample(self):
        """Draws a batch with weights."""
        self.drawn = self.buffer.sample()

    def update(self):
        """Set new priorities of the last batch."""
        self.buffer.update_priority(self.drawn["index"], next(self.noise))

    def time(self, calls, repeats):
        """Seconds of calls, the mean over repeats."""
        run = [getattr(self, call) for call in calls]
        self.wait()
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            for call in run:
                call()
        self.wait()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {"cpu": cpu / repeats, "wall": wall / repeats}

    def draws(self, num):
        """Draws batch after batch."""
        seen = {"indices": [], "rewards": [], "weights": []}
        for _ in range(-(-num // self.batch_size)):
            self.sample()
            weight = "_weight" if "_weight" in self.drawn.keys() else "priority_weight"  # noqa: SIM118
            for name, field in zip(seen, ("index", "reward", weight), strict=True):
                seen[name] += self.drawn[field].flatten().tolist()
        return seen


def main():
    """Answers requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what torchrl logs goes to standard output
    torch.set_num_threads(1)  # batches are small, and the process is held to one core
    versions = {"torchrl": torchrl.__version__, "torch": torch.__version__}
    print(json.dumps(versions), file=answers, flush=True)
    buffer = None
    for line in sys.stdin:
        request = json.loads(line)
        if "fill" in request:
            buffer = None  # its memory first
            wanted = (request[name] for name in ("fill", "batch_size", "alpha", "device"))
            buffer = Buffer(*wanted)
            answer = {"filled": True}
        elif "draws" in request:
            answer = buffer.draws(request["draws"])
        else:
            answer = buffer.time(request["calls"], request["repeats"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
