"""DQN and its variants: values in closed form, targets, weights, errors, arguments."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import quick

from accel_rl import agents
from accel_rl.networks import MLP, ConvTorso, QNetwork
from accel_rl.types import Batch, Box, Discrete

VARIANTS = {
    "plain": {"double": False},
    "double": {},
    "huber": {"loss": "huber"},
    "dueling": {"dueling": True},
    "clipped": {"max_gradient_norm": 0.5},
    "c51": {"distributional": "c51", "value_range": (-1, 5), "double": False},
    "c51 double dueling": {"distributional": "c51", "value_range": (-1, 5), "dueling": True},
    "quantile": {"distributional": "quantile", "num_atoms": 8, "double": False},
    "quantile double dueling": {"distributional": "quantile", "num_atoms": 8, "dueling": True},
}

# Every transition of an MDP of three states and two actions: the next state (none: the end), and
# the reward. In state 0 the greater reward leads to the lesser value.
NEXT = np.array([[1, 2], [0, None], [2, 2]])
REWARD = np.float32([[0, 0.3], [1, 1.5], [0.25, 0]])
GAMMA = np.float32(0.5)


def optimal():
    """The optimal values [3, 2], by value iteration."""
    values = np.zeros((3, 2))
    for _ in range(60):
        best = [0 if state is None else values[state].max() for state in NEXT.flat]
        values = REWARD + GAMMA * np.reshape(best, (3, 2))
    return values


def all_transitions():
    ended = np.equal(NEXT, None).ravel()
    return Batch(
        observation=jnp.repeat(jnp.arange(3, dtype=jnp.int32), 2),
        action=jnp.tile(jnp.arange(2, dtype=jnp.int32), 3),
        reward=jnp.asarray(REWARD.ravel()),
        discount=jnp.where(ended, 0, GAMMA).astype(jnp.float32),
        next_observation=jnp.asarray(np.where(ended, 2, NEXT.ravel()).astype(np.int32)),
    )


def make(space=Discrete(3), num_actions=2, **options):  # noqa: B008
    return agents.dqn(space, Discrete(num_actions), hidden=(16,), **options)


def trained(agent, batch, updates, **hyper):
    """The state after so many updates by the same batch, and what the last one found."""
    weights = jnp.ones(batch.reward.shape[0], jnp.float32)

    @jax.jit
    def run():
        state = agent.init(jax.random.key(0), **hyper)
        zeros = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(agent.learn, state, batch, weights, jax.random.key(0))[1],
        )

        def once(_, carry):
            return agent.learn(carry[0], batch, weights, jax.random.key(0))

        return jax.lax.fori_loop(0, updates, once, (state, zeros))

    return run()


@pytest.fixture(scope="module", params=quick.only(["double", "c51 double dueling"], VARIANTS))
def learned(request):
    """A variant, trained by the transitions of the MDP."""
    agent = make(**VARIANTS[request.param])
    state, found = trained(agent, all_transitions(), 2000, learning_rate=0.01, target_period=10)
    return agent, state, found


def test_every_variant_learns_the_optimal_policy_and_value(learned):
    agent, state, found = learned
    best = optimal()
    observation = jnp.arange(3, dtype=jnp.int32)
    action, _ = agent.act(agent.policy(state), (), observation, jax.random.key(0), 0, explore=False)
    np.testing.assert_array_equal(action, best.argmax(axis=1))
    np.testing.assert_allclose(found.metrics["value"], best.mean(), atol=0.02)
    np.testing.assert_allclose(found.td_error, 0, atol=0.02)


def test_every_variant_gives_actors_the_error_it_learns_from(learned):
    agent, state, _ = learned
    batch = dataclasses.replace(all_transitions(), reward=jnp.full(6, 2, jnp.float32))
    key = jax.random.key(0)
    _, found = jax.jit(agent.learn)(state, batch, jnp.ones(6, jnp.float32), key)
    error = jax.jit(agent.td_error)(agent.critics(state), batch, key)
    np.testing.assert_allclose(error, found.td_error, rtol=1e-4, atol=1e-5)
    assert (np.abs(error) > 0.01).all()


@pytest.mark.parametrize("name", quick.only(["double"], ["double", "c51", "quantile"]))
def test_a_constant_reward_is_worth_its_geometric_sum(name):
    """One state: value = reward / (1 - discount); 0.729 is 0.9 cubed, as of a 3-step batch."""
    agent = make(Box((-1.0,), (1.0,), (1,)), **VARIANTS[name])
    rewards = jnp.array([1, 1, -0.5, 0.5], jnp.float32)
    discounts = jnp.array([0.5, 0, 0.5, 0.729], jnp.float32)

    def value(reward, discount):
        batch = Batch(
            observation=jnp.ones((2, 1), jnp.float32),
            action=jnp.arange(2, dtype=jnp.int32),
            reward=jnp.full(2, reward),
            discount=jnp.full(2, discount),
            next_observation=jnp.ones((2, 1), jnp.float32),
        )
        _, found = trained(agent, batch, 1500, learning_rate=0.01, target_period=10)
        return found.metrics["value"]

    values = jax.jit(jax.vmap(value))(rewards, discounts)
    np.testing.assert_allclose(values, rewards / (1 - discounts), atol=0.02)


@pytest.mark.parametrize("name", quick.only(["quantile"], ["double", "c51", "quantile"]))
def test_random_returns_are_learned_with_their_distribution(name):
    """Rewards 0 and 3, as often: the mean is 1.5; what is left of the error tells them apart."""
    agent = make(**VARIANTS[name])
    batch = Batch(
        observation=jnp.zeros(2, jnp.int32),
        action=jnp.zeros(2, jnp.int32),
        reward=jnp.array([0, 3], jnp.float32),
        discount=jnp.zeros(2, jnp.float32),
        next_observation=jnp.zeros(2, jnp.int32),
    )
    state, found = trained(agent, batch, 1500, learning_rate=0.01)
    if name == "c51":  # log 2 nats from a mass at either return, and no less is possible
        np.testing.assert_allclose(found.td_error, np.log(2), atol=0.05)
    else:
        np.testing.assert_allclose(found.td_error, [-1.5, 1.5], atol=0.05)
    if name == "quantile":
        network = QNetwork(MLP((16,)), 2, num_atoms=8)
        quantiles = network.apply(state.params, jax.nn.one_hot(jnp.zeros(1, jnp.int32), 3))[0, 0]
        # Where the pulls of both rewards are even: share * 1 = (1 - share) * (way to the nearer).
        share = (np.arange(8) + 0.5) / 8
        even = np.where(share < 0.5, share / (1 - share), 3 - (1 - share) / share)
        np.testing.assert_allclose(quantiles, even, atol=0.05)


@pytest.mark.parametrize("double", [False, True])
def test_who_chooses_the_action_of_the_target(double):
    agent = make(double=double, num_actions=6)
    state = agent.init(jax.random.key(0))
    state = dataclasses.replace(state, target=agent.init(jax.random.key(1)).params)
    batch = dataclasses.replace(all_transitions(), discount=jnp.full(6, 0.9, jnp.float32))
    network = QNetwork(MLP((16,)), 6)
    online, chooses, target = (
        np.asarray(network.apply(params, jax.nn.one_hot(observation, 3)))
        for params, observation in (
            (state.params, batch.observation),
            (state.params, batch.next_observation),
            (state.target, batch.next_observation),
        )
    )
    assert (chooses.argmax(axis=1) != target.argmax(axis=1)).any()
    best = (chooses if double else target).argmax(axis=1)
    rows = np.arange(6)
    expected = batch.reward + np.float32(0.9) * target[rows, best] - online[rows, batch.action]
    error = agent.td_error(agent.critics(state), batch, jax.random.key(0))
    np.testing.assert_allclose(error, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", quick.only(["double"], ["double", "c51", "quantile"]))
def test_weights_scale_what_each_item_teaches(name):
    """By plain gradient descent: a step by weights is the weighted mean of steps by each item."""
    agent = make(optimiser=optax.identity(), **VARIANTS[name])
    state = agent.init(jax.random.key(0), learning_rate=1)
    batch, weights = all_transitions(), jnp.array([0, 1, 0.5, 0, 0.25, 1], jnp.float32)

    def step(batch, weights):
        after = agent.learn(state, batch, weights, jax.random.key(0))[0].params
        return jax.tree.map(lambda new, old: new - old, after, state.params)

    one = jax.tree.map(lambda leaf: leaf[:, None], batch)
    each = jax.jit(jax.vmap(step, (0, None)))(one, jnp.ones(1, jnp.float32))
    expected = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, 1) / np.float32(6), each)
    found = jax.jit(step)(batch, weights)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert np.abs(a).max() > 1e-5


def test_gradients_are_clipped_to_the_norm():
    batch, ones = all_transitions(), jnp.ones(6, jnp.float32)
    batch = dataclasses.replace(batch, reward=1000 * batch.reward)
    given = optax.chain(optax.clip_by_global_norm(0.01), optax.scale_by_adam())
    found = []
    for options in ({"max_gradient_norm": 0.01}, {"optimiser": given}, {}):
        agent = make(**options)
        state = agent.init(jax.random.key(0))
        found.append(jax.jit(agent.learn)(state, batch, ones, jax.random.key(0))[0].optimiser)
    clipped, same, free = [jax.tree.leaves(optax.tree.get(each, "mu")) for each in found]
    for a, b in zip(clipped, same, strict=True):
        np.testing.assert_array_equal(a, b)
    norm = optax.tree.norm(clipped)  # the first moment is a tenth of the gradient
    np.testing.assert_allclose(norm, 0.001, rtol=1e-4)
    assert optax.tree.norm(free) > 1


def equal(a, b):
    return jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), a, b))


def test_the_target_network_is_copied_once_a_period():
    agent = make()
    state = agent.init(jax.random.key(0), target_period=3)
    learn = jax.jit(agent.learn)
    targets = [state.target]
    for update in range(1, 7):
        state, _ = learn(state, all_transitions(), jnp.ones(6, jnp.float32), jax.random.key(0))
        copied = jax.tree.all(
            jax.tree.map(lambda a, b: bool((a == b).all()), *agent.critics(state))
        )
        assert copied == (update % 3 == 0)
        targets.append(state.target)
    same = [equal(old, new) for old, new in itertools.pairwise(targets)]
    assert same == [True, True, False, True, True, False]


@pytest.mark.long  # compiles learning twice
def test_learning_rates_are_swept_by_vmap():
    agent, batch, ones = make(), all_transitions(), jnp.ones(6, jnp.float32)

    @jax.jit
    def step(rate):
        state = agent.init(jax.random.key(0), learning_rate=rate)
        return agent.learn(state, batch, ones, jax.random.key(0))[0].params

    rates = jnp.array([0.0, 1e-3, 1e-1], jnp.float32)
    together = jax.jit(jax.vmap(step))(rates)
    for n, rate in enumerate(rates):
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(step(rate)), strict=True):
            np.testing.assert_allclose(a[n], b, rtol=1e-5, atol=1e-6)
    start = agent.init(jax.random.key(0)).params
    ways = jax.tree.map(lambda a, b: jnp.abs(a - b).reshape(3, -1).max(1), together, start)
    moved = np.max(jax.tree.leaves(ways), axis=0)
    # Adam's first step is as long as its rate.
    np.testing.assert_allclose(moved, rates, rtol=1e-2, atol=1e-7)


def test_a_target_that_follows_by_a_share():
    agent, batch, ones = make(), all_transitions(), jnp.ones(6, jnp.float32)
    state = agent.init(jax.random.key(0), learning_rate=0.1, tau=0.3, target_period=1)
    after = jax.jit(agent.learn)(state, batch, ones, jax.random.key(0))[0]
    wanted = jax.tree.map(lambda a, b: 0.7 * a + 0.3 * b, state.target, after.params)
    for a, b in zip(jax.tree.leaves(after.target), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_an_optimiser_with_a_learning_rate_is_refused():
    make(optimiser=optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_rms()))
    with pytest.raises(ValueError, match="optimiser must give directions of descent"):
        make(optimiser=optax.adam(1e-3))


def test_more_actions_than_random_ones_can_be_made_are_refused():
    with pytest.raises(TypeError, match="dqn needs a Discrete action space of 2 to 65,536"):
        agents.dqn(Discrete(2), Discrete(65_537))


@pytest.mark.long  # compiles convolutions
def test_a_torso_by_name_is_that_module():
    space = Box(0.0, 1.0, (10, 10, 4))
    named = agents.dqn(space, Discrete(3), torso="convolution", filters=(4,), hidden=(8,))
    given = agents.dqn(space, Discrete(3), torso=ConvTorso(filters=(4,), hidden=(8,)))
    made = (agent.init(jax.random.key(0)).params for agent in (named, given))
    jax.tree.map(np.testing.assert_array_equal, *made)


def test_pictures_are_read_by_a_convolutional_torso():
    shape = (6, 6, 2)
    size = int(np.prod(shape))
    space = Box((0.0,) * size, (1.0,) * size, shape, np.dtype(bool))
    agent = agents.dqn(space, Discrete(3), torso=ConvTorso(filters=(4,), hidden=(8,)))
    state = jax.jit(agent.init)(jax.random.key(0))
    pictures = jax.random.bernoulli(jax.random.key(1), 0.5, (5, *shape))
    act = jax.jit(agent.act, static_argnames="explore")
    action, _ = act(agent.policy(state), (), pictures, jax.random.key(2), 0, explore=False)
    assert action.shape == (5,)
    assert action.dtype == jnp.int32
    batch = Batch(pictures, action, jnp.ones(5), jnp.zeros(5), pictures)
    after, found = jax.jit(agent.learn)(state, batch, jnp.ones(5), jax.random.key(3))
    assert found.td_error.shape == (5,)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), after.params, state.params)
    assert jax.tree.all(moved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "cubic"}, "loss must be one of squared, huber, got 'cubic'"),
        ({"distributional": "iqn"}, "distributional must be one of c51, quantile, got 'iqn'"),
        ({"distributional": "c51", "loss": "huber"}, "loss must be 'cross_entropy'"),
        ({"distributional": "quantile", "loss": "squared"}, "loss must be 'huber'"),
        ({"distributional": "c51", "num_atoms": 1}, "num_atoms must be at least 2, got 1"),
        ({"distributional": "c51", "value_range": (1, 1)}, "must be two finite, rising"),
        ({"distributional": "c51", "value_range": (0, np.inf)}, "value_range must be two finite"),
        ({"max_gradient_norm": 0}, "max_gradient_norm must be above 0, got 0"),
        ({"initialisation": "xavier"}, "initialisation must be one of lecun, orthogonal, got 'xav"),
        ({"torso": "nature"}, r"hidden must be one width for torso nature, got \(120, 84\)"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        agents.dqn(Discrete(3), Discrete(2), **options)


@pytest.mark.parametrize(
    ("spaces", "options", "message"),
    [
        ((Discrete(3), Discrete(1)), {}, "dqn needs a Discrete action space of 2 to 65,536"),
        ((Discrete(3), Box((0.0,), (1.0,), (1,))), {}, "dqn needs a Discrete action space"),
        ((3, Discrete(2)), {}, "observation_space must be"),
        (
            (Discrete(3), Discrete(2)),
            {"distributional": "quantile", "num_atoms": 8.0},
            "num_atoms must be an int, got 8.0",
        ),
    ],
)
def test_arguments_of_other_types_are_refused(spaces, options, message):
    with pytest.raises(TypeError, match=message):
        agents.dqn(*spaces, **options)
