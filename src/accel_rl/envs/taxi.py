"""Taxi: fetch a passenger and deliver them. The rules of Gymnasium's Taxi-v3 and Taxi-v4.

After T. G. Dietterich, Hierarchical reinforcement learning with the MAXQ value function
decomposition, Journal of Artificial Intelligence Research 13, 2000.
"""

import numpy as np

from accel_rl.arguments import within
from accel_rl.envs.tables import Outcome, build_mdp
from accel_rl.types import MDP, GridLayout

ROWS = ("R...G", ".....", ".....", ".....", "Y..B.")
WALLS = frozenset({(0, 1), (1, 1), (3, 0), (3, 2), (4, 0), (4, 2)})  # each to the east of its cell
ACTIONS = ("south", "north", "east", "west", "pickup", "dropoff")
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))
PLACES = {"R": (0, 0), "G": (0, 4), "Y": (4, 0), "B": (4, 3)}
IN_TAXI = 4  # passenger location, after the four places
_SIZE = 5
_LOCATIONS = tuple(PLACES.values())
_LEFT_OF = (2, 3, 1, 0)  # facing south, left is east, and so on
_RIGHT_OF = (3, 2, 0, 1)


def encode(row: int, column: int, passenger: int, destination: int) -> int:
    """Return the state number of a cell, passenger location (0 to 4) and destination (0 to 3)."""
    return ((row * _SIZE + column) * 5 + passenger) * 4 + destination


def decode(state: int) -> tuple[int, int, int, int]:
    """Return row, column, passenger location and destination of a state; inverts `encode`."""
    rest, destination = divmod(state, 4)
    cell, passenger = divmod(rest, 5)
    row, column = divmod(cell, _SIZE)
    return row, column, passenger, destination


def taxi(
    is_rainy: bool = False,
    rainy_probability: float = 0.8,
    time_limit: int | None = 200,
) -> MDP:
    """Make the tables of Taxi, equal to `P` of Gymnasium 1.3's Taxi-v4 (without rain also v3).

    Actions are south, north, east, west, pickup, dropoff. A step has reward -1, an illegal pickup
    or dropoff -10. Delivering the passenger has reward 20 and ends the episode. Episodes begin
    uniformly in the 300 states whose passenger waits at a place that is not the destination. There
    is no fickle passenger: the change of destination depends on a flag of the episode that is not
    part of the 500 states, so it has no transition table.

    Args:
        is_rainy: if True, a possible move slips to each side with probability
            `(1 - rainy_probability) / 2`; a move into a wall or the border always stays.
        rainy_probability: probability that a move in the rain succeeds.
        time_limit: steps to truncation; None for no limit.

    Returns:
        The MDP, S = 500, A = 6, K = 3 in the rain, otherwise 1.
    """
    within("rainy_probability", rainy_probability, "[0, 1]")
    astray = (1.0 - rainy_probability) / 2.0

    def outcomes(state: int, action: int) -> list[Outcome]:
        row, column, passenger, destination = decode(state)
        if action >= len(MOVES):
            serve = _pickup if action == ACTIONS.index("pickup") else _dropoff
            passenger, reward, delivered = serve((row, column), passenger, destination)
            return [(1.0, encode(row, column, passenger, destination), reward, delivered)]

        def moved(direction: int) -> int:
            return encode(*_move(row, column, direction), passenger, destination)

        if not is_rainy:
            return [(1.0, moved(action), -1.0, False)]
        blocked = moved(action) == state
        directions = (action, _LEFT_OF[action], _RIGHT_OF[action])
        landed = [state if blocked else moved(direction) for direction in directions]
        chances = (rainy_probability, astray, astray)
        return [(chance, end, -1.0, False) for chance, end in zip(chances, landed, strict=True)]

    initial = np.array(
        [p != IN_TAXI and p != d for _, _, p, d in map(decode, range(500))], np.float64
    )
    return build_mdp(outcomes, len(ACTIONS), initial, time_limit)


def taxi_layout(passenger: int | str = "R", destination: int | str = "G") -> GridLayout:
    """Make the layout of the taxi's 25 cells for one passenger location (P) and destination (D).

    Args:
        passenger: "R", "G", "Y", "B" or "taxi", or Gymnasium's number, 0 to 4.
        destination: "R", "G", "Y" or "B", or its number, 0 to 3.
    """
    places = tuple(PLACES)
    source = _place("passenger", passenger, (*places, "taxi"))
    target = _place("destination", destination, places)
    cells = np.arange(_SIZE * _SIZE).reshape(_SIZE, _SIZE)
    waiting = () if source == IN_TAXI else ((*_LOCATIONS[source], "P"),)
    where = "in the taxi" if source == IN_TAXI else f"at {places[source]}"
    return GridLayout(
        cells=ROWS,
        meaning={".": "floor"} | dict.fromkeys(places, "place"),
        states=cells * 20 + source * 4 + target,
        actions=ACTIONS,
        moves=(*MOVES, None, None),
        walls=WALLS,
        marks=(*waiting, (*_LOCATIONS[target], "D")),
        caption=f"passenger {where}, destination {places[target]}",
    )


def _move(row: int, column: int, direction: int) -> tuple[int, int]:
    down, right = MOVES[direction]
    if right and (row, column + min(right, 0)) in WALLS:
        return row, column
    return min(max(row + down, 0), _SIZE - 1), min(max(column + right, 0), _SIZE - 1)


def _pickup(cell: tuple[int, int], passenger: int, _: int) -> tuple[int, float, bool]:
    """Return the passenger's new location, the reward, and whether they were delivered."""
    if passenger != IN_TAXI and cell == _LOCATIONS[passenger]:
        return IN_TAXI, -1.0, False
    return passenger, -10.0, False


def _dropoff(cell: tuple[int, int], passenger: int, destination: int) -> tuple[int, float, bool]:
    """Return the passenger's new location, the reward, and whether they were delivered."""
    if passenger != IN_TAXI or cell not in _LOCATIONS:
        return passenger, -10.0, False
    if cell == _LOCATIONS[destination]:
        return destination, 20.0, True
    return _LOCATIONS.index(cell), -1.0, False


def _place(name: str, value: int | str, places: tuple[str, ...]) -> int:
    if value in places:
        return places.index(str(value))
    if isinstance(value, int) and 0 <= value < len(places):
        return value
    known = ", ".join(places)
    raise ValueError(f"{name} must be one of {known} or 0 to {len(places) - 1}, got {value!r}")
