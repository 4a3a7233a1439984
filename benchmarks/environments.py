"""Rates of the families' environments beside their libraries' own loops.

    python benchmarks/environments.py [--envs N ...] [--rounds R] [--families NAME ...]
        [--json PATH]

Both loops are a compiled scan over the same random actions with automatic resets, in interleaved
rounds. They sum rewards and observations, so that XLA drops neither. States carry over from round
to round, so that episodes end as in training. Craftax's episodes are cut after 100 steps and begin
at staggered times: its own loop makes a world for each environment at each step, ours only where an
episode ended. Libraries that are not installed are left out.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from common import Report, System, interleave, warn
from rich.console import Console

from accel_rl import envs
from accel_rl.testing.environment import random_actions
from accel_rl.types import Array, Environment, PyTree

PACKAGES = ("jax", "accel-rl", "brax", "craftax", "jumanji")
BOUND = 0.95  # of the own loop's rate
KEY = jax.random.key(0)
LIMIT = 100  # steps of Craftax's episodes


class Loop(NamedTuple):
    """Batch of environments: reset(keys [E]) and step(keys [E], state, actions [E, ...])."""

    reset: Callable[[Array], PyTree]
    step: Callable[[Array, PyTree, Array], tuple[PyTree, PyTree]]  # state; rewards, observations


class Case(NamedTuple):
    """Environment of a family, and the own loop of its library."""

    name: str
    arguments: dict[str, Any]
    own: Callable[[int], Loop]
    steps: int  # of a round, for each environment
    stagger: Callable[[PyTree, Array], PyTree] = lambda state, key: state


def brax_loop(count: int) -> Loop:
    """Episode limit, vmap and automatic reset, by brax's wrappers."""
    import brax.envs

    env = brax.envs.create("ant", backend="spring", batch_size=count)

    def step(keys: Array, state: PyTree, actions: Array) -> tuple[PyTree, PyTree]:
        state = env.step(state, actions)
        return state, (state.reward, state.obs)

    return Loop(lambda keys: env.reset(keys[0]), step)  # which splits it


def jumanji_loop(count: int) -> Loop:
    """Vmap and automatic reset, by Jumanji's wrapper."""
    import jumanji
    from jumanji.wrappers import VmapAutoResetWrapper

    env = VmapAutoResetWrapper(jumanji.make("Snake-v1"))

    def step(keys: Array, state: PyTree, actions: Array) -> tuple[PyTree, PyTree]:
        state, given = env.step(state, actions)
        return state, (given.reward, given.observation)

    return Loop(lambda keys: env.reset(keys)[0], step)


def craftax_loop(count: int) -> Loop:
    """Craftax's class with automatic reset, under vmap."""
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
    params = env.default_params.replace(max_timesteps=LIMIT)

    def step(keys: Array, state: PyTree, actions: Array) -> tuple[PyTree, PyTree]:
        vmapped = jax.vmap(env.step, (0, 0, 0, None))
        observation, state, reward, _, _ = vmapped(keys, state, actions, params)
        return state, (reward, observation)

    return Loop(lambda keys: jax.vmap(env.reset, (0, None))(keys, params)[1], step)


def stagger_craftax(state: PyTree, key: Array) -> PyTree:
    """Begin at steps drawn between 0 and the limit."""
    times = jax.random.randint(key, state.timestep.shape, 0, LIMIT, state.timestep.dtype)
    return state.replace(timestep=times)


CASES = {
    "brax": Case("brax:ant", {"backend": "spring"}, brax_loop, 10),
    "craftax": Case(
        "craftax:Craftax-Classic-Symbolic-v1",
        {"max_timesteps": LIMIT},
        craftax_loop,
        4,
        stagger_craftax,
    ),
    "jumanji": Case("jumanji:Snake-v1", {}, jumanji_loop, 100),
}


def our_loop(env: Environment) -> Loop:
    """Adapter under vmap."""

    def step(keys: Array, state: PyTree, actions: Array) -> tuple[PyTree, PyTree]:
        observation, state, reward, *_ = jax.vmap(env.step)(keys, state, actions)
        return state, (reward, observation)

    return Loop(lambda keys: jax.vmap(env.reset)(keys)[1], step)


def system(loop: Loop, case: Case, actions: Array) -> System:
    """Scan of the loop over the actions [steps, E, ...] from the states of the call before."""
    steps, count = actions.shape[:2]

    @jax.jit
    def play(key: Array, state: PyTree) -> tuple[PyTree, PyTree]:
        def one(state: PyTree, inputs: tuple[Array, Array]) -> tuple[PyTree, PyTree]:
            number, actions = inputs
            keys = jax.random.split(jax.random.fold_in(key, number), count)
            state, seen = loop.step(keys, state, actions)
            return state, sum(leaf.sum() for leaf in jax.tree.leaves(seen))

        return jax.lax.scan(one, state, (jnp.arange(steps), actions))

    with jax.numpy_dtype_promotion("standard"):
        state = case.stagger(jax.jit(loop.reset)(jax.random.split(KEY, count)), KEY)
    held = [KEY, state]

    def run() -> None:
        held[0] = jax.random.fold_in(held[0], 1)
        with jax.numpy_dtype_promotion("standard"):
            held[1] = jax.block_until_ready(play(*held))[0]

    return System(run, steps * count)


def main() -> None:
    """Time the cases, print the tables and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--families", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    report = Report(PACKAGES, "environments", seeds="jax.random.key(0)")
    for family in given.families:
        case = CASES[family]
        try:
            env = envs.environment(case.name, **case.arguments)
        except ValueError as error:
            warn(str(error))
            continue
        for count in given.envs:
            actions = random_actions(env.action_space, (case.steps, count))
            loops = {"accel_rl": our_loop(env), family: case.own(count)}
            label = f"{case.name}, {count:,} environments"
            systems = {name: system(loop, case, actions) for name, loop in loops.items()}
            timings = interleave(systems, given.rounds)
            report.add_rates(label, timings, "steps", wall=True)
            for metric in ("steps per core-second", "steps per second"):
                report.add_ratio(label, "accel_rl", family, timings, metric)
            report.claim(label, BOUND, [label], "accel_rl", family, "steps per core-second")
    report.finish(given.json, Console(width=120))


if __name__ == "__main__":
    main()
