import dataclasses
import functools
import math
import os
import re
import signal
import threading
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny_training import HYPER, PERIOD, STEPS, Kept, assert_same, key, program, untimed

from accel_rl import agents, envs, io, train
from accel_rl.io.leaves import to_host
from accel_rl.train import compiled
from accel_rl.train.compiled import compile_program
from accel_rl.train.metrics import divergence, row
from accel_rl.train.stopping import deferred_signals

EVALUATION = train.Evaluation(episodes=5, every=300, max_steps=100)


@pytest.fixture(scope="module")
def one():
    return program()


def fused(one, steps=STEPS, number=None, sharing=None):
    run = functools.partial(train.fused(one, steps, period=PERIOD), **HYPER)
    return jax.jit(run if number is None else train.over_seeds(run, sharing))(key(number))


def go(one, number=None, steps=STEPS, **arguments):
    arguments = {"period": PERIOD, "hyper": HYPER, **arguments}
    return train.run(one, key(number), steps, **arguments)


@pytest.fixture(scope="module")
def outcome(one):
    return go(one, evaluation=EVALUATION)


def test_state_and_rows_are_those_of_fused(one, outcome):
    assert outcome.reason == "done"
    assert outcome.checkpoint is None
    result = fused(one)
    chex.assert_trees_all_close(outcome.state, result.state, rtol=1e-5, atol=1e-6)
    for name, values in result.metrics.items():
        found = [row[name] for row in outcome.rows]
        np.testing.assert_allclose(found, values, rtol=1e-5, err_msg=name)
    assert [row["steps"] for row in outcome.rows] == list(range(100, 1000, 100))
    assert [row["updates"] for row in outcome.rows] == [0] + [50] * 8
    seconds = [row["seconds"] for row in outcome.rows]
    assert seconds[0] > 0
    assert seconds == sorted(seconds)


@pytest.mark.long  # wants XLA's optimisation: without it, another program is rounded otherwise
def test_state_and_rows_are_those_of_fused_to_the_bit(one, outcome):
    result = fused(one)
    assert_same(outcome.state, result.state)
    for name, values in result.metrics.items():
        assert np.array_equal([row[name] for row in outcome.rows], values, equal_nan=True), name


@pytest.mark.long  # compiles another evaluation
def test_evaluation_is_after_each_cadence_and_at_the_end(one, outcome):
    scores = {row["steps"]: row["evaluation"] for row in outcome.rows}
    assert [step for step, score in scores.items() if not math.isnan(score)] == [300, 600, 900]
    # The last score, played by hand from the same key.
    state = outcome.state
    run_key = jax.random.fold_in(jax.random.wrap_key_data(state.key), np.uint32(2**31))
    play = train.evaluator(one.env, one.agent, 5, 100)
    returns = play(one.agent.policy(state.agent), jax.random.fold_in(run_key, state.iteration))
    assert scores[900] == pytest.approx(float(returns.mean()))
    late = go(one, evaluation=train.Evaluation(5, 250, 100), steps=400)
    assert [math.isnan(row["evaluation"]) for row in late.rows] == [True, True, False, False]


def test_evaluation_and_logging_change_nothing(one, outcome):
    assert_same(go(one, loggers=[Kept()]).state, outcome.state)


@pytest.mark.slow
def test_seeds_train_as_in_fused(one):
    found = go(one, 2, steps=300, seeds="sharded", evaluation=EVALUATION)
    result = fused(one, 300, 2, "sharded")
    # Batched products may be rounded in another order in another program.
    chex.assert_trees_all_close(found.state, result.state, rtol=1e-4, atol=1e-4)
    assert len(jax.tree.leaves(found.state.agent.params)[0].devices()) == 2
    for number, line in enumerate(found.rows):
        each = line["per_seed"]
        assert line.keys() - each.keys() == {"steps", "seconds", "per_seed"}
        for name, values in each.items():
            assert len(values) == 2
            known = [value for value in values if not math.isnan(value)]
            assert line[name] == pytest.approx(np.mean(known) if known else np.nan, nan_ok=True)
            if name != "evaluation":
                expected = np.asarray(result.metrics[name])[:, number]
                assert values == pytest.approx(expected.tolist(), rel=1e-3, nan_ok=True)
    assert len(set(found.rows[-1]["per_seed"]["evaluation"])) == 2


