"""What is in the picture: colours, arrows and words, cell by cell."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Annotation

from accel_rl import envs
from accel_rl.plot.policy import draw_policy


@pytest.fixture
def ax():
    figure, ax = plt.subplots(figsize=(4, 4))
    yield ax
    plt.close(figure)


def arrows(ax):
    """Direction (rows, columns) of the arrow in each cell that has one."""
    found = {}
    for text in ax.texts:
        if isinstance(text, Annotation):
            (x1, y1), (x0, y0) = text.xy, text.get_position()
            cell = round((y0 + y1) / 2), round((x0 + x1) / 2)
            found[cell] = int(np.sign(y1 - y0)), int(np.sign(x1 - x0))
    return found


def words(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_frozen_lake(ax):
    layout = envs.layout("FrozenLake-v1")
    values, policy = np.linspace(0, 1, 16), np.arange(16) % 4
    image = draw_policy(ax, layout, values, policy)
    np.testing.assert_allclose(image.get_array().filled(-1)[0], values[:4])
    assert image.get_array().mask.sum() == 5  # four holes and the goal hold no value
    expected = {
        divmod(state, 4): layout.moves[policy[state]]
        for state in range(16)
        if state not in (5, 7, 11, 12, 15)
    }
    assert arrows(ax) == expected
    assert sorted(word for word in words(ax) if word.isalpha()) == ["G", "H", "H", "H", "H", "S"]
    assert "0.27" in words(ax)
    assert len(ax.figure.axes) == 2  # the colour bar


def test_taxi(ax):
    layout = envs.layout("Taxi-v3", passenger="R", destination="B")
    values = np.zeros((500, 6))
    values[layout.states[2, 3], 1] = 7.0
    policy = np.full(500, 2)
    policy[layout.states[0, 0]] = 4
    draw_policy(ax, layout, values, policy, numbers=True, colorbar=False)
    assert arrows(ax).keys() == set(np.ndindex(5, 5)) - {(0, 0)}
    assert set(arrows(ax).values()) == {(0, 1)}
    assert {"pickup", "P", "D", "R", "G", "Y", "B"} <= set(words(ax))
    assert words(ax).count("7.00") == 1
    walls = {(*line.get_xdata(), *line.get_ydata()) for line in ax.lines}  # each over its rim
    assert (1.5, 1.5, -0.5, 0.5) in walls
    assert len(walls) == 6
    assert ax.get_title() == "passenger at R, destination B"
    assert len(ax.figure.axes) == 1


def test_map_alone_and_equal_values(ax):
    draw_policy(ax, envs.layout("CliffWalking-v1"))
    assert arrows(ax) == {}
    assert sorted(words(ax)) == ["C"] * 10 + ["G", "S"]
    image = draw_policy(ax, envs.layout("CliffWalking-v1"), np.full(48, 3.0))
    assert image.get_clim() == (3.0, 4.0)
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("values", "policy", "message"),
    [
        (None, np.zeros(16), "policy must be integers from 0 to 3"),
        (None, np.full(16, 4), "policy must be integers from 0 to 3"),
        (None, np.full(16, -1), "policy must be integers from 0 to 3"),
    ],
)
def test_refuses(ax, values, policy, message):
    with pytest.raises(ValueError, match=message):
        draw_policy(ax, envs.layout("FrozenLake-v1"), values, policy)
