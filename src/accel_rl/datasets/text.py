"""Import of plain-text logs with one `state action reward next_state` a line, as in SwiftRL."""

import itertools
import os
from collections.abc import Iterator
from typing import Literal

import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.datasets.arrays import REQUIRED, Log, RowError, assemble, indices, rewards
from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset
from accel_rl.types import MDP

_ROW = np.dtype([(name, np.float64) for name in REQUIRED])


def load_text(
    path: str | os.PathLike[str],
    *,
    mdp: MDP | None = None,
    episode_end: Literal["terminated", "truncated"] | None = None,
    num_states: int | None = None,
    num_actions: int | None = None,
    environment: str = "unnamed",
    require_next_action: bool = True,
) -> TabularDataset:
    """Load a log of `s a r s'` lines, without marks of episode ends or next actions.

    Fields are separated by blanks; empty lines and text after a `#` are skipped. An episode
    continues while a row's state is the next state of the row above. Exactly one of two arguments
    determines how other episodes end:

    - `mdp`: by the tables. A row that matches a terminating outcome terminated, even if the next
      episode begins in the same state; every other end is a truncation.
    - `episode_end`: all ends are terminations, or all are truncations. The end of the log is a
      truncation in both cases, since the log does not show how its last episode ended.

    A truncation is undetected if the next episode begins in the state where the old one was cut.
    This is harmless: the row's next action is then an action that the policy took in that state.

    Args:
        path: the file, UTF-8 or ASCII.
        mdp: the tables of the log's environment; they also determine S and A.
        episode_end: kind of all episode ends, if there is no `mdp`.
        num_states: S, required with `episode_end`.
        num_actions: A, required with `episode_end`.
        environment: name stored with the data.
        require_next_action: drop the rows whose next action is not in the log, the last of each
            truncated episode; `info.dropped` counts them. If False, they are kept with next action
            0 and counted in `info.missing_next_action`.

    Returns:
        The dataset.

    Raises:
        DatasetError: a line is malformed, a number is not an integer or is out of range, a reward
            is not finite, a row is impossible or its termination ambiguous under `mdp`, or no row
            is left. The message names the file, the line (counted from 1) or row (from 0), and the
            column.
        OSError: the file cannot be opened.
    """
    num_states, num_actions = _sizes(mdp, episode_end, num_states, num_actions)
    name = os.fspath(path)
    try:
        columns = parse(path)
        state = indices(columns, "state", num_states)
        action = indices(columns, "action", num_actions)
        next_state = indices(columns, "next_state", num_states)
        reward = rewards(columns)
        continues = np.append(next_state[:-1] == state[1:], False)
        if mdp is not None:
            terminated = _terminations(mdp, state, action, reward, next_state)
        else:
            terminated = ~continues & (episode_end == "terminated")
            terminated[-1] = False
        log = Log(state, action, reward, next_state, terminated, ~continues | terminated)
        info = DatasetInfo(
            environment, num_states, num_actions, f"unknown, imported from {os.path.basename(name)}"
        )
        return assemble(log, info, require_next_action)
    except RowError as error:
        line = line_of(path, error.row)
        raise DatasetError(f"{name}: line {line} (row {error.row}): {error}") from None
    except DatasetError as error:
        raise DatasetError(f"{name}: {error}") from None


def _sizes(
    mdp: MDP | None, episode_end: str | None, num_states: int | None, num_actions: int | None
) -> tuple[int, int]:
    given = [each is not None for each in (episode_end, num_states, num_actions)]
    if any(given) if mdp is not None else not all(given):
        raise ValueError("give either mdp, or episode_end, num_states and num_actions")
    if mdp is not None:
        return mdp.num_states, mdp.num_actions
    one_of("episode_end", episode_end, ("terminated", "truncated"))
    return whole("num_states", num_states, 1), whole("num_actions", num_actions, 1)


def parse(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Parse the file with NumPy's fast reader; return columns [N] float64."""
    with open(path, encoding="utf-8", errors="replace") as file:
        if not any(True for _ in data_lines(file)):
            raise DatasetError("no rows: the file is empty")
        file.seek(0)
        try:
            table = np.loadtxt(file, _ROW, ndmin=1)
        except ValueError as error:
            # NumPy does not count empty lines and comments, so a slow pass locates the error.
            raise DatasetError(_malformed(path) or str(error)) from error
    return {name: table[name] for name in REQUIRED}


def data_lines(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number (from 1) and fields of each non-empty line."""
    for number, line in enumerate(lines, start=1):
        fields = line.split("#", 1)[0].split()
        if fields:
            yield number, fields


def _malformed(path: str | os.PathLike[str]) -> str | None:
    """Return a message that locates the first malformed line, or None."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, fields in data_lines(file):
            for column, text in zip(REQUIRED, fields, strict=False):
                try:
                    float(text)
                except ValueError:
                    return f"line {number}: {column} is {text[:40]!r}, must be a number"
            if len(fields) != len(REQUIRED):
                return f"line {number}: {len(fields)} fields, must be 4 ({', '.join(REQUIRED)})"
    return None


def line_of(path: str | os.PathLike[str], row: int) -> int:
    """Return the line, counted from 1, of a row."""
    with open(path, encoding="utf-8", errors="replace") as file:
        number, _ = next(itertools.islice(data_lines(file), row, None))
    return number


def _terminations(
    mdp: MDP, state: np.ndarray, action: np.ndarray, reward: np.ndarray, next_state: np.ndarray
) -> np.ndarray:
    """Return [N] bool, True for rows that match a terminating outcome of the tables."""
    pairs = state * mdp.num_actions + action
    ends, goes_on = np.zeros((2, len(state)), bool)
    for k in range(mdp.probability.shape[2]):
        possible, target, gain, terminal = (
            np.asarray(column)[:, :, k].reshape(-1)[pairs]
            for column in (mdp.probability, mdp.next_state, mdp.reward, mdp.terminated)
        )
        match = (possible > 0) & (target == next_state) & (gain == reward)
        ends |= match & terminal
        goes_on |= match & ~terminal
    for bad, problem in (
        (~ends & ~goes_on, "is impossible in this environment"),
        (ends & goes_on, "may have terminated or not in this environment"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise RowError(
                row,
                f"state {state[row]}, action {action[row]}, reward {reward[row]:g}, "
                f"next_state {next_state[row]} {problem}",
            )
    return ends