def test_one_program_serves_all_chunks_and_runs(one, outcome):
    parts = compiled._functions(one, None, EVALUATION)
    go(one, evaluation=EVALUATION, period=170)
    assert {name: fn._cache_size() for name, fn in parts.segments.items()} == {True: 1, False: 1}
    assert compiled._functions(one, None, EVALUATION) is parts


def test_the_states_memory_is_given_away(one):
    parts = compile_program(one, key(), HYPER, {})
    state = parts.init()
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), parts.template
    )
    state = parts.segment(state, 50, False).state
    for learning in (False, True):
        copies = to_host(state)
        before = {name: array.tobytes() for name, array in copies.items()}
        pointers = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(state.replay)]
        later = parts.segment(state, 20, learning).state
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.replay))
        assert [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(later.replay)] == pointers
        assert {name: array.tobytes() for name, array in copies.items()} == before
        after = to_host(later)
        changed = {name.split(".")[0] for name in after if after[name].tobytes() != before[name]}
        learned = {"agent", "value_limit"} if learning else set()
        assert changed == {"iteration", "actor", "replay"} | learned
        state = later


@pytest.fixture(scope="module")
def uphill():
    """A program that learns to be wrong, ever faster: a rate that is not small ends in infinity.

    Not from the first step: what climbs at once is refused.
    """
    climb = optax.scale_by_schedule(lambda count: jnp.where(count == 0, 1.0, -1.0))
    return program(optimiser=climb)


@pytest.mark.slow  # compiles three trainings
def test_rates_are_swept_over_seeds(uphill):
    rates = np.array([1e-4, 0.0], np.float32)
    hyper = {"agent": {**HYPER["agent"], "learning_rate": rates}, "gamma": [0.9, 0.5]}
    found = go(uphill, 2, hyper=hyper, seeds="vmap", steps=300)
    assert found.state.hyper["gamma"].tolist() == [np.float32(0.9), 0.5]
    start = jax.vmap(uphill.init)(key(2))
    for before, after in zip(
        jax.tree.leaves(start.agent.params), jax.tree.leaves(found.state.agent.params), strict=True
    ):
        assert np.array_equal(after[1], before[1])  # a rate of zero
        assert not np.allclose(after[0], before[0], rtol=0, atol=1e-9)


def test_loggers_are_told_everything_once(one, outcome):
    kept = [Kept(), Kept()]
    found = go(one, loggers=kept)
    for each in kept:
        assert (each.begun, each.rows, each.closed) == ([None], found.rows, 1)


def test_loggers_are_closed_when_something_fails(one):
    kept = Kept()

    def fail(rows):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        go(one, loggers=[kept], stop=fail)
    assert (len(kept.rows), kept.closed) == (1, 1)


class TestStopping:
    @staticmethod
    def rows(*values, **others):
        return [{"steps": n, "score": value, **others} for n, value in enumerate(values)]

    def first(self, rule, *values):
        """Rows after which the rule stops."""
        rows = self.rows(*values)
        return next((n for n in range(1, len(rows) + 1) if rule(rows[:n])), None)

    def test_at_a_value(self):
        rule = train.stop_at("score", 5)
        assert self.first(rule, 1, math.nan, 4.9, 5, 6) == 4
        assert self.first(rule, 1, 2) is None
        assert rule(self.rows(5)) == "score is 5, 5 or more"
        with pytest.raises(KeyError, match="evaluation"):
            train.stop_at("evaluation", 5)(self.rows(1))

    def test_at_a_value_for_every_seed(self):
        rule = train.stop_at("score", 5, every_seed=True)
        assert rule(self.rows(6, per_seed={"score": [4, 8]})) is None
        assert rule(self.rows(6, per_seed={"score": [6, math.nan]})) is None
        assert rule(self.rows(7, per_seed={"score": [6, 8]})) == "score is 6, 5 or more"

    def test_on_a_plateau(self):
        rule = train.plateau("score", 2, least=1)
        assert self.first(rule, 1, 3, 3.5, math.nan, 4.5, 4, 4) == 7
        assert self.first(rule, 1, 3, 3, 5, 5) is None
        assert "above 3 for 2 rows" in rule(self.rows(1, 3, 3, 3))
        for bad in ({"patience": 0}, {"patience": 1, "least": -1}):
            with pytest.raises(ValueError, match="must be at least"):
                train.plateau("score", **bad)

    def test_on_the_first_of_several(self):
        rule = train.first_of(train.stop_at("score", 5), train.plateau("score", 2))
        assert self.first(rule, 1, 6) == 2
        assert self.first(rule, 1, 1, 1) == 3


