"""Tabular agents: on-line Q-learning and SARSA as in the textbook, held against plain NumPy."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from oracle import NUMERICS, next_value

from accel_rl import agents, envs, replay, tabular, train
from accel_rl.testing import assert_inplace
from accel_rl.types import MDP, Batch, Box, Discrete

GAMMA, ALPHA = 0.75, 0.3
S, A = 16, 4
RATES = {"alpha": ALPHA, "epsilon_start": 0.5, "epsilon_end": 0.25, "epsilon_steps": 300.0}

# --- on-line, through the whole program


@functools.cache
def lake(time_limit=7):
    """FrozenLake whose episodes are cut early, so that many are."""
    return envs.environment("FrozenLake-v1", time_limit=time_limit)


def program_of(rule, num_envs, env=None):
    env = lake() if env is None else env
    agent = agents.tabular(rule, env.observation_space, env.action_space)
    memory = replay.newest(train.example(env, agent), num_envs)
    return train.make(env, agent, memory, num_envs=num_envs, learning_starts=num_envs)


@functools.cache
def recorded(name, numerics, num_envs, iterations=400, **rates):
    """A training of few iterations: transitions and tables after each, from the program's run."""
    rule = tabular.make_rule(name, tabular.make_numerics(numerics))
    program = program_of(rule, num_envs)

    def run(key):
        state = program.init(key, agent={**RATES, "initial_value": 0.5, **rates}, gamma=GAMMA)
        state, _ = program.segment(state, 1, learning=False)

        def iteration(state, _):
            found = state.replay.store.data
            state, _ = program.segment(state, 1, learning=True)
            return state, (found, state.agent.tables)

        return jax.lax.scan(iteration, state, length=iterations)[1]

    return jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(3)))


def replayed(name, numerics, transitions, gamma=GAMMA, start=0.5, alpha=ALPHA):
    """The tables after each iteration, from the transitions alone, in NumPy."""
    nx = NUMERICS[numerics]()
    epsilon = nx.rate(RATES["epsilon_end"])
    table = np.full((S, A), nx.encode(start), nx.dtype)
    item = (lambda x: x) if numerics == "fp32" else int
    for t in range(len(transitions.reward)):
        for e in range(transitions.reward.shape[1]):
            s, a = transitions.observation[t, e], transitions.action[t, e]
            following = [item(x) for x in table[transitions.next_observation[t, e]]]
            target = nx.encode(transitions.reward[t, e])
            if transitions.discount[t, e]:
                chosen = None if transitions.extras is None else transitions.extras[t, e]
                value = next_value(name, nx, following, None, chosen, False, epsilon)
                target = nx.add(target, nx.mul(nx.rate(gamma), value))
            old = item(table[s, a])
            table[s, a] = nx.add(old, nx.mul(nx.rate(alpha), nx.sub(target, old)))
        yield table.copy()


@pytest.mark.parametrize(
    ("name", "numerics", "num_envs"),
    [
        pytest.param("q_learning", "fp32", 1, marks=pytest.mark.slow),
        ("q_learning", "int32_scaled", 3),
        ("sarsa", "fp32", 3),
        pytest.param("sarsa", "int32_pow2", 1, marks=pytest.mark.slow),
        pytest.param("expected_sarsa", "int32_pow2", 3, marks=pytest.mark.slow),
    ],
)
def test_the_program_is_the_textbook_loop(name, numerics, num_envs):
    transitions, tables = recorded(name, numerics, num_envs)
    stopped = transitions.truncated | (transitions.discount == 0)
    assert transitions.truncated.sum() > 20
    assert (transitions.discount == 0).sum() > 20
    assert not stopped.all()
    for iteration, table in enumerate(replayed(name, numerics, transitions)):
        if numerics == "fp32":
            np.testing.assert_allclose(tables[iteration, 0], table, rtol=1e-5, atol=1e-7)
        else:
            np.testing.assert_array_equal(tables[iteration, 0], table)


