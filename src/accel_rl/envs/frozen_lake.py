"""FrozenLake: cross a slippery lake without falling into a hole. Gymnasium's FrozenLake-v1."""

from collections.abc import Sequence

import numpy as np

from accel_rl.arguments import one_of, within
from accel_rl.envs.tables import Outcome, build_mdp
from accel_rl.types import MDP, GridLayout

MAPS = {
    "4x4": ("SFFF", "FHFH", "FFFH", "HFFG"),
    "8x8": (
        "SFFFFFFF",
        "FFFFFFFF",
        "FFFHFFFF",
        "FFFFFHFF",
        "FFFHFFFF",
        "FHHFFFHF",
        "FHFFHFHF",
        "FFFHFFFG",
    ),
}
ACTIONS = ("left", "down", "right", "up")
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
_TILES = {"S": "start", "F": "ice", "H": "hole", "G": "goal"}


def frozen_lake(
    map_name: str = "4x4",
    desc: Sequence[str] | None = None,
    is_slippery: bool = True,
    success_rate: float = 1.0 / 3.0,
    reward_schedule: tuple[float, float, float] = (1.0, 0.0, 0.0),
    time_limit: int | None = None,
) -> MDP:
    """Make the tables of FrozenLake, equal to `P` of Gymnasium 1.3's FrozenLake-v1.

    States are cells in row-major order, actions left, down, right, up. On slippery ice the agent
    moves in the chosen direction with probability `success_rate`, and in each perpendicular one
    with half of the remaining probability. A move into the border stays in place; holes and goals
    are terminal.

    Args:
        map_name: "4x4" or "8x8"; ignored if `desc` is given.
        desc: rows of a map of S (start), F (ice), H (hole), G (goal). An episode begins in any S.
        is_slippery: if False, every move succeeds.
        success_rate: probability of the chosen direction on slippery ice.
        reward_schedule: rewards for reaching a goal, a hole, and any other cell.
        time_limit: steps to truncation; None: Gymnasium's, 200 for "8x8", otherwise 100.

    Returns:
        The MDP, S = rows * columns, A = 4, K = 3 if slippery, otherwise 1.
    """
    rows = _rows(map_name, desc)
    within("success_rate", success_rate, "[0, 1]")
    if time_limit is None:
        time_limit = 200 if desc is None and map_name == "8x8" else 100
    goal, hole, other = reward_schedule
    rewards = {"G": goal, "H": hole, "F": other, "S": other}
    slip_rate = (1.0 - success_rate) / 2.0
    height, width = len(rows), len(rows[0])

    def move(row: int, column: int, action: int) -> tuple[int, float, bool]:
        row = min(max(row + MOVES[action][0], 0), height - 1)
        column = min(max(column + MOVES[action][1], 0), width - 1)
        tile = rows[row][column]
        return row * width + column, rewards[tile], tile in "GH"

    def outcomes(state: int, action: int) -> list[Outcome]:
        row, column = divmod(state, width)
        if rows[row][column] in "GH":
            return [(1.0, state, 0.0, True)]
        if not is_slippery:
            return [(1.0, *move(row, column, action))]
        return [
            (slip_rate, *move(row, column, (action - 1) % 4)),
            (success_rate, *move(row, column, action)),
            (slip_rate, *move(row, column, (action + 1) % 4)),
        ]

    initial = np.array([tile == "S" for row in rows for tile in row], np.float64)
    return build_mdp(outcomes, len(MOVES), initial, time_limit)


def frozen_lake_layout(map_name: str = "4x4", desc: Sequence[str] | None = None) -> GridLayout:
    """Make the layout for drawing a FrozenLake map, with one cell for each state.

    Args:
        map_name: as in `frozen_lake`.
        desc: as in `frozen_lake`.
    """
    rows = _rows(map_name, desc)
    return GridLayout(
        cells=rows,
        meaning=_TILES,
        states=np.arange(len(rows) * len(rows[0])).reshape(len(rows), -1),
        actions=ACTIONS,
        moves=MOVES,
        no_action="HG",
    )


def _rows(map_name: str, desc: Sequence[str] | None) -> tuple[str, ...]:
    """Return the rows of the named or given map, checked."""
    if desc is None:
        one_of("map_name", map_name, MAPS)
        return MAPS[map_name]
    rows, tiles = tuple(desc), set().union(*desc)
    # Characters of a text would be rows of one tile.
    even = not isinstance(desc, str) and len({len(row) for row in rows}) == 1
    if not even or "S" not in tiles or not tiles <= _TILES.keys():
        raise ValueError(f"desc must be rows of equal length of S, F, H, G, with an S, got {desc}")
    return rows