def test_a_training_stops_with_a_checkpoint(one, outcome, tmp_path):
    found = go(
        one,
        stop=train.stop_at("steps", 400),
        checkpoints=io.Checkpoints(tmp_path),
        evaluation=EVALUATION,
    )
    assert found.reason == "stopped: steps is 400, 400 or more"
    assert untimed(found.rows) == untimed(outcome.rows[:4])
    assert found.checkpoint == tmp_path / "000000000400"
    assert_same(train.restore(one, io.Checkpoints(tmp_path).newest()), found.state)


class Signal(Kept):
    """Sends signals once the training is at a step."""

    def __init__(self, step, number, times=1):
        super().__init__()
        self.step, self.number, self.times = step, number, times

    def log(self, row):
        super().log(row)
        if row["steps"] == self.step:
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_finishes_the_chunk_and_writes_a_checkpoint(one, tmp_path, number):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    found = go(one, loggers=[Signal(300, number)], checkpoints=io.Checkpoints(tmp_path))
    assert found.reason == "interrupted"
    assert found.rows[-1]["steps"] == 300
    assert found.checkpoint == tmp_path / "000000000300"
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_second_interruption_is_heard_at_once(one):
    kept = Signal(300, signal.SIGINT, times=2)
    with pytest.raises(KeyboardInterrupt):
        go(one, loggers=[kept])
    assert (len(kept.rows), kept.closed) == (3, 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with deferred_signals() as came:
            os.kill(os.getpid(), signal.SIGTERM)
            assert not came()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_hear_no_signals():
    heard = []

    def run():
        with deferred_signals() as came:
            heard.append((came(), signal.getsignal(signal.SIGINT)))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert heard == [(False, before)]


@pytest.mark.long  # compiles a training of its own
def test_divergence_names_metric_seeds_step_and_the_last_good_checkpoint(uphill, tmp_path):
    hyper = {"agent": {**HYPER["agent"], "learning_rate": [1e-4, 1]}}
    kept, into = Kept(), io.Checkpoints(tmp_path, every=100)
    found = go(uphill, 2, seeds="vmap", hyper=hyper, loggers=[kept], checkpoints=into)
    assert re.fullmatch(
        r"diverged: loss is (nan|inf) for seed 1 at step 200; the last good checkpoint is "
        rf"{re.escape(str(tmp_path))}/000000000100",
        found.reason,
    )
    assert into.steps() == [100]
    assert found.rows[-1]["steps"] == kept.rows[-1]["steps"] == 200
    assert np.isfinite(found.rows[-1]["per_seed"]["loss"]).tolist() == [True, False]


@pytest.mark.long  # compiles a training of its own
def test_seeds_that_do_not_diverge_go_on_where_asked(uphill):
    hyper = {"agent": {**HYPER["agent"], "learning_rate": [1e-4, 1]}}
    settings = {"seeds": "vmap", "evaluation": train.Evaluation(2, 200, 20)}
    found = go(uphill, 2, hyper=hyper, stop_diverged=False, **settings)
    assert (found.reason, found.rows[-1]["steps"]) == ("done", 900)
    played = found.rows[-1]["per_seed"]["evaluation"]
    assert np.isfinite(played).tolist() == [True, False]
    assert found.rows[-1]["evaluation"] == played[0]


def poisoned(one, at):
    """The program, with its parameters lost in a certain update, which no metric of it tells."""

    def learn(state, batch, weights, key):
        state, learned = one.agent.learn(state, batch, weights, key)
        lost = jnp.where(state.updates >= at, jnp.float32(np.nan), jnp.float32(0))
        params = jax.tree.map(lambda leaf: leaf + lost, state.params)
        return dataclasses.replace(state, params=params), learned

    return dataclasses.replace(one, agent=one.agent._replace(learn=learn))


def test_parameters_that_are_lost_in_the_last_update_are_not_saved(one, tmp_path):
    found = go(poisoned(one, 100), checkpoints=io.Checkpoints(tmp_path, every=100))
    assert math.isfinite(found.rows[-1]["loss"])
    assert re.match(r"diverged: the agent's params\..* is not finite at step 300;", found.reason)
    assert found.checkpoint == tmp_path / "000000000200"
    assert io.Checkpoints(tmp_path).steps() == [100, 200]


def test_what_counts_as_divergence():
    def of(finite=(True, True), **metrics):
        given = {"steps": 8, "episode_return": math.nan, "updates": 2, "loss": 1.0, **metrics}
        arrays = {name: np.broadcast_to(each, 2) for name, each in given.items()}
        return divergence(
            arrays,
            ["loss", "value"] if "value" in arrays else ["loss"],
            np.array(finite),
            {"a": np.ones((2, 3)), "b": np.array([1, np.inf])},
        )

    assert of() is None
    assert of(loss=math.nan, updates=0) is None  # it has not learned yet
    assert of(loss=[1, -math.inf]) == "loss is -inf for seed 1 at step 8"
    assert of(value=math.nan) == "value is nan for seed 0, 1 at step 8"
    assert of((True, False)) == "the agent's b is not finite for seed 1 at step 8"


def test_rows_are_means_of_what_is_known():
    metrics = {
        "steps": np.array([8, 8]),
        "episode_return": np.array([3, math.nan], np.float32),
        "loss": np.array([math.nan, math.nan], np.float32),
        "episodes": np.array([1, 0]),
    }
    made = row(metrics, 1.5)
    assert math.isnan(made.pop("loss"))
    assert made.pop("per_seed")["episodes"] == [1, 0]
    assert made == {"steps": 8, "episode_return": 3.0, "episodes": 0.5, "seconds": 1.5}
    single = row({name: each[0] for name, each in metrics.items()}, 1.5)
    assert {name: type(value) for name, value in single.items()} == {
        "steps": int,
        "episode_return": float,
        "loss": float,
        "episodes": int,
        "seconds": float,
    }


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"resume": True}, ValueError, "resume needs checkpoints"),
        ({"period": 0}, ValueError, "period must be at least 1, got 0"),
        ({"steps": 100}, ValueError, r"steps must be more than learning_starts \(100\)"),
        ({"hyper": {"gamma": 2.0}}, ValueError, "gamma must be from 0 to 1, got 2"),
        ({"hyper": {"gama": 0.9}}, TypeError, "did you mean gamma"),
        ({"hyper": {"agent": {"rate": 1}}}, TypeError, "no hyper-parameter 'rate'"),
        ({"hyper": {"gamma": [0.9, 0.8]}}, ValueError, r"gamma must be a scalar, got shape \(2,\)"),
        (
            {
                "seeds": "vmap",
                "key": jax.random.split(jax.random.key(0), 3),
                "hyper": {"gamma": [0.9, 0.8]},
            },
            ValueError,
            r"gamma must be a scalar or \[3\], got shape \(2,\)",
        ),
        (
            {"key": jax.random.split(jax.random.key(0), 2), "hyper": {"gamma": [0.9, -1]}},
            ValueError,
            "gamma must be from 0 to 1, got -1",
        ),
        (
            {"key": jax.random.split(jax.random.key(0), 2), "seeds": "all"},
            ValueError,
            "strategy must be one of",
        ),
        (
            {"key": jax.random.split(jax.random.key(0), 2), "seeds": {"strategy": "batched"}},
            ValueError,
            "needs seed_batch",
        ),
        ({"key": 0}, TypeError, "key must be"),
        ({"key": np.zeros(2, np.uint32)}, TypeError, "key must be"),
    ],
)
def test_bad_arguments(one, arguments, error, message):
    given = {"key": key(), "steps": STEPS, "period": PERIOD, **arguments}
    with pytest.raises(error, match=message):
        train.run(one, given.pop("key"), given.pop("steps"), **given)


@pytest.mark.parametrize("name", ["episodes", "every", "max_steps"])
def test_bad_evaluations(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        train.Evaluation(**{name: 0})


def test_a_port_is_refused():
    env = envs.environment("CartPole-v1")
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(16,))
    port = mock.Mock(spec=["limited", "add", "can_sample", "sample", "update", "close"])
    with pytest.raises(TypeError, match="is a replay port"):
        train.run(train.make(env, agent, port), key(), 1000)