def test_a_loop_that_ends_truncated_episodes_is_told_apart():
    transitions, tables = recorded("q_learning", "int32_scaled", 3)
    ended = dataclasses.replace(transitions, discount=transitions.discount * ~transitions.truncated)
    *_, last = replayed("q_learning", "int32_scaled", ended)
    assert (last != tables[-1, 0]).any()


@pytest.mark.parametrize(
    ("numerics", "num_envs"),
    [("fp32", 3), pytest.param("int32_pow2", 1, marks=pytest.mark.slow)],
)
def test_sarsa_learns_from_the_action_that_is_executed_next(numerics, num_envs):
    transitions, _ = recorded("sarsa", numerics, num_envs)
    stopped = transitions.truncated | (transitions.discount == 0)
    learned_from, executed = transitions.extras[:-1], transitions.action[1:]
    same = learned_from == executed
    assert same[~stopped[:-1]].all()
    # After a reset the action is another state's; a share of A's agrees by chance.
    assert not same[stopped[:-1]].all()


@pytest.mark.long  # compiles another training
def test_sarsa_at_a_truncation_takes_an_action_of_the_final_state():
    """Without exploring the actions are known: those of the table before the next update."""
    quiet = {"epsilon_start": 0.0, "epsilon_end": 0.0, "alpha": 0.9, "initial_value": 1.0}
    transitions, tables = recorded("sarsa", "fp32", 3, **quiet)
    # In iteration t the program learns (tables[t]) and then takes step t + 1.
    greedy = tables[:-1, 0].argmax(-1)  # [T - 1, S]
    for t in range(len(greedy)):
        final = transitions.next_observation[t + 1]
        np.testing.assert_array_equal(transitions.extras[t + 1], greedy[t][final])
    cut = transitions.truncated[1:-1]
    assert cut.sum() > 20
    # The executed action is that of the state after the reset, not of the final one.
    executed, drawn = transitions.action[2:], transitions.extras[1:-1]
    start = transitions.observation[2:]
    assert (start[cut] == 0).all()
    for t, e in np.argwhere(cut):
        assert executed[t, e] == greedy[t][0]
    assert (executed[cut] != drawn[cut]).any()


# --- a step of learning


def some_batch(seed, n=12, extras=True):
    """Items that share states, some with targets of several steps, one at an end."""
    rng = np.random.default_rng(seed)
    return Batch(
        observation=rng.integers(0, 3, n).astype(np.int32),
        action=rng.integers(0, A, n).astype(np.int32),
        reward=rng.integers(-4, 5, n).astype(np.float32) / 4,
        discount=rng.choice(np.float32([0, GAMMA, GAMMA**2, GAMMA**3]), n),
        next_observation=rng.integers(0, 3, n).astype(np.int32),
        extras=rng.integers(0, A, n).astype(np.int32) if extras else None,
    )


def agent_of(name, numerics="fp32", **options):
    rule = tabular.make_rule(name, tabular.make_numerics(numerics))
    return agents.tabular(rule, Discrete(S), Discrete(A), **options)


