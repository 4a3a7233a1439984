"""n-step returns against a plain loop, alone and as a memory's targets."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import transitions_of
from hypothesis import strategies as st
from reference import Step, after, play, target

from accel_rl import replay
from accel_rl.types import Transition

N = 4


@functools.partial(jax.jit, static_argnames="has_final")
def returns(rewards, discounts, truncated, gamma, has_final=True):
    mapped = 0 if truncated is not None else None
    one = jax.vmap(replay.n_step, in_axes=(0, 0, mapped, None, None))
    return one(rewards, discounts, truncated, gamma, has_final)


def windows(log, field, n, dtype):
    values = np.array([getattr(step, field) for step in log], dtype)
    return np.lib.stride_tricks.sliding_window_view(values, n)


@pytest.mark.parametrize("has_final", [True, False])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_windows_of_a_long_log(n, has_final):
    (log,) = play(np.random.default_rng(n), 300, 1)
    found = returns(
        windows(log, "reward", n, np.float32),
        windows(log, "discount", n, np.float32),
        windows(log, "truncated", n, bool),
        jnp.float32(0.97),
        has_final,
    )
    assert [x.dtype for x in found] == [np.float32, np.float32, np.int32]
    expected = [
        target(log, t, n, 0.97, has_final)
        for t in range(300 - n + 1)
        if has_final or not log[t].truncated
    ]
    kept = [has_final or not step.truncated for step in log[: 300 - n + 1]]
    for mine, theirs in zip(found, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(mine[np.array(kept)], theirs, rtol=1e-5, atol=1e-6)


@hypothesis.given(
    st.lists(
        st.tuples(st.floats(-100, 100, width=32), st.booleans(), st.booleans()),
        min_size=N,
        max_size=N,
    ),
    st.floats(0, 1, width=32),
    st.booleans(),
)
def test_any_window(steps, gamma, has_final):
    log = [
        Step(None, None, np.float32(reward), 0.0 if kind else 1.0, cut and not kind, None)
        for reward, kind, cut in steps
    ]
    hypothesis.assume(has_final or not log[0].truncated)
    found = returns(
        np.array([[step.reward for step in log]], np.float32),
        np.array([[step.discount for step in log]], np.float32),
        np.array([[step.truncated for step in log]]),
        np.float32(gamma),
        has_final,
    )
    reward, discount, steps = target(log, 0, N, gamma, has_final)
    np.testing.assert_allclose(found.reward[0], reward, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.discount[0], discount, rtol=1e-5, atol=1e-35)
    assert found.steps[0] == steps


def test_gamma_is_a_leaf_and_truncation_may_be_absent():
    (log,) = play(np.random.default_rng(0), 50, 1, truncate=0)
    rewards, discounts = (windows(log, f, N, np.float32) for f in ("reward", "discount"))
    gammas = np.float32([0, 0.5, 0.99, 1])
    many = jax.vmap(returns, in_axes=(None, None, None, 0))(rewards, discounts, None, gammas)
    for k, gamma in enumerate(gammas):
        for t in range(50 - N + 1):
            reward, discount, steps = target(log, t, N, float(gamma))
            np.testing.assert_allclose(many.reward[k, t], reward, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(many.discount[k, t], discount, rtol=1e-5)
            assert many.steps[k, t] == steps


@pytest.mark.parametrize("stop", ["end", "truncation"])
def test_what_lies_behind_the_cut_is_not_read(stop):
    discounts = np.float32([[1, 1 - (stop == "end"), np.nan, np.inf]])
    truncated = np.array([[False, stop == "truncation", True, False]])
    found = returns(np.float32([[1, 2, np.nan, np.inf]]), discounts, truncated, np.float32(0.5))
    assert found.reward[0] == 2
    assert found.discount[0] == (0 if stop == "end" else 0.25)
    assert found.steps[0] == 2


def test_no_bootstrap_from_an_observation_that_nobody_has():
    """Truncated at the third step: the window ends at the second, where there is one."""
    found = returns(
        np.ones((1, N), np.float32),
        np.ones((1, N), np.float32),
        np.array([[False, False, True, False]]),
        np.float32(0.5),
        has_final=False,
    )
    assert (found.reward[0], found.discount[0], found.steps[0]) == (1.5, 0.25, 2)


@pytest.mark.parametrize(
    ("n", "envs", "truncate", "has_final"),
    [(1, None, 0.2, True), (3, 4, 0.2, True), (3, 4, 0.2, False), (2, None, 0.0, False)],
)
def test_targets_of_a_memory(n, envs, truncate, has_final):
    """Every complete item after each add, around the end of the ring."""
    rows, steps, gamma = 7, 23, 0.9
    logs = play(np.random.default_rng(n), steps, envs or 1, truncate=truncate, shape=(2,))
    example = jax.tree.map(lambda x: x[0, 0], transitions_of([[log[0] for log in logs]], has_final))
    if not truncate:
        example = Transition(example.observation, example.action, example.reward, example.discount)
    capacity = rows * (envs or 1)
    made = replay.make(example, capacity, 4, num_envs=envs, n_step=n, least_size=1)
    index, store = made.parts
    add, gather = jax.jit(made.add), jax.jit(store.gather)
    state = made.init()
    window = n + (not has_final)
    for t in range(steps):
        row = transitions_of([[log[t] for log in logs]], has_final)
        row = jax.tree.map(lambda x: x[0] if envs else x[0, 0], row)
        if not truncate:
            row = Transition(row.observation, row.action, row.reward, row.discount)
        state = add(state, row)
        complete = range(max(0, t + 1 - rows), t + 2 - window)
        assert index.span(state.index).size == len(complete) * (envs or 1)
        everything = gather(state.store, np.arange(capacity, dtype=np.int32), np.float32(gamma))
        for start in complete:
            for env, log in enumerate(logs):
                if log[start].truncated and not has_final:
                    continue
                slot = start % rows * (envs or 1) + env
                batch = jax.tree.map(lambda x, slot=slot: x[slot], everything)
                reward, discount, k = target(log, start, n, gamma, has_final)
                np.testing.assert_allclose(batch.reward, reward, rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(batch.discount, discount, rtol=1e-6)
                np.testing.assert_array_equal(batch.observation, log[start].observation)
                expected = after(log, start + k - 1, has_final)
                np.testing.assert_array_equal(batch.next_observation, expected)


@pytest.mark.long  # samples without jit
def test_a_step_that_ended_and_was_truncated_has_a_target():
    """Without final observations too: nothing is bootstrapped from, and the reward counts."""
    reward, discount = jnp.float32([1, 2, 4]), jnp.float32([1, 0, 1])
    truncated = jnp.asarray([False, True, False])
    found = replay.n_step(reward, discount, truncated, 0.5, final_observations=False)
    np.testing.assert_array_equal(found.reward, 1 + 0.5 * 2)
    np.testing.assert_array_equal(found.discount, 0)
    example = Transition(np.float32(0), np.int32(0), np.float32(0), np.float32(1), np.bool_(False))
    made = replay.make(example, 8, 64, least_size=1)
    numbers = np.arange(4, dtype=np.float32)
    ended = np.float32([1, 1, 0, 1])
    cut = np.asarray([False, True, True, False])
    log = Transition(numbers, np.zeros(4, np.int32), numbers, ended, cut)
    drawn = made.sample(made.add(made.init(), log), jax.random.key(0), gamma=0.9)
    assert set(np.asarray(drawn.batch.observation)) == {0, 2}  # row 3 waits for what follows it
