"""Bad input to `train` and `io`."""

import functools

import jax
import pytest
from refusals import NAN, check_refused, rows_of

from accel_rl import agents, envs, io, replay, train

FAR = 2**40
key = functools.cache(lambda: jax.random.key(0))


@functools.cache
def parts():
    env = envs.environment("CartPole-v1")
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(4,))
    return env, agent, replay.make(train.example(env, agent), 64, 8, num_envs=2)


def make(**schedule):
    return train.make(*parts(), **{"num_envs": 2, "learning_starts": 16, **schedule})


program = functools.cache(make)


def chunked(steps=100, **options):
    return train.run(program(), key(), steps, **options)


def pipelined(steps=100, **options):
    return train.pipelined(program(), key(), steps, **options)


def act(**options):
    options = {"newest": max, "on_acted": max, **options}
    return train.act(program(), key(), None, **options)


TABLE = {
    "train.make": [
        (lambda: make(num_envs=3), ValueError, "buffer must be made with num_envs=3"),
        (lambda: make(num_envs=2.0), TypeError, "num_envs must be an int, got 2.0"),
        (lambda: make(rollout=0), ValueError, "rollout must be at least 1, got 0"),
        (lambda: make(policy_lag=-1), ValueError, "policy_lag must be at least 0, got -1"),
        (lambda: make(learning_starts=2), ValueError, "learning_starts must be at least"),
    ],
    "train.Schedule": [
        (lambda: train.Schedule(updates=True), TypeError, "updates must be an int, got True"),
        (lambda: train.Schedule(num_envs=0), ValueError, "num_envs must be at least 1, got 0"),
    ],
    "train.Program": [
        (lambda: program().init(key(), gamma=NAN), ValueError, "gamma must be from 0 to 1, got na"),
        (lambda: program().init(key(), gama=1), TypeError, "no hyper-parameter 'gama'; did you me"),
        (lambda: program().init(key(), agent={"x": 1}), TypeError, "no hyper-parameter 'x'; there"),
    ],
    "train.evaluator": [
        (lambda: train.evaluator(*parts()[:2], 0), ValueError, "episodes must be at least 1, got"),
        (lambda: train.evaluator(*parts()[:2], 1.5), TypeError, "episodes must be an int, got 1.5"),
    ],
    "train.Evaluation": [
        (lambda: train.Evaluation(every=0), ValueError, "every must be at least 1, got 0"),
        (lambda: train.Evaluation(1.5), TypeError, "episodes must be an int, got 1.5"),
    ],
    "train.over_seeds": [
        (lambda: train.over_seeds(max, "x"), ValueError, "strategy must be one of auto, vmap, ba"),
        (
            lambda: train.over_seeds(max, "batched", seed_batch=1.5),
            TypeError,
            "seed_batch must be an int",
        ),
        (lambda: train.over_seeds(max, seed_batch=0), ValueError, "seed_batch must be at least 1"),
        (lambda: train.over_seeds(max, "batched"), ValueError, "strategy 'batched' needs seed_bat"),
    ],
    "train.fused": [
        (lambda: train.fused(program(), 100)(0), TypeError, "key must be a PRNG key such as j"),
        (lambda: train.fused(program(), 0), ValueError, "steps must be at least 1, got 0"),
        (lambda: train.fused(program(), 100.5), TypeError, "steps must be an int, got 100.5"),
        (lambda: train.fused(program(), NAN), TypeError, "steps must be an int, got nan"),
        (lambda: train.fused(program(), 16), ValueError, "steps must be more than learning_starts"),
        (lambda: train.fused(program(), 100, period=0), ValueError, "period must be at least 1"),
        (lambda: train.fused(program(), FAR), ValueError, "steps must be at most 2,147,483,647"),
    ],
    "train.segments": [
        (lambda: train.segments(train.Schedule(), True), TypeError, "steps must be an int, got T"),
    ],
    "train.run": [
        (lambda: train.run(program(), 3, 100), TypeError, "key must be jax.random.key(...)"),
        (lambda: chunked(100.5), TypeError, "steps must be an int, got 100.5"),
        (lambda: chunked(period=-1), ValueError, "period must be at least 1, got -1"),
        (lambda: chunked(resume=True), ValueError, "resume needs checkpoints, got None"),
        (lambda: chunked(hyper={"gamma": NAN}), ValueError, "gamma must be from 0 to 1, got nan"),
    ],
    "train.pipelined": [
        (lambda: train.pipelined(program(), 3, 100), TypeError, "key must be jax.random.key(...)"),
        (lambda: pipelined(0), ValueError, "steps must be at least 1, got 0"),
        (lambda: pipelined(100.5), TypeError, "steps must be an int, got 100.5"),
        (lambda: pipelined(num_actors=0), ValueError, "are for the asynchronous executor, got N"),
        (
            lambda: pipelined(executor="asynchronous", queue_size=1.5),
            *(TypeError, "queue_size must be an int, got 1.5"),
        ),
    ],
    "train.act": [
        (lambda: act(first=-1), ValueError, "first must be from 0 to 536870912, got -1"),
        (lambda: act(restarts=2**29 + 1), ValueError, "restarts must be from 0 to 536870912, got"),
        (lambda: act(num_actors=3), ValueError, "num_actors must divide num_envs, 2, got 3"),
        (lambda: act(number=1), ValueError, "number must be from 0 to 0, got 1"),
    ],
    "train.plateau": [
        (lambda: train.plateau("loss", 0), ValueError, "patience must be at least 1, got 0"),
        (lambda: train.plateau("loss", 1.5), TypeError, "patience must be an int, got 1.5"),
        (lambda: train.plateau("loss", 2, least=NAN), ValueError, "least must be at least 0, got "),
    ],
    "train.stop_at": [
        (lambda: train.stop_at("loss", NAN), ValueError, "value must be at least -inf, got nan"),
        (lambda: train.stop_at("loss", "x"), TypeError, "value must be a number, got 'x'"),
    ],
    "agents.ape_x_exploration": [
        (lambda: agents.ape_x_exploration(0), ValueError, "num_envs must be at least 1, got 0"),
        (lambda: agents.ape_x_exploration(2, NAN), ValueError, "epsilon must be from 0 to 1"),
        (lambda: agents.ape_x_exploration(2, alpha=NAN), ValueError, "alpha must be finite and at"),
    ],
    "train.Placement": [
        (lambda: train.Placement(act="cpu"), ValueError, "placement.act must be of jax.Device, go"),
        (lambda: train.Placement(learn=[]), ValueError, "placement.learn must be of jax.Device, g"),
        (lambda: train.Placement(replay="cpu"), ValueError, "placement.replay must be of jax.Devi"),
    ],
    "io.Checkpoints": [
        (lambda: io.Checkpoints("x", keep=0), ValueError, "keep must be at least 1, got 0"),
        (lambda: io.Checkpoints("x", keep=1.5), TypeError, "keep must be an int, got 1.5"),
        (lambda: io.Checkpoints(3), TypeError, "expected str, bytes or os.PathLike object, not in"),
    ],
    "io.ProgressBar": [
        (lambda: io.ProgressBar(0), ValueError, "steps must be at least 1, got 0"),
        (lambda: io.ProgressBar(NAN), TypeError, "steps must be an int, got nan"),
    ],
    "io.Csv": [(lambda: io.Csv(3), TypeError, "os.PathLike object, not int")],
    "io.JsonLines": [(lambda: io.JsonLines(None), TypeError, "os.PathLike object, not NoneType")],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)
