"""Values and returns against float64 NumPy loops, chains solved by hand, and known optima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick

from accel_rl import envs, tabular
from accel_rl.envs import dynamics
from accel_rl.types import MDP


def random_mdp(seed, num_states=7, num_actions=3, outcomes=2, time_limit=12):
    rng = np.random.default_rng(seed)
    shape = (num_states, num_actions, outcomes)
    return MDP(
        probability=jnp.asarray(rng.dirichlet(np.ones(outcomes), shape[:2]), jnp.float32),
        next_state=jnp.asarray(rng.integers(0, num_states, shape), jnp.int32),
        reward=jnp.asarray(rng.normal(size=shape), jnp.float32),
        terminated=jnp.asarray(rng.random(shape) < 0.15),
        initial=jnp.asarray(rng.dirichlet(np.ones(num_states)), jnp.float32),
        time_limit=time_limit,
    )


def random_policy(seed, mdp):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(mdp.num_actions), mdp.num_states)
    return jnp.asarray(weights, jnp.float32)


def chain():
    """0 -> 1 -> end with rewards 1 and 10 by action 0; action 1 stays and pays 2."""
    return MDP(
        probability=jnp.ones((2, 2, 1), jnp.float32),
        next_state=jnp.asarray([[[1], [0]], [[1], [1]]], jnp.int32),
        reward=jnp.asarray([[[1], [2]], [[10], [2]]], jnp.float32),
        terminated=jnp.asarray([[[False], [False]], [[True], [False]]]),
        initial=jnp.asarray([0.5, 0.5], jnp.float32),
    )


def numpy_chain(mdp, policy):
    """Transition matrix of the continuing steps [S, S] and rewards [S] under a policy, float64."""
    if np.ndim(policy) == 1:
        policy = np.eye(mdp.num_actions)[np.asarray(policy)]
    matrix = np.zeros((mdp.num_states, mdp.num_states))
    reward = np.zeros(mdp.num_states)
    for (s, a, k), p in np.ndenumerate(np.asarray(mdp.probability, np.float64)):
        weight = p * float(policy[s, a])
        reward[s] += weight * float(mdp.reward[s, a, k])
        if not mdp.terminated[s, a, k]:
            matrix[s, int(mdp.next_state[s, a, k])] += weight
    return matrix, reward


def on_host(mdp):
    """The same MDP with NumPy leaves, fast to index from Python."""
    return jax.tree.map(np.asarray, mdp)


CASES = {
    "random": (random_mdp(0), 1e-5),
    "FrozenLake": (envs.make_mdp("FrozenLake-v1"), 1e-5),
    "Cliff, slippery": (envs.make_mdp("CliffWalkingSlippery-v1", time_limit=60), 1e-5),
    "Taxi": (envs.make_mdp("Taxi-v3"), 1e-5),
}


@pytest.mark.parametrize("case", quick.only(["random", "FrozenLake"], CASES))
@pytest.mark.parametrize("kind", ["deterministic", "stochastic"])
def test_policy_evaluation_and_return(case, kind):
    mdp, tolerance = CASES[case]
    policy = random_policy(1, mdp)
    if kind == "deterministic":
        policy = jnp.argmax(policy, axis=1).astype(jnp.int32)
    matrix, reward = numpy_chain(on_host(mdp), np.asarray(policy))
    gamma = 0.95
    expected = np.linalg.solve(np.eye(len(reward)) - gamma * matrix, reward)
    values, action_values = tabular.policy_evaluation(mdp, policy, gamma)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values, expected, atol=tolerance * scale)
    host = on_host(mdp)
    follow = np.where(host.terminated, 0.0, expected[host.next_state])
    backed_up = (host.probability * (host.reward + gamma * follow)).sum(axis=2)
    np.testing.assert_allclose(action_values, backed_up, atol=tolerance * scale)

    alive, total = np.asarray(mdp.initial, np.float64), 0.0
    for _ in range(mdp.time_limit):  # forward in time, where the library goes backward
        total += alive @ reward
        alive = alive @ matrix
    found = tabular.episode_return(mdp, policy)
    np.testing.assert_allclose(found, total, rtol=1e-5)


@pytest.mark.parametrize("case", ["random", "FrozenLake", "Taxi"])
def test_value_iteration(case):
    mdp, tolerance = CASES[case]
    host = on_host(mdp)
    expected = np.zeros(mdp.num_states)
    for _ in range(800):
        follow = np.where(host.terminated, 0.0, expected[host.next_state])
        q = (host.probability.astype(np.float64) * (host.reward + 0.95 * follow)).sum(axis=2)
        expected = q.max(axis=1)
    values, action_values = tabular.value_iteration(mdp, 0.95)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values, expected, atol=tolerance * scale)
    np.testing.assert_allclose(action_values, q, atol=tolerance * scale)
    own, _ = tabular.policy_evaluation(mdp, tabular.greedy_policy(action_values), 0.95)
    np.testing.assert_allclose(own, expected, atol=tolerance * scale)


def test_chain_by_hand():
    mdp = chain()
    forward = jnp.zeros(2, jnp.int32)
    values, action_values = tabular.policy_evaluation(mdp, forward, 0.5)
    np.testing.assert_allclose(values, [6.0, 10.0])
    np.testing.assert_allclose(action_values, [[6.0, 5.0], [10.0, 7.0]])
    # Undiscounted, a chain that ends has values too.
    np.testing.assert_allclose(tabular.policy_evaluation(mdp, forward, 1.0)[0], [11.0, 10.0])
    # At 0.9 staying for ever, 2 / (1 - 0.9) = 20, is better than 10.
    np.testing.assert_allclose(tabular.value_iteration(mdp, 0.9)[0], [20.0, 20.0], rtol=1e-5)
    np.testing.assert_allclose(tabular.value_iteration(mdp, 0.5)[0], [6.0, 10.0])
    # An episode from 0 earns 1 in one step and 11 in two or more, from 1 always 10.
    for horizon, expected in [(1, 5.5), (2, 10.5), (30, 10.5)]:
        assert tabular.episode_return(mdp, forward, horizon) == expected
    # The best of 3 steps: 2 + 2 + 10 in state 1; 2 + 1 + 10 or 1 + 2 + 10 from state 0.
    assert tabular.optimal_return(mdp, 3) == 13.5


def test_known_optima():
    lake, taxi = envs.make_mdp("FrozenLake-v1"), envs.make_mdp("Taxi-v3")
    greedy = tabular.greedy_policy(tabular.value_iteration(lake, 0.95)[1])
    assert tabular.episode_return(lake, greedy) == pytest.approx(0.7298, abs=1e-4)
    assert tabular.optimal_return(lake) == pytest.approx(0.7442, abs=1e-4)
    greedy = tabular.greedy_policy(tabular.value_iteration(taxi, 0.95)[1])
    assert tabular.episode_return(taxi, greedy) == pytest.approx(7.93, abs=1e-4)
    assert tabular.optimal_return(taxi) == pytest.approx(7.93, abs=1e-4)
    cliff = envs.make_mdp("CliffWalking-v1")
    greedy = tabular.greedy_policy(tabular.value_iteration(cliff, 0.95)[1])
    assert tabular.episode_return(cliff, greedy, 100) == -13


def test_policies():
    values = jnp.asarray([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    greedy = tabular.greedy_policy(values)
    assert greedy.dtype == jnp.int32
    assert greedy.tolist() == [1, 0]
    mixed = tabular.epsilon_greedy(values, 0.3)
    np.testing.assert_allclose(mixed, [[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(tabular.uniform_policy(2, 4), np.full((2, 4), 0.25))
    batched = tabular.epsilon_greedy(jnp.stack([values, values]), jnp.float32(0))
    assert batched.shape == (2, 2, 3)


def test_under_jit_and_vmap():
    mdp = random_mdp(3)
    q = jnp.asarray(np.random.default_rng(0).normal(size=(4, 7, 3)), jnp.float32)
    gammas = jnp.asarray([0.1, 0.5, 0.9, 0.99], jnp.float32)

    @jax.jit
    @jax.vmap
    def both(q, gamma):
        policy = tabular.greedy_policy(q)
        values, _ = tabular.policy_evaluation(mdp, policy, gamma)
        best, _ = tabular.value_iteration(mdp, gamma)
        return values, best, tabular.episode_return(mdp, policy)

    values, best, returns = both(q, gammas)
    for row in range(4):
        policy = tabular.greedy_policy(q[row])
        alone, _ = tabular.policy_evaluation(mdp, policy, gammas[row])
        np.testing.assert_allclose(values[row], alone, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(returns[row], tabular.episode_return(mdp, policy), rtol=1e-5)
        assert (best[row] >= values[row] - 1e-3).all()


@pytest.mark.parametrize(
    "name", quick.only(["FrozenLake-v1"], ["FrozenLake-v1", "Taxi-v4", "random"])
)
@pytest.mark.parametrize("kind", quick.only(["stochastic"], ["deterministic", "stochastic"]))
def test_simulation_agrees_with_dynamic_programming(name, kind):
    """z-test at 5 standard errors: false alarm 6e-7 a case, and the seed is fixed besides."""
    rain = {"is_rainy": True} if name == "Taxi-v4" else {}
    mdp = random_mdp(4) if name == "random" else envs.make_mdp(name, **rain)
    _, q = tabular.value_iteration(mdp, 0.95)
    policy = tabular.greedy_policy(q)
    if kind == "stochastic":
        policy = tabular.epsilon_greedy(q, 0.3)
    sampler = dynamics.make_sampler(mdp)
    mean, error = tabular.monte_carlo_return(
        jax.tree_util.Partial(dynamics.reset, sampler),
        jax.tree_util.Partial(dynamics.step, sampler),
        policy,
        jax.random.key(5),
        num_episodes=4000,
        horizon=mdp.time_limit,
    )
    assert error > 0
    assert abs(float(mean - tabular.episode_return(mdp, policy))) < 5 * float(error)


def test_simulation_of_a_certain_return():
    """Plain functions as environment: every episode earns 1 a step for 3 steps, then ends."""

    def reset(bits):
        return jnp.zeros(bits.shape, jnp.int32), bits

    def step(state, action, bits):
        return state + action, jnp.ones(bits.shape, jnp.float32), state + action == 3, bits

    always = jnp.asarray([[0.0, 1.0]] * 4, jnp.float32)
    for policy in (always, jnp.ones(4, jnp.int32)):
        mean, error = tabular.monte_carlo_return(reset, step, policy, jax.random.key(0), 64, 9)
        assert (float(mean), float(error)) == (3.0, 0.0)
    mean, _ = tabular.monte_carlo_return(reset, step, always, jax.random.key(0), 64, 2)
    assert mean == 2.0


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros(3, np.int32), r"shape \(7,\), got \(3,\).*7 states and 3 actions"),
        (np.full(7, 3), r"policy\[0\] is 3, not an action from 0 to 2"),
        (np.full((7, 3), 0.5), r"policy\[0\] is .*sum to 1"),
        (np.full((7, 3), np.nan), "sum to 1"),
        (np.zeros(7), r"integer \[S\] or float \[S, A\], got float"),
        (np.zeros((7, 3), bool), r"integer \[S\] or float \[S, A\], got bool"),
    ],
)
def test_bad_policies_are_refused(policy, message):
    mdp = random_mdp(0)
    with pytest.raises(ValueError, match=message):
        tabular.episode_return(mdp, policy)
    with pytest.raises(ValueError, match=message):
        tabular.policy_evaluation(mdp, policy, 0.9)


def test_bad_numbers_are_refused():
    mdp, endless = random_mdp(0), random_mdp(0, time_limit=None)
    policy = jnp.zeros(7, jnp.int32)
    with pytest.raises(ValueError, match=r"gamma must be from 0 to 1, got 1\.1"):
        tabular.policy_evaluation(mdp, policy, 1.1)
    with pytest.raises(ValueError, match="gamma must be from 0 to 1, got nan"):
        tabular.value_iteration(mdp, float("nan"))
    with pytest.raises(ValueError, match="epsilon must be from 0 to 1, got -1"):
        tabular.epsilon_greedy(jnp.zeros((2, 2)), -1)
    with pytest.raises(ValueError, match="this MDP has no time limit"):
        tabular.episode_return(endless, policy)
    with pytest.raises(ValueError, match="this MDP has no time limit"):
        tabular.optimal_return(endless)
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        tabular.episode_return(mdp, policy, 0)
    with pytest.raises(ValueError, match="num_episodes must be at least 2, got 1"):
        tabular.monte_carlo_return(None, None, policy, jax.random.key(0), 1, 5)