@pytest.mark.parametrize("numerics", ["fp32", "int32_pow2"])
@pytest.mark.parametrize("name", ["q_learning", "sarsa", "expected_sarsa"])
def test_items_one_after_the_other(name, numerics):
    agent, nx = agent_of(name, numerics), NUMERICS[numerics]()
    batch = some_batch(1, extras=name == "sarsa")
    weights = np.float32([1, 0, 0.5, 1, 0.25, 1, 0, 1, 1, 0.75, 1, 1])
    start = jax.random.normal(jax.random.key(0), (1, S, A))
    state = agent.init(jax.random.key(0), **RATES)
    encode = tabular.make_numerics(numerics).encode
    state = dataclasses.replace(state, tables=encode(start))
    after, learned = jax.jit(agent.learn)(state, batch, weights, jax.random.key(0))

    item = (lambda x: x) if numerics == "fp32" else int
    decode = (lambda x: x) if numerics == "fp32" else (lambda x: x / 2**16)
    table = np.asarray(state.tables[0]).copy()
    errors, values = [], []
    for i, weight in enumerate(weights):
        s, a = batch.observation[i], batch.action[i]
        following = [item(x) for x in table[batch.next_observation[i]]]
        chosen = None if batch.extras is None else batch.extras[i]
        value = next_value(name, nx, following, None, chosen, False, nx.rate(RATES["epsilon_end"]))
        ahead = nx.mul(nx.rate(batch.discount[i]), value) if batch.discount[i] else nx.encode(0)
        target, old = nx.add(nx.encode(batch.reward[i]), ahead), item(table[s, a])
        if weight:
            rate = nx.rate(np.float32(ALPHA) * weight)
            table[s, a] = nx.add(old, nx.mul(rate, nx.sub(target, old)))
            values.append(decode(old))
        errors.append(decode(nx.sub(target, old)) if weight else 0)
    if numerics == "fp32":
        np.testing.assert_allclose(after.tables[0], table, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(after.tables[0], table)
    errors = np.float32(errors)
    np.testing.assert_allclose(learned.td_error, errors, rtol=1e-5, atol=1e-6)
    loss = np.mean(weights * errors**2) / 2
    np.testing.assert_allclose(learned.metrics["loss"], loss, rtol=1e-5)
    assert np.isfinite(learned.metrics["value"])


def test_double_q_learning_changes_one_table_from_the_other():
    agent = agent_of("double_q_learning")
    state = agent.init(jax.random.key(0), alpha=0.5)
    tables = np.asarray(jax.random.normal(jax.random.key(1), (2, S, A)))
    state = dataclasses.replace(state, tables=jnp.asarray(tables))
    batch, learn = jax.tree.map(lambda x: x[:1], some_batch(5, extras=False)), jax.jit(agent.learn)
    batch = dataclasses.replace(batch, discount=np.float32([GAMMA]))
    s, a, following = (
        int(batch.observation[0]),
        int(batch.action[0]),
        int(batch.next_observation[0]),
    )
    counts = np.zeros(2, int)
    for seed in range(60):
        after, _ = learn(state, batch, jnp.ones(1), jax.random.key(seed))
        changed = np.argwhere(np.asarray(after.tables) != tables)
        assert changed.shape == (1, 3)
        k = changed[0, 0]
        value = tables[1 - k, following, tables[k, following].argmax()]
        wanted = (tables[k, s, a] + batch.reward[0] + GAMMA * value) / 2
        np.testing.assert_allclose(after.tables[k, s, a], wanted, rtol=1e-5)
        counts[k] += 1
    assert counts.min() >= 11  # of a fair coin less often than once in a million


def test_td_errors_for_who_acts():
    """Against the tables as they are, with the next action of the item."""
    agent, batch = agent_of("sarsa"), some_batch(2)
    tables = np.asarray(jax.random.normal(jax.random.key(0), (1, S, A)))
    state = dataclasses.replace(agent.init(jax.random.key(0)), tables=jnp.asarray(tables))
    found = agent.td_error(agent.critics(state), batch, jax.random.key(0))
    ahead = tables[0][batch.next_observation, batch.extras]
    present = tables[0][batch.observation, batch.action]
    wanted = batch.reward + batch.discount * ahead - present
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


# --- acting


def test_acts_greedily_on_its_values():
    agent = agent_of("double_q_learning")
    tables = np.zeros((2, S, A), np.float32)
    tables[0, 1], tables[1, 1] = [3, 0, 0, 0], [-4, 0, 1, 0]  # the mean decides: action 2
    tables[:, 2] = [0, 7, 7, 0]  # a tie: the lowest
    state = dataclasses.replace(agent.init(jax.random.key(0)), tables=jnp.asarray(tables))
    action, memory = agent.act(
        agent.policy(state), (), jnp.int32([0, 1, 2, 1]), jax.random.key(0), 0, explore=False
    )
    assert action.tolist() == [0, 2, 1, 2]
    assert memory == ()


def test_explores_by_schedule():
    """Share of actions that are not greedy: epsilon (A - 1) / A, within 5 standard errors."""
    agent, n = agent_of("q_learning"), 4000
    state = agent.init(jax.random.key(0), **RATES)
    act = jax.jit(agent.act)
    for step, epsilon in ((0, 0.5), (150, 0.375), (300, 0.25), (10_000, 0.25)):
        action, _ = act(agent.policy(state), (), jnp.zeros(n, jnp.int32), jax.random.key(7), step)
        share, wanted = float((action != 0).mean()), epsilon * (A - 1) / A
        assert abs(share - wanted) < 5 * (wanted * (1 - wanted) / n) ** 0.5


@pytest.mark.long  # compiles learning twice
def test_swept_rates_are_leaves():
    """`vmap` over alpha and the initial value is a training for each of them."""
    agent, batch = agent_of("q_learning"), some_batch(3, extras=False)

    def run(alpha, initial_value):
        state = agent.init(jax.random.key(0), alpha=alpha, initial_value=initial_value)
        return agent.learn(state, batch, jnp.ones(12), jax.random.key(0))[0].tables

    swept = jax.vmap(run)(jnp.array([0.1, 0.7]), jnp.array([0.0, 2.0]))
    for k, (alpha, value) in enumerate(((0.1, 0.0), (0.7, 2.0))):
        np.testing.assert_allclose(swept[k], run(alpha, value), rtol=1e-6)
    assert (swept[1] != swept[0]).any()


# --- rules of one's own, bad input, memory


def test_rules_that_read_the_next_action_are_found():
    reads = {name: agent_of(name).needs_next_action for name in tabular.RULES}
    assert reads == {name: name == "sarsa" for name in tabular.RULES}
    assert agent_of("sarsa", "int32_scaled").needs_next_action

    def last_executed(nx, tables, row, c):  # SARSA of the mean of two tables, by another name
        first, second = (jnp.where(row.next_action == 0, table[0], table[1]) for table in tables)
        return nx.mean([first, second])

    own = tabular.build_rule("own", None, last_executed, tables=2)
    assert agents.tabular(own, Discrete(S), Discrete(2)).needs_next_action


@pytest.mark.parametrize(
    ("rule", "observations", "actions", "match"),
    [
        (tabular.q_learning(), Box((0.0,), (1.0,), (1,)), Discrete(A), "Discrete observation"),
        (tabular.q_learning(), Discrete(S), Box((0.0,), (1.0,), (1,)), "Discrete action space"),
    ],
)
def test_bad_input(rule, observations, actions, match):
    with pytest.raises(TypeError, match=match):
        agents.tabular(rule, observations, actions)


@pytest.mark.parametrize("num_envs", quick.only([4], [1, 4]))
def test_learning_changes_the_tables_in_place(num_envs):
    """Large tables cost a training no more than small ones."""
    size = 60_000
    nothing = np.zeros((size, 2, 1))
    mdp = MDP(
        probability=np.ones((size, 2, 1), np.float32),
        next_state=(np.arange(2 * size).reshape(size, 2, 1) % size).astype(np.int32),
        reward=nothing.astype(np.float32),
        terminated=nothing.astype(bool),
        initial=np.eye(1, size, dtype=np.float32)[0],
        time_limit=50,
    )
    env, params = envs.TabularEnv(mdp), None
    program = program_of(tabular.q_learning(), num_envs, envs.from_gymnax(env, params))
    state = program.init(jax.random.key(0))
    assert_inplace(
        lambda state: program.segment(state, 1000, learning=True), state, least_bytes=8 * size
    )


# --- learning: FrozenLake and Taxi, on-line


LEARNING = {
    "FrozenLake-v1": (500_000, {"alpha": 0.02, "epsilon_end": 0.1, "epsilon_steps": 400_000.0}),
    "Taxi-v3": (400_000, {"alpha": 0.5, "epsilon_end": 0.02, "epsilon_steps": 200_000.0}),
}
ENOUGH = {"FrozenLake-v1": 0.9 * 0.744, "Taxi-v3": 7.0}


def returns(environment, rule, gammas, rates=None):
    """Exact returns of the greedy policies after training, one for each gamma."""
    steps, own = LEARNING[environment]
    program = program_of(rule, 16, envs.environment(environment))
    run = train.fused(program, steps)
    hyper = {**own, **(rates or {})}
    trained = jax.jit(jax.vmap(lambda key, gamma: run(key, agent=hyper, gamma=gamma)))(
        jax.random.split(jax.random.key(0), len(gammas)), jnp.asarray(gammas)
    )
    mdp = envs.make_mdp(environment)
    policies = tabular.greedy_policy(jax.vmap(rule.values)(trained.state.agent.tables))
    return [float(tabular.episode_return(mdp, policy)) for policy in policies], trained.metrics


@pytest.mark.long  # trains
@pytest.mark.parametrize("environment", LEARNING)
def test_q_learning_learns_on_line(environment):
    *found, blind = returns(environment, tabular.q_learning(), [0.99, 0.99, 0.99, 0.0])[0]
    assert min(found) >= ENOUGH[environment], found
    assert blind < ENOUGH[environment], "the test has no power: it is learned without a future"


@pytest.mark.long
@pytest.mark.parametrize("name", ["sarsa", "expected_sarsa", "double_q_learning"])
def test_other_rules_learn_frozen_lake(name):
    found, _ = returns("FrozenLake-v1", tabular.make_rule(name), [0.99] * 4)
    assert min(found) >= ENOUGH["FrozenLake-v1"], found


@pytest.mark.long
def test_sarsa_learns_taxi():
    rates = {"alpha": 0.2, "epsilon_end": 0.0, "epsilon_steps": 300_000.0}
    found, metrics = returns("Taxi-v3", tabular.sarsa(), [0.99] * 4, rates)
    assert min(found) >= ENOUGH["Taxi-v3"], found
    # It follows its greedy policy by then: what it earned while learning is what that is worth.
    np.testing.assert_allclose(np.nanmean(metrics["episode_return"][:, -10:]), found, atol=0.6)


def test_rewards_that_fixed_point_cannot_hold_give_no_loss():
    """Rewards, and discounts above gamma_max; items of weight 0 do not count."""
    rule = tabular.q_learning(numerics=tabular.int32_scaled())
    agent = agents.tabular(rule, Discrete(5), Discrete(2))
    state = agent.init(jax.random.key(0))
    learn = jax.jit(agent.learn)
    for reward, discount, weight, covered in (
        (100.0, 0.99, 1.0, True),
        (-1.0, 0.99, 1.0, True),
        (10_000.0, 0.0, 1.0, True),
        (101.0, 0.99, 1.0, False),
        (-1.0, 1.0, 1.0, False),
        (-1.0, 1.0, 0.0, True),
    ):
        zero = np.zeros(1, np.int32)
        batch = Batch(zero, zero, np.float32([reward]), np.float32([discount]), zero)
        loss = learn(state, batch, np.float32([weight]), jax.random.key(1))[1].metrics["loss"]
        assert np.isfinite(loss) == covered


@pytest.mark.parametrize(
    ("numerics", "most"), [(tabular.int32_scaled(), 107274), (tabular.int32_pow2(), 16283)]
)
def test_a_first_value_that_fixed_point_cannot_hold_is_refused(numerics, most):
    """Half of what an int32 holds, less the largest reward, 100: so differences of two fit."""
    rule = tabular.q_learning(numerics=numerics)
    agent = agents.tabular(rule, Discrete(5), Discrete(2))
    for value in (most - 1, 1 - most):
        agent.init(jax.random.key(0), initial_value=value)
    for value in (most + 1, -most - 1):
        with pytest.raises(ValueError, match=f"initial_value must be from -{most} to {most}, got"):
            agent.init(jax.random.key(0), initial_value=value)
