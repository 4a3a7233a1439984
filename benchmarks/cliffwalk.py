"""Blind Cliffwalk: how many updates each way of sampling takes, where success is rare.

    python benchmarks/cliffwalk.py [--quick] [--json PATH] [--plot PATH]

Of n states in a row one action leads to the next, and the other ends the episode; only the last
right action is rewarded, with 1. The memory holds the transitions of all 2^n sequences of actions,
in random order, 2^(n+1) - 2 in all, of which one is rewarded (Schaul et al., "Prioritized
experience replay", ICLR 2016, figure 1). Q-learning updates on one transition after the other until
the mean squared error of all values is below 1e-3: step size 1/4, discount 1 - 1/n, values that
start at random, priorities |TD error| + 1e-3, alpha 1, no importance-sampling weights. Values are a
table, or linear in features that share a bias (ours, not the paper's). The oracle takes the
transition that reduces the error most.

Counted are updates, not time. All seeds train at once; one that has not converged when the most
updates were made is no figure, and its system has none for larger memories. AMPER-k stops at 14
states, AMPER-fr at 12, the exact AMPER-k at 10, for their time.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from common import Claim, Report
from rich.console import Console

from accel_rl import replay
from accel_rl.plot import style
from accel_rl.types import Array

RATE = 0.25
TOLERANCE = 1e-3
EPSILON = 1e-3  # least priority
MOST = 2**23  # updates
SIZES = tuple(range(2, 17, 2))
SEEDS = 10
ORACLE = "oracle"
EXACT = "amper_k, exact"
SAMPLERS: dict[str, tuple[Any, dict[str, float]]] = {
    "uniform": ("uniform", {}),
    "prioritised": ("prioritised", {"alpha": 1.0}),
    "rank_based": ("rank_based", {"alpha": 1.0}),
    "amper_k": ("amper_k", {"alpha": 1.0}),
    "amper_fr": ("amper_fr", {"alpha": 1.0}),
    EXACT: (replay.amper_k("exact"), {"alpha": 1.0}),
    ORACLE: ("uniform", {}),
}
LARGEST = {"amper_k": 14, "amper_fr": 12, EXACT: 10}  # states, for their time
MOST_OF_ORACLE = 2**18  # it looks one update ahead, and may then find none that helps
LOOKS = {
    **{name: (color, "-") for name, color in style.SAMPLER_COLORS.items()},
    "rank_based": (style.COLORS[2], "-"),
    EXACT: (style.SAMPLER_COLORS["amper_k"], ":"),
    ORACLE: (style.COLORS[1], "-"),
}
KINDS = ("table", "linear")
METRIC = "updates to convergence"
PACKAGES = ("jax", "jaxlib", "numpy")


class Walk(NamedTuple):
    """Memory and truth of n states; action 0 is right, and pair = 2 * state + action."""

    pairs: np.ndarray  # [2^(n+1) - 2] int32, of each transition
    rewards: np.ndarray  # [2 n] float32, of each pair
    ahead: np.ndarray  # [2 n] int32: next state, or -1 where the episode ends
    truth: np.ndarray  # [2 n] float32: values of the best policy
    discount: float


def walk(states: int, seed: int) -> Walk:
    """Return the transitions of all sequences of actions, each until its first wrong action."""
    lengths = [length for length in range(1, states + 1) for _ in range(2 ** (states - length))]
    order = np.random.default_rng(seed).permutation(2**states)
    sequences = []
    for number in order:
        if number == len(lengths):  # the one that succeeds
            sequences.append(2 * np.arange(states))
        else:
            last = lengths[number] - 1
            sequences.append(np.append(2 * np.arange(last), 2 * last + 1))
    state = np.arange(states)
    discount = 1 - 1 / states
    rewards = np.zeros((states, 2), np.float32)
    rewards[-1, 0] = 1
    ahead = np.full((states, 2), -1, np.int32)
    ahead[:-1, 0] = state[1:]
    truth = np.zeros((states, 2), np.float32)
    truth[:, 0] = discount ** (states - 1 - state)
    pairs = np.concatenate(sequences).astype(np.int32)
    return Walk(pairs, rewards.ravel(), ahead.ravel(), truth.ravel(), discount)


def transitions(states: int) -> int:
    """Return the transitions of all sequences."""
    return 2 ** (states + 1) - 2


def features(kind: str, pairs: int) -> np.ndarray:
    """Return features [pairs, width] of unit length, of each state and action.

    A table has one for each. Linear ones have a bias beside it, of the same length, through which
    every update changes all values.
    """
    own = np.eye(pairs, dtype=np.float32)
    if kind == "table":
        return own
    return np.concatenate([own, np.ones((pairs, 1), np.float32)], axis=1) / np.float32(np.sqrt(2))


def updates(system: str, kind: str, states: int, seeds: int, most: int = MOST) -> np.ndarray:
    """Return the updates until convergence [seeds], `most` where there was none within these."""
    sampler, hyper = SAMPLERS[system]
    memory = replay.make(jnp.int32(0), transitions(states), 1, sampler)
    walks = [walk(states, seed) for seed in range(seeds)]
    one = walks[0]
    phi = jnp.asarray(features(kind, 2 * states))
    truth, rewards, ahead = map(jnp.asarray, (one.truth, one.rewards, one.ahead))

    def errors(weights: Array) -> Array:
        """Return the TD error of each pair."""
        values = phi @ weights
        best = jnp.max(values.reshape(states, 2), axis=1)
        following = jnp.where(ahead < 0, 0, best[ahead])
        return rewards + np.float32(one.discount) * following - values

    def wrong(weights: Array) -> Array:
        return jnp.mean((phi @ weights - truth) ** 2)

    def learn(weights: Array, pair: Array) -> Array:
        return weights + np.float32(RATE) * errors(weights)[pair] * phi[pair]

    def start(key: Array, pairs: Array) -> tuple[Array, replay.ReplayState]:
        weights = np.float32(0.1) * jax.random.normal(key, (phi.shape[1],))
        return weights, memory.add(memory.init(**hyper), pairs)

    def step(
        carry: tuple[Array, replay.ReplayState], key: Array
    ) -> tuple[Array, replay.ReplayState]:
        weights, buffer = carry
        if system == ORACLE:
            after = jax.vmap(lambda pair: learn(weights, pair))(jnp.arange(2 * states))
            return after[jnp.argmin(jax.vmap(wrong)(after))], buffer
        drawn = memory.sample(buffer, key)
        pair = drawn.batch[0]
        error = errors(weights)[pair]
        priority = jnp.abs(error)[None] + np.float32(EPSILON)
        return learn(weights, pair), memory.update(buffer, drawn, priority)

    def goes_on(carry):
        time, _, ended = carry
        return (time < most) & jnp.any(ended == most)

    def train(keys: Array, pairs: Array) -> Array:
        # Not a while_loop under vmap, which selects whole buffers wherever some seed is done.
        def advance(carry):
            time, each, ended = carry
            at = jax.vmap(jax.random.fold_in, (0, None))(keys, time)
            each = jax.vmap(step)(each, at)
            met = jax.vmap(wrong)(each[0]) < np.float32(TOLERANCE)
            return time + np.int32(1), each, jnp.where(met & (ended == most), time + 1, ended)

        begun = jax.vmap(start)(keys, pairs)
        first = jnp.int32(0), begun, jnp.full(len(keys), most, jnp.int32)
        return jax.lax.while_loop(goes_on, advance, first)[2]

    pairs = jnp.asarray(np.stack([each.pairs for each in walks]))
    return np.asarray(jax.jit(train)(jax.random.split(jax.random.key(0), seeds), pairs))


def case(kind: str, states: int) -> str:
    return f"{kind}, {states} states, {transitions(states):,} transitions"


def study(report: Report, sizes: Sequence[int], most: int, console: Console) -> Iterator[int]:
    """Train every system on every memory, as long as it converges; yield each size when done."""
    going = [(kind, system) for kind in KINDS for system in SAMPLERS]
    for states in sizes:
        for kind, system in tuple(going):
            if states > LARGEST.get(system, states):
                continue
            limit = min(most, MOST_OF_ORACLE) if system == ORACLE else most
            found = updates(system, kind, states, SEEDS, limit)
            if found.max() >= limit:
                console.print(f"{case(kind, states)}: {system} ended at {limit:,} updates")
                going.remove((kind, system))
                continue
            report.add(case(kind, states), system, METRIC, "updates", found)
            console.print(f"{case(kind, states)}: {system} {np.median(found):,.0f}")
        yield states


def claims(report: Report) -> None:
    """Claim that prioritised replay takes at most a tenth of uniform replay's updates at 14."""
    for kind in KINDS:
        where = case(kind, 14)
        ours, rival = (report.find(where, system, METRIC) for system in ("prioritised", "uniform"))
        value = rival.value / ours.value if ours and rival else None
        report.claims.append(
            Claim(
                f"{where}: uniform replay's updates over prioritised replay's at least 10",
                value,
                10.0,
                None if value is None else value >= 10,
                ours=report.place(where, "prioritised", METRIC),
                rival=report.place(where, "uniform", METRIC),
            )
        )


