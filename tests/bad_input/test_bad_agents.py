"""Bad input to `agents` and their losses."""

import functools

import jax
import numpy as np
import pytest
from refusals import INF, NAN, check_refused, rows_of

from accel_rl import agents, tabular
from accel_rl.agents import losses
from accel_rl.types import Box, Discrete

SPACE, ACTIONS, TWO = Box((-1.0,) * 3, (1.0,) * 3, (3,)), Box((-1.0,), (1.0,), (1,)), Discrete(2)
UNBOUNDED = Box((-INF,), (INF,), (1,))
ZERO, ACTION = np.float32(0), np.int32(0)
RANKS, SHAPES = (AssertionError, "rank compatibility"), (AssertionError, "have different shapes")
key = functools.cache(lambda: jax.random.key(0))


def zeros(*shape):
    return np.zeros(shape, np.float32)


def dqn(**options):
    return agents.dqn(SPACE, TWO, **options)


def c51(**options):
    return dqn(distributional="c51", **options)


def ddpg(**options):
    return agents.ddpg(SPACE, ACTIONS, **options)


def td3(**options):
    return agents.td3(SPACE, ACTIONS, **options)


def sac(**options):
    return agents.sac(SPACE, ACTIONS, **options)


NO_BOUNDS = "needs a Box action space of floats with bounds, got"
TABLE = {
    "agents.dqn": [
        (lambda: agents.dqn(SPACE, ACTIONS), TypeError, "dqn needs a Discrete action space of 2"),
        (lambda: agents.dqn("x", TWO), TypeError, "observation_space must be types.Discrete or"),
        (lambda: dqn(hidden=()), ValueError, "number of hidden layers must be at least 1, got 0"),
        (lambda: dqn(hidden=(0,)), ValueError, "hidden must be at least 1, got 0"),
        (lambda: dqn(distributional="c52"), ValueError, "got 'c52'; did you mean c51?"),
        (lambda: dqn(distributional=["c51"]), ValueError, "got ['c51']"),
        (lambda: c51(num_atoms=1), ValueError, "num_atoms must be at least 2, got 1"),
        (lambda: c51(num_atoms=2.5), TypeError, "num_atoms must be an int, got 2.5"),
        (lambda: c51(value_range=(1.0, -1.0)), ValueError, "two finite, rising numbers, got (1.0"),
        (lambda: c51(value_range=(NAN, 1.0)), ValueError, "value_range must be two finite"),
        (lambda: dqn(loss="cubed"), ValueError, "loss must be one of squared, huber, got 'cubed'"),
        (lambda: dqn(loss=["x"]), ValueError, "loss must be one of squared, huber, got ['x']"),
        (lambda: dqn(max_gradient_norm=0), ValueError, "max_gradient_norm must be above 0, got 0"),
        (lambda: dqn(max_gradient_norm=NAN), ValueError, "must be above 0, got nan"),
        (lambda: dqn(max_gradient_norm="x"), TypeError, "max_gradient_norm must be a number"),
    ],
    "agents.Agent": [
        (lambda: dqn().init(key(), learning_rate=NAN), ValueError, "from 0 to 1, got nan"),
        (lambda: dqn().init(key(), learning_rate=-1), ValueError, "from 0 to 1, got -1"),
        (lambda: dqn().init(key(), learning_rate=True), TypeError, "must be a number, got True"),
        (lambda: dqn().init(key(), learning_rate="x"), TypeError, "must be a number, got 'x'"),
        (lambda: dqn().init(key(), learning_rte=0), TypeError, "did you mean learning_rate?"),
        (lambda: ddpg().init(key(), noise_scale=NAN), ValueError, "noise_scale must be from 0 to"),
        (lambda: sac().init(key(), tau=[1, 1]), ValueError, "tau must be a scalar, got shape"),
    ],
    "agents.dqn of the command": [
        (lambda: agents.dqn(learning_rate=0.1), TypeError, "to agent.init(key, learning_rate=...)"),
        (lambda: dqn(hiden=(8,)), TypeError, "dqn has no option 'hiden'; did you mean hidden?"),
        (lambda: dqn(torso="conv"), ValueError, "torso must be one of mlp, convolution, nature"),
    ],
    "agents.ddpg": [
        (lambda: ddpg(tau=0.1), TypeError, "or to a training as agent={'tau': ...}"),
        (lambda: agents.ddpg(SPACE, TWO), TypeError, f"ddpg {NO_BOUNDS} Discrete(n=2)"),
        (lambda: agents.ddpg(SPACE, UNBOUNDED), TypeError, f"ddpg {NO_BOUNDS} Box(-inf, inf, ("),
        (lambda: ddpg(noise="pink"), ValueError, "noise must be one of gaussian, ornstein"),
        (lambda: ddpg(loss="x"), ValueError, "loss must be one of squared, huber, got 'x'"),
    ],
    "agents.td3": [
        (lambda: agents.td3(SPACE, TWO), TypeError, f"td3 {NO_BOUNDS} Discrete(n=2)"),
        (lambda: td3(noise=["gaussian"]), ValueError, "noise must be one of gaussian"),
    ],
    "agents.sac": [
        (lambda: agents.sac(SPACE, TWO), TypeError, f"sac {NO_BOUNDS} Discrete(n=2)"),
        (lambda: sac(loss=None), ValueError, "loss must be one of squared, huber, got None"),
    ],
    "agents.tabular": [
        (
            lambda: agents.tabular(tabular.q_learning(), SPACE, TWO),
            *(TypeError, "tabular needs a Discrete observation space"),
        ),
    ],
    "agents.normalise_observations": [
        (lambda: agents.normalise_observations(dqn(), 0), ValueError, "clip must be above 0, got"),
        (lambda: agents.normalise_observations(dqn(), "x"), TypeError, "clip must be a number, g"),
    ],
    "agents.losses.huber": [
        (lambda: losses.huber(ZERO, 0), ValueError, "delta must be above 0, got 0"),
        (lambda: losses.huber(ZERO, NAN), ValueError, "delta must be above 0, got nan"),
    ],
    "agents.losses.project": [
        (lambda: losses.project(zeros(3), zeros(4), 3), *SHAPES),
    ],
    "agents.losses.q_learning": [
        (lambda: losses.q_learning(zeros(3), ACTION, ZERO, ZERO, zeros(3), zeros(4)), *SHAPES),
    ],
    "agents.losses.categorical_q_learning": [
        (
            lambda: losses.categorical_q_learning(
                zeros(3), zeros(2, 4), ACTION, ZERO, ZERO, zeros(2, 3), zeros(2)
            ),
            *(AssertionError, "input 0 has shape (2, 4) but expected (2, 3)"),
        ),
    ],
    "agents.losses.quantile_regression": [
        (lambda: losses.quantile_regression(zeros(3), ZERO), *RANKS),
        (lambda: losses.quantile_regression(zeros(3), zeros(3), -1.0), ValueError, "delta must be"),
    ],
    "agents.losses.quantile_q_learning": [
        (
            lambda: losses.quantile_q_learning(
                zeros(3), ACTION, ZERO, ZERO, zeros(2, 3), zeros(2)
            ),
            *(AssertionError, "input 0 has shape (3,) but expected (2, None)"),
        ),
    ],
    "agents.losses.clipped_double_q": [
        (lambda: losses.clipped_double_q(zeros(3), ZERO, ZERO, zeros(2)), *SHAPES),
    ],
    "agents.losses.smoothed": [(lambda: losses.smoothed(zeros(2), zeros(3), ZERO), *SHAPES)],
    "agents.losses.worst": [(lambda: losses.worst(zeros(2, 2)), *RANKS)],
    "agents.losses.soft_q": [
        (lambda: losses.soft_q(zeros(2), ZERO, ZERO, zeros(2), zeros(2), ZERO), *RANKS),
    ],
    "agents.losses.soft_policy": [(lambda: losses.soft_policy(ZERO, ZERO, ZERO), *RANKS)],
    "agents.losses.squashed_gaussian": [
        (lambda: losses.squashed_gaussian(zeros(3), zeros(2), zeros(3)), *SHAPES),
    ],
    "agents.losses.temperature_loss": [
        (lambda: losses.temperature_loss(zeros(2), ZERO, ZERO), *RANKS),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)])
def test_spaces_of_no_elements(n, error):
    check_refused(lambda: Discrete(n), error, "n must be")
