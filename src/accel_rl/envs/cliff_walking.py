"""CliffWalking: reach the goal along the edge of a cliff. Gymnasium's CliffWalking-v1.

After example 6.6 of Sutton and Barto, Reinforcement Learning, second edition, 2018.
"""

import numpy as np

from accel_rl.envs.tables import Outcome, build_mdp
from accel_rl.types import MDP, GridLayout

ROWS = ("............", "............", "............", "SCCCCCCCCCCG")
ACTIONS = ("up", "right", "down", "left")
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
_TILES = {"S": "start", ".": "floor", "C": "cliff", "G": "goal"}
_HEIGHT, _WIDTH = len(ROWS), len(ROWS[0])
_START = 36  # row 3, column 0


def cliff_walking(is_slippery: bool = False, time_limit: int | None = None) -> MDP:
    """Make the tables of CliffWalking, equal to `P` of Gymnasium 1.3's CliffWalking-v1.

    States are cells in row-major order, actions up, right, down, left. A step has reward -1; a step
    into the cliff has reward -100 and leads back to the start without ending the episode. On
    slippery ground the chosen direction and the two perpendicular ones are equally likely.

    Args:
        is_slippery: True if moves may slip to a perpendicular direction.
        time_limit: steps to truncation; Gymnasium sets none.

    Returns:
        The MDP, S = 48, A = 4, K = 3 if slippery, otherwise 1.
    """

    def move(state: int, action: int) -> tuple[int, float, bool]:
        row = min(max(state // _WIDTH + MOVES[action][0], 0), _HEIGHT - 1)
        column = min(max(state % _WIDTH + MOVES[action][1], 0), _WIDTH - 1)
        tile = ROWS[row][column]
        if tile == "C":
            return _START, -100.0, False
        return row * _WIDTH + column, -1.0, tile == "G"

    def outcomes(state: int, action: int) -> list[Outcome]:
        if not is_slippery:
            return [(1.0, *move(state, action))]
        return [(1 / 3, *move(state, (action + turn) % 4)) for turn in (-1, 0, 1)]

    initial = np.arange(_HEIGHT * _WIDTH) == _START
    return build_mdp(outcomes, len(MOVES), initial, time_limit)


def cliff_walking_layout() -> GridLayout:
    """Make the layout for drawing CliffWalking, with one cell for each state."""
    return GridLayout(
        cells=ROWS,
        meaning=_TILES,
        states=np.arange(_HEIGHT * _WIDTH).reshape(_HEIGHT, _WIDTH),
        actions=ACTIONS,
        moves=MOVES,
        no_action="CG",
    )