def draw(report: Report, sizes: Sequence[int], path: Path) -> None:
    """Draw medians and quartiles of the updates over the memory's size."""
    with plt.style.context(style.STYLE):
        figure, axes = plt.subplots(1, len(KINDS), figsize=(10.5, 3.6), sharey=True)
        for ax, kind in zip(axes, KINDS, strict=True):
            for system in SAMPLERS:
                found = [
                    (transitions(states), record.value, *(record.spread or ()))
                    for states in sizes
                    if (record := report.find(case(kind, states), system, METRIC))
                ]
                if not found:
                    continue
                x, middle, low, high = np.array(found).T
                color, line = LOOKS[system]
                ax.loglog(x, middle, line, marker="o", color=color, markersize=3, label=system)
                ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            style.quiet(ax)
            ax.set_title({"table": "values in a table", "linear": "linear values"}[kind])
            ax.set_xlabel("transitions in memory")
        axes[0].set_ylabel("updates to convergence")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
        figure.savefig(path)
        plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 6 states")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw a picture (PNG) there")
    options = parser.parse_args(arguments)
    seeds = f"0 to {SEEDS - 1} of the memories' order, JAX's key 0 of values and draws"
    report = Report(PACKAGES, "cliffwalk", quick=options.quick, seeds=seeds)
    console = Console(width=120)
    sizes = SIZES[:3] if options.quick else SIZES
    for _ in study(report, sizes, MOST, console):
        report.claims.clear()
        claims(report)
        if options.json is not None:  # an interrupted run keeps the sizes that it has ended
            report.write(options.json)
    report.finish(options.json, console)
    if options.plot is not None:
        draw(report, sizes, options.plot)
        console.print(f"wrote {options.plot}", highlight=False, markup=False)


if __name__ == "__main__":
    main()
