"""Report, time and measurements of the parts of `accelerator.py`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from common import Claim, Report

ROUNDS = 5
FAR = 1e30  # a difference that is not finite


class Run(NamedTuple):
    """A part's run."""

    report: Report
    path: Path  # where it keeps what it measured
    dry_run: bool
    until: float  # of the monotonic clock: no further case begins

    def keep(self) -> None:
        """Write all that was measured so far."""
        self.report.write(self.path)

    def size(self, small: int, full: int) -> int:
        """Return a size for a dry run, or for an accelerator."""
        return small if self.dry_run else full

    def case(self, name: str, measure: Callable[[], None]) -> None:
        """Measure a case, if there is time; keep the rest where it fails, and say why."""
        if time.monotonic() > self.until:
            self.report.claims.append(Claim(f"{name}: no time was left", None, 1.0, None))
            self.keep()
            return
        try:
            measure()
        except Exception as error:
            # The next cases may be all the time that there is on this machine.
            text = " ".join(str(error).split())[:300]
            self.report.claims.append(
                Claim(f"{name}: {type(error).__name__}: {text}", None, 1.0, None)
            )
        self.keep()

    def expect(self, claim: str, found: float, bound: float = 0.0) -> None:
        """Claim that a difference is within a bound."""
        found = float(np.nan_to_num(found, nan=FAR, posinf=FAR))  # JSON has no other numbers
        self.report.claims.append(Claim(claim, found, bound, found <= bound, sense="<="))

    def target(self, claim: str, value: float | None, bound: float) -> None:
        """Claim a speed, but not of a dry run."""
        if not self.dry_run:
            holds = None if value is None else value >= bound
            self.report.claims.append(Claim(claim, value, bound, holds))

    def time(
        self, case: str, system: str, unit: str, work: float, call: Callable[[], Any]
    ) -> float:
        """Record the microseconds of a unit of work; return the least.

        The first call, which compiles, is not counted. Each of `ROUNDS` waits for its results.
        """
        jax.block_until_ready(call())
        taken = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            jax.block_until_ready(call())
            taken.append((time.perf_counter() - began) / work * 1e6)
        self.report.add(case, system, f"wall time for a {unit}", "us", taken)
        self.report.add(case, system, f"least wall time for a {unit}", "us", [min(taken)])
        return min(taken)

    def least(self, case: str, system: str, unit: str) -> float | None:
        """Return the least time that was recorded, or None."""
        found = self.report.find(case, system, f"least wall time for a {unit}")
        return None if found is None else found.value


def cpu() -> jax.Device:
    """Return the CPU, the accelerator's reference."""
    return jax.devices("cpu")[0]


def difference(first: Any, second: Any) -> float:
    """Return the largest difference of two pytrees, of numbers above 1 a relative one."""

    def of_leaf(a: Any, b: Any) -> float:
        a, b = (np.asarray(x, float) for x in (a, b))
        if a.shape != b.shape:
            return np.inf
        gap = np.abs(a - b) / np.maximum(1, np.maximum(np.abs(a), np.abs(b)))
        return float(np.nan_to_num(gap, nan=np.inf).max(initial=0))

    return max(map(of_leaf, *map(_numbers, (first, second))), default=0.0)


def _numbers(tree: Any) -> list[Any]:
    leaves = jax.tree.leaves(tree)
    return [
        jax.random.key_data(leaf)
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        else leaf
        for leaf in leaves
    ]
