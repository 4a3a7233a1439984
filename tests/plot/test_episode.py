"""Pictures of observations: where things are drawn."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from accel_rl import envs, plot
from accel_rl.plot.style import COLORS


def axes():
    return Figure().subplots()


@pytest.mark.parametrize(
    ("name", "seen", "tip"),
    [
        ("CartPole-v1", [0.5, 0, np.pi / 2, 0], (1.5, 0.12)),  # fallen to the right
        ("Pendulum-v1", [1, 0, 0], (0, 1)),  # upright
        ("Pendulum-v1", [0, 1, 0], (-1, 0)),  # a quarter turn to the left
        ("Acrobot-v1", [1, 0, 1, 0, 0, 0], (0, -2)),  # hanging
        ("Acrobot-v1", [0, 1, 1, 0, 0, 0], (2, 0)),  # both arms to the right
    ],
)
def test_the_tip_of_the_last_rod(name, seen, tip):
    ax = axes()
    plot.draw_observation(ax, name, seen)
    rod = ax.lines[-1].get_xydata()
    np.testing.assert_allclose(rod[-1], tip, atol=1e-6)


def test_the_car_is_on_its_track():
    ax = axes()
    plot.draw_observation(ax, "MountainCar-v0", [-np.pi / 6, 0.0])  # the valley's bottom
    (car,) = [patch for patch in ax.patches if isinstance(patch, Circle)]
    track = ax.lines[0].get_xydata()
    assert car.center[0] == pytest.approx(track[np.argmin(track[:, 1]), 0], abs=0.02)


def test_images_take_the_colour_of_their_topmost_channel():
    ax, seen = axes(), np.zeros((2, 2, 3))
    seen[0, 0, 0] = seen[1, 1, 2] = seen[1, 1, 0] = 1
    plot.draw_observation(ax, "mine", seen)
    picture = ax.images[0].get_array()
    want = np.array([[to_rgb(COLORS[0]), (1, 1, 1)], [(1, 1, 1), to_rgb(COLORS[2])]])
    np.testing.assert_allclose(picture, want, atol=1e-6)


def test_other_observations_are_bars_and_axes_are_reused():
    ax = axes()
    for seen in ([1.0, -2.0], [3.0, 4.0]):
        plot.draw_observation(ax, "mine", seen)
    assert [bar.get_height() for bar in ax.patches] == [3, 4]


def test_the_agent_stands_in_its_cell():
    ax = axes()
    plot.draw_grid_state(ax, envs.layout("FrozenLake-v1"), 6)
    (agent,) = [patch for patch in ax.patches if isinstance(patch, Circle)]
    assert agent.center == (2, 1)
