"""Early ends of a training: rules over the rows logged so far, Ctrl-C and SIGTERM.

A rule is a function of all rows that returns a reason to stop, or None. It keeps no state, so a
resumed training decides as an uninterrupted one does.
"""

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from accel_rl.arguments import whole, within
from accel_rl.io.loggers import Row
from accel_rl.train.value_limit import EXCESS

Rule = Callable[[Sequence[Row]], str | None]


def stop_at(metric: str, value: float, *, every_seed: bool = False) -> Rule:
    """Stop once a metric is `value` or more.

    Args:
      metric: an entry of the rows, such as "evaluation".
      value: threshold.
      every_seed: require every seed to reach it, rather than their mean.
    """
    within("value", value, "[-inf, inf]")  # NaN would never be reached

    def rule(rows: Sequence[Row]) -> str | None:
        row = rows[-1]
        reached = [row[metric]]
        if every_seed and "per_seed" in row:
            reached = row["per_seed"][metric]
        if all(each >= value for each in reached):
            return f"{metric} is {min(reached):g}, {value:g} or more"
        return None

    return rule


def plateau(metric: str, patience: int, *, least: float = 0.0) -> Rule:
    """Stop where a metric has stopped rising.

    Args:
      metric: an entry of the rows, such as "evaluation". Rows in which it is NaN do not count.
      patience: consecutive rows without a rise.
      least: a rise exceeds the highest earlier row by more than this.
    """
    whole("patience", patience, 1)
    within("least", least, "[0, inf]")

    def rule(rows: Sequence[Row]) -> str | None:
        highest, since = -math.inf, 0
        for row in rows:
            value = row[metric]
            if value > highest + least:
                highest, since = value, 0
            elif not math.isnan(value):
                since += 1
        if since < patience:
            return None
        return f"{metric} has not risen above {highest:g} for {since} rows"

    return rule


def stop_excess(most: float = 1.5) -> Rule:
    """Stop where the values of a seed exceed what rewards and gamma allow, as divergence does.

    Args:
      most: largest `value_excess` that is tolerated; see `Program.metrics`.
    """
    within("most", most, "[1, inf)")

    def rule(rows: Sequence[Row]) -> str | None:
        row = rows[-1]
        values = row["per_seed"][EXCESS] if "per_seed" in row else [row[EXCESS]]
        worst = max((each for each in values if not math.isnan(each)), default=0)
        return f"{EXCESS} is {worst:g}, above {most:g}" if worst > most else None

    return rule


def first_of(*rules: Rule) -> Rule:
    """Stop where any of several rules does."""

    def rule(rows: Sequence[Row]) -> str | None:
        return next((why for each in rules if (why := each(rows))), None)

    return rule


@contextlib.contextmanager
def deferred_signals() -> Iterator[Callable[[], bool]]:
    """Defer the first SIGINT or SIGTERM; the second one has its usual effect.

    A signal that the parent ignores stays ignored, as SIGINT behind `&` in a script: SIGTERM stops
    such a training. Outside the main thread, where Python runs no handlers, this does nothing.

    Yields:
      A function that returns whether a signal has come.
    """
    came: list[int] = []
    before: dict[int, signal.Handlers | Callable[[int, FrameType | None], object] | int | None] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, frame: FrameType | None) -> None:
        came.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                before[number] = handler
                signal.signal(number, hear)
    try:
        yield lambda: bool(came)
    finally:
        restore()
