"""Bad input to `replay`; most of `replay.make` is in tests/replay/test_arguments.py."""

import functools

import jax
import numpy as np
import pytest
from refusals import INF, NAN, check_refused, rows_of

from accel_rl import replay
from accel_rl.types import Transition

ITEM = {"x": np.float32(0)}
STEP = Transition(np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1))
FINAL = Transition(
    STEP.observation, STEP.action, STEP.reward, STEP.discount, np.bool_(False), STEP.observation
)
RING = replay.Ring(8)
STEPS, ONES = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
VALID = np.ones((2, 3), bool)
made = functools.cache(lambda: replay.make(ITEM, 8, 2, "prioritised"))

pairs = functools.cache(lambda: replay.make(ITEM, 8, 2, num_envs=2))


def square(**options):
    return pairs().add(pairs().init(), {"x": np.zeros((2, 2), np.float32)}, **options)


def n_step(reward=STEPS, discount=ONES, truncated=None, gamma=0.9):
    return replay.n_step(reward, discount, truncated, gamma)


TABLE = {
    "replay.make": [
        (lambda: replay.make(ITEM, True, 2), TypeError, "capacity must be an int, got True"),
        (lambda: replay.make(STEP, 8, 2, n_step=1.5), TypeError, "n_step must be an int, got 1.5"),
        (lambda: replay.make(STEP, 8, 2, frame_stack=True), TypeError, "frame_stack must be an in"),
        (lambda: replay.make(ITEM, 8, 2, least_size=1.5), TypeError, "least_size must be an int"),
        (lambda: replay.make(ITEM, 8, 2, sequence_period=1.5), TypeError, "sequence_period must b"),
    ],
    "replay.Replay": [
        (lambda: replay.make(ITEM, 8, 2, "prioritise"), ValueError, "did you mean prioritised?"),
        (lambda: made().init(ITEM), TypeError, "the example of an item is an argument of make"),
        (lambda: made().update(made().init(), STEPS, ONES), TypeError, "not its indices: update(s"),
        (lambda: jax.jit(square)(batch_major=True), TypeError, "batch_major must be known where a"),
        (square, ValueError, "as many steps as environments, 2: say batch_major=False"),
        (
            lambda: pairs().add(pairs().init(), {"x": np.zeros((2, 3), np.float32)}),
            *(ValueError, "must have shape (2,) or (steps, 2,), got (2, 3); batch_major=True take"),
        ),
        (
            lambda: made().add(made().init(), {"x": np.zeros(3, np.float32)}, batch_major=True),
            *(ValueError, "batch_major=True needs a buffer made with num_envs, got num_envs=None"),
        ),
        (lambda: made().init(alpha="x"), TypeError, "alpha must be a number, got 'x'"),
        (lambda: made().init(alhpa=0.6), TypeError, "'alhpa'; did you mean alpha?"),
    ],
    "replay.Ring": [
        (lambda: replay.Ring(8.0), TypeError, "capacity must be an int, got 8.0"),
        (lambda: replay.Ring(8, True), TypeError, "num_envs must be an int, got True"),
        (lambda: replay.Ring(8, window=0), ValueError, "window must be at least 1, got 0"),
    ],
    "replay.amper_fr": [
        (lambda: replay.amper_fr("x"), ValueError, "mode must be one of exact, prefix, dither"),
        (lambda: replay.amper_fr(groups=20.5), TypeError, "groups must be an int, got 20.5"),
        (lambda: replay.amper_fr(key_bits=12), ValueError, "key_bits must be one of (16, 32), got"),
        (lambda: replay.amper_fr(form="x"), ValueError, "form must be one of auto, rejection, mat"),
    ],
    "replay.amper_k": [
        (lambda: replay.amper_k(groups=0), ValueError, "groups must be from 4 to 256, got 0"),
        (lambda: replay.amper_k(form=None), ValueError, "form must be one of auto, rejection, mat"),
    ],
    "replay.prioritised": [
        (lambda: replay.prioritised(None), ValueError, "form must be one of auto, tree, native, "),
    ],
    "replay.rank_based": [
        (lambda: replay.rank_based(0), ValueError, "sort_after must be finite and above 0, got 0"),
        (lambda: replay.rank_based(INF), ValueError, "must be finite and above 0, got inf"),
        (lambda: replay.rank_based("x"), TypeError, "sort_after must be a number, got 'x'"),
    ],
    "replay.newest": [
        (lambda: replay.newest(STEP, 2), TypeError, "example must have a next_observation, got N"),
        (lambda: replay.newest(FINAL, 0), ValueError, "num_envs must be at least 1, got 0"),
    ],
    "replay.make_index": [
        (
            lambda: replay.make_index(RING, replay.uniform()(RING, False), 0),
            *(ValueError, "batch_size must be at least 1, got 0"),
        ),
    ],
    "replay.make_store": [
        (lambda: replay.make_store(ITEM, 0), ValueError, "capacity must be from 1 to 10737"),
    ],
    "replay.importance_weights": [
        (lambda: replay.importance_weights(ONES, -1), ValueError, "beta must be finite and at lea"),
        (lambda: replay.importance_weights(ONES, "x"), TypeError, "beta must be a number, got 'x'"),
        (lambda: replay.importance_weights(ONES, [1, 2]), ValueError, "beta must be a scalar, got"),
    ],
    "replay.n_step": [
        (lambda: n_step(discount=ONES[:2]), AssertionError, "assert_equal_shape_prefix failed"),
        (lambda: n_step(truncated=VALID[:1]), AssertionError, "assert_equal_shape_prefix failed"),
        (lambda: n_step(STEPS[:0], ONES[:0]), AssertionError, "assert_axis_dimension_gt failed"),
        (lambda: n_step(gamma=NAN), ValueError, "gamma must be from 0 to 1, got nan"),
        (lambda: n_step(gamma=1.5), ValueError, "gamma must be from 0 to 1, got 1.5"),
        (lambda: n_step(gamma="x"), TypeError, "gamma must be a number, got 'x'"),
    ],
    "replay.td_priority": [
        (lambda: replay.td_priority(ONES, -1.0), ValueError, "epsilon must be finite and at least"),
        (lambda: replay.td_priority(ONES, NAN), ValueError, "epsilon must be finite and at least"),
    ],
    "replay.sequence_priority": [
        (
            lambda: replay.sequence_priority(STEPS.T, VALID[:, :2]),
            *(AssertionError, "Arrays have different shapes: [(2, 2), (2, 3)]"),
        ),
        (lambda: replay.sequence_priority(STEPS, ONES), AssertionError, "has type float32"),
        (
            lambda: replay.sequence_priority(STEPS.T, VALID, eta=2.0),
            *(ValueError, "eta must be from 0 to 1, got 2.0"),
        ),
        (
            lambda: replay.sequence_priority(STEPS.T, VALID, epsilon=NAN),
            *(ValueError, "epsilon must be finite and at least 0, got nan"),
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)
