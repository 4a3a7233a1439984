"""MDPs estimated from logs: against counts in plain Python, and against the MDP of the log."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_rl import datasets, envs, tabular
from accel_rl.types import TabularTransition

STATES, ACTIONS, OUTCOMES = 3, 2, 6  # all (s', terminated) of three states
ROW = st.tuples(
    st.integers(0, STATES - 1),
    st.integers(0, ACTIONS - 1),
    st.sampled_from([-1.0, 0.0, 0.1, 20.0]),
    st.integers(0, STATES - 1),
    st.booleans(),
)
fitted = jax.jit(lambda log: tabular.fit_mdp(log, STATES, ACTIONS, num_outcomes=OUTCOMES))


def log_of(rows, length):
    """Rows as columns, repeated up to one length, so that all logs share a program."""
    state, action, reward, after, ended = zip(*(rows * length)[:length], strict=True)
    return TabularTransition(
        jnp.array(state, jnp.int32),
        jnp.array(action, jnp.int32),
        jnp.array(reward, jnp.float32),
        jnp.array(after, jnp.int32),
        1 - jnp.array(ended, jnp.float32),
        jnp.zeros(length, jnp.int32),
    )


def counted(rows):
    """(s, a) -> (s', terminated) -> rewards."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for state, action, reward, after, ended in rows:
        found[state, action][after, ended].append(reward)
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=40))
def test_counts_and_mean_rewards(rows):
    length = 40
    mdp, found = fitted(log_of(rows, length)), counted((rows * length)[:length])
    envs.dynamics.make_sampler(mdp)  # the tables are those of an MDP
    for state in range(STATES):
        for action in range(ACTIONS):
            here = (state, action)
            outcomes = {
                (int(after), bool(ended)): (float(share), float(reward))
                for share, after, reward, ended in zip(
                    mdp.probability[here],
                    mdp.next_state[here],
                    mdp.reward[here],
                    mdp.terminated[here],
                    strict=True,
                )
                if share > 0
            }
            if here not in found:
                assert outcomes == {(0, True): (1.0, 0.0)}
                continue
            total = sum(map(len, found[here].values()))
            assert list(outcomes) == sorted(found[here])
            for outcome, rewards in found[here].items():
                share, reward = outcomes[outcome]
                assert share == pytest.approx(len(rewards) / total, rel=1e-6)
                assert reward == pytest.approx(np.mean(rewards), rel=1e-5, abs=1e-6)
    seen = np.bincount([row[0] for row in (rows * length)[:length]], minlength=STATES)
    np.testing.assert_allclose(mdp.initial, seen / length, rtol=1e-6)


def test_millions_of_rewards_lose_no_digits():
    reward = np.where(np.arange(2**20) % 2, np.float32(0.1), np.float32(0))
    zeros = np.zeros(2**20, np.int32)
    rows = TabularTransition(zeros, zeros, reward, zeros, np.ones(2**20, np.float32), zeros)
    found = tabular.fit_mdp(rows, 1, 1).reward.item()
    assert found == pytest.approx(reward.astype(float).mean(), rel=1e-6)


@pytest.mark.parametrize(("name", "least"), [("Taxi-v3", 7.93), ("FrozenLake-v1", 0.72)])
def test_the_policy_of_a_log_is_nearly_the_best(name, least):
    mdp = envs.make_mdp(name)
    log = datasets.collect(mdp, "random", 300_000, seed=0, environment=name).transitions
    found = tabular.fit_mdp(log, mdp.num_states, mdp.num_actions)
    policy = tabular.greedy_policy(tabular.value_iteration(found, 0.95)[1])
    assert float(tabular.episode_return(mdp, policy)) >= least - 1e-4
    if name == "Taxi-v3":  # deterministic: the tables of visited pairs are the environment's
        visited = np.asarray(found.probability[..., 0] == 1) & ~np.asarray(found.terminated[..., 0])
        np.testing.assert_array_equal(
            np.asarray(found.next_state)[visited, 0], np.asarray(mdp.next_state)[visited, 0]
        )
        np.testing.assert_array_equal(
            np.asarray(found.reward)[visited, 0], np.asarray(mdp.reward)[visited, 0]
        )


def test_logs_are_fitted_together_under_vmap():
    rows = [[(0, 0, 1.0, 1, False), (1, 1, 0.1, 2, True)], [(2, 1, -1.0, 0, False)]]
    logs = [log_of(each, 8) for each in rows]
    together = jax.vmap(fitted)(jax.tree.map(lambda *columns: jnp.stack(columns), *logs))
    for number, log in enumerate(logs):
        alone = fitted(log)
        jax.tree.map(lambda a, b, n=number: np.testing.assert_array_equal(a[n], b), together, alone)


def test_outcomes_that_have_no_place_are_seen():
    rows = [(0, 0, 1.0, 1, False), (0, 0, 1.0, 2, False)]
    with pytest.raises(ValueError, match="probability"):
        envs.dynamics.make_sampler(tabular.fit_mdp(log_of(rows, 8), 3, 2, num_outcomes=1))
    with pytest.raises(ValueError, match="num_outcomes must be given"):
        jax.eval_shape(lambda log: tabular.fit_mdp(log, 3, 2), log_of(rows, 8))


@pytest.mark.parametrize(
    "row", [(3, 0, 0.0, 0, False), (0, 2, 0.0, 0, False), (0, 0, 0.0, 3, True)]
)
def test_indices_out_of_range_are_refused(row):
    with pytest.raises(ValueError, match=r"row 0: .* must be in \[0, "):
        tabular.fit_mdp(log_of([row], 8), STATES, ACTIONS)
