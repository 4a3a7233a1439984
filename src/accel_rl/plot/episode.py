"""Pictures of single observations: classic control, grid worlds, images, or bars of numbers."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.patches import Circle, Rectangle

from accel_rl.plot.policy import draw_policy
from accel_rl.plot.style import COLORS, quiet
from accel_rl.types import ArrayLike, GridLayout

_INK = "#444444"


def draw_observation(ax: Axes, environment: str, observation: ArrayLike) -> None:
    """Draw what an agent saw, as its environment would be drawn as far as the numbers tell.

    CartPole, MountainCar, Pendulum and Acrobot are drawn as they look, images [H, W, C] by the
    colour of their topmost channel, other arrays as bars.

    Args:
      ax: axes to draw on; they are cleared.
      environment: its name.
      observation: one observation, an array.
    """
    ax.clear()
    ax.set_axis_off()
    seen = np.asarray(observation, np.float64)
    kind = environment.rpartition(":")[2].partition("-")[0]
    if kind in _CONTROL and seen.ndim == 1:
        ax.set_aspect("equal")
        _CONTROL[kind](ax, seen)
    elif seen.ndim == 3:
        _image(ax, seen)
    else:
        ax.set_axis_on()
        ax.bar(np.arange(seen.size), seen.ravel(), color=COLORS[0])
        ax.set(xlabel="component of the observation", ylabel="value")
        quiet(ax, "y")


def draw_grid_state(ax: Axes, layout: GridLayout, state: int) -> None:
    """Draw a grid world with its agent.

    Args:
      ax: axes to draw on; they are cleared.
      layout: of the grid; for Taxi, of the passenger and destination of `state`.
      state: of the agent.
    """
    ax.clear()
    draw_policy(ax, layout)
    for row, column in np.argwhere(layout.states == state)[:1]:
        ax.add_patch(Circle((column, row), 0.3, facecolor=COLORS[4], alpha=0.8, zorder=5))


def _cart_pole(ax: Axes, seen: np.ndarray) -> None:
    place, angle = seen[0], seen[2]
    ax.plot([-2.6, 2.6], [0, 0], color=_INK, linewidth=1)
    ax.add_patch(Rectangle((place - 0.25, -0.12), 0.5, 0.24, facecolor=_INK))
    _rods(ax, [place, place + np.sin(angle)], [0.12, 0.12 + np.cos(angle)])
    ax.set(xlim=(-2.6, 2.6), ylim=(-0.4, 1.4))


def _mountain_car(ax: Axes, seen: np.ndarray) -> None:
    track = np.linspace(-1.2, 0.6, 100)
    ax.plot(track, 0.45 * np.sin(3 * track) + 0.55, color=_INK, linewidth=1)
    ax.plot([0.5, 0.5], [1.0, 1.2], color=COLORS[2], linewidth=3)  # the goal
    ax.add_patch(Circle((seen[0], 0.45 * np.sin(3 * seen[0]) + 0.6), 0.05, facecolor=COLORS[0]))
    ax.set(xlim=(-1.25, 0.65), ylim=(0, 1.3))


def _pendulum(ax: Axes, seen: np.ndarray) -> None:
    _rods(ax, [0, -seen[1]], [0, seen[0]])  # cosine and sine of the angle from upright
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))


def _acrobot(ax: Axes, seen: np.ndarray) -> None:
    first, second = np.arctan2(seen[1], seen[0]), np.arctan2(seen[3], seen[2])
    elbow = np.sin(first), -np.cos(first)
    tip = elbow[0] + np.sin(first + second), elbow[1] - np.cos(first + second)
    ax.plot([-2.2, 2.2], [1, 1], color=COLORS[2], linewidth=1)  # the height to reach
    _rods(ax, [0, elbow[0], tip[0]], [0, elbow[1], tip[1]])
    ax.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2))


_CONTROL: dict[str, Callable[[Axes, np.ndarray], None]] = {
    "CartPole": _cart_pole,
    "MountainCar": _mountain_car,
    "MountainCarContinuous": _mountain_car,
    "Pendulum": _pendulum,
    "Acrobot": _acrobot,
}


def _rods(ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    ax.plot(x, y, color=COLORS[4], linewidth=6, solid_capstyle="round", marker="o")


def _image(ax: Axes, seen: np.ndarray) -> None:
    """Draw RGB and grey images as they are, others by the colour of their topmost channel."""
    if seen.shape[2] in (1, 3) and seen.max() > 1:
        ax.imshow(np.clip(seen / 255, 0, 1), cmap="gray")
        return
    palette = to_rgba_array(COLORS)[:, :3]
    picture = np.ones((*seen.shape[:2], 3))
    for channel in range(seen.shape[2]):
        picture[seen[..., channel] > 0] = palette[channel % len(palette)]
    ax.imshow(picture, interpolation="nearest")
