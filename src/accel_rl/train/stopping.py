"""Early stopping: rules over the rows logged so far.

A rule is a function of all rows that returns a reason to stop, or None. It keeps no state, so a
resumed training decides as an uninterrupted one does.
"""

import math
from collections.abc import Callable, Sequence

from accel_rl.arguments import real, whole, within
from accel_rl.io.loggers import Row

Rule = Callable[[Sequence[Row]], str | None]


def stop_at(metric: str, value: float, *, every_seed: bool = False) -> Rule:
    """Stop once a metric is `value` or more.

    Args:
      metric: an entry of the rows, such as "evaluation".
      value: threshold.
      every_seed: require every seed to reach it, rather than their mean.

    Returns:
      A rule; it raises ValueError where rows have no such entry.

    Raises:
      TypeError: if the metric is no text, or the value no number.
      ValueError: if the value is NaN.
    """
    if math.isnan(real("value", value)):
        raise ValueError(f"value must be a number to reach, got {value}")

    def rule(rows: Sequence[Row]) -> str | None:
        row = rows[-1]
        reached = [_entry(row, metric)]
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

    Returns:
      A rule; it raises ValueError where rows have no such entry.

    Raises:
      TypeError: if the metric is no text, `patience` no int or `least` no number.
      ValueError: if `patience` is below 1, or `least` below 0.
    """
    whole("patience", patience, 1)
    within("least", least, "[0, inf]")

    def rule(rows: Sequence[Row]) -> str | None:
        highest, since = -math.inf, 0
        for row in rows:
            value = _entry(row, metric)
            if value > highest + least:
                highest, since = value, 0
            elif not math.isnan(value):
                since += 1
        if since < patience:
            return None
        return f"{metric} has not risen above {highest:g} for {since} rows"

    return rule


def first_of(*rules: Rule) -> Rule:
    """Stop where any of several rules does.

    Raises:
      ValueError: if there is none.
    """
    if not rules:
        raise ValueError("rules must be one or more, got none")

    def rule(rows: Sequence[Row]) -> str | None:
        return next((why for each in rules if (why := each(rows))), None)

    return rule


def _entry(row: Row, metric: str) -> float:
    if metric not in row:
        raise ValueError(f"no {metric!r} in the rows; there are {', '.join(row)}")
    return row[metric]
