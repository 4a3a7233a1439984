"""Growth of replay buffers with their capacity: time of a step and memory of an item."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from growth_fit import Case, Curve, Peak, least_seconds
from replay_loops import copies, rewrites, sampling_loop

from accel_rl import replay
from accel_rl.types import Transition

ADDED, BATCH, STEPS = 16, 256, 200
FRAMES_ADDED, FRAMES_BATCH = 8, 32
# Items that fill a buffer in one call. AMPER gathers a block of 256 weights for each.
AT_ONCE, FRAMES_AT_ONCE, AMPER_AT_ONCE = 1_000_000, 4_000, 16_000
COPIED = "whole arrays copied in a step"
STEP, ADD = f"add {ADDED}, sample {BATCH}, update", f"add {ADDED}"
FRAME_STEP = f"add {FRAMES_ADDED}, sample {FRAMES_BATCH}, update"
SAMPLE = f"sample {BATCH}"
HELD, PEAK = "state", "peak of the process"
CACHES = 0.25  # tolerance where a larger buffer leaves the processor's caches
HALVES = (1.0, 3.2)


def decades(first: int, last: int) -> tuple[int, ...]:
    """Return sizes from 10**first to 10**last, two a decade."""
    return *(int(x * 10**n) for n in range(first, last) for x in HALVES), 10**last


def divisor(number: int, most: int) -> int:
    """Return the largest divisor up to a limit."""
    return next(each for each in range(min(number, most), 0, -1) if number % each == 0)


def filled(memory: replay.Replay, num_envs: int, at_once: int) -> replay.ReplayState:
    """Return a full buffer, its priorities lognormal, filled in equal calls."""
    store = memory.parts[1]
    rows = divisor(store.ring.rows, max(1, min(store.ring.rows // 2, at_once // num_envs)))
    random = np.random.default_rng(0)

    def leaf(spec: Any) -> jax.Array:
        drawn = random.integers(0, 2, (rows, num_envs, *spec.shape), np.uint8)
        return jnp.asarray(drawn.astype(spec.dtype))

    items = jax.tree.map(leaf, store.example)
    priorities = jnp.asarray(random.lognormal(sigma=1.5, size=(rows, num_envs)), jnp.float32)
    add = jax.jit(functools.partial(memory.add, batch_major=False), donate_argnums=0)
    state = jax.jit(memory.init)()
    for _ in range(store.ring.rows // rows):
        state = add(state, items, priorities)
    return jax.block_until_ready(state)


def scanned(
    body: Callable[[Any, Any], tuple[Any, Any]], state: Any, inputs: Any, capacity: int
) -> tuple[Any, float, int]:
    """Run a compiled scan that is given its state; return state, seconds a step, whole copies."""
    scan = jax.jit(lambda state, inputs: jax.lax.scan(body, state, inputs), donate_argnums=0)
    compiled = scan.lower(state, inputs).compile()
    held = [state]
    del state

    def run() -> None:
        state, seen = compiled(held.pop(), inputs)
        held.append(jax.block_until_ready(state))
        jax.block_until_ready(seen)

    seconds = least_seconds(run)
    text = compiled.as_text()
    steps = len(jax.tree.leaves(inputs)[0])
    return held[0], seconds / steps, copies(text, capacity) + rewrites(text, capacity)


def inputs_of(memory: replay.Replay, num_envs: int, batch: int, steps: int) -> Any:
    """Return new items, a key and noise of priorities for each step."""
    example = memory.parts[1].example
    new = jax.tree.map(lambda x: jnp.ones((steps, num_envs, *x.shape), x.dtype), example)
    noise = np.random.default_rng(1).lognormal(sigma=1.5, size=(steps, batch))
    return new, jax.random.split(jax.random.key(0), steps), jnp.asarray(noise, jnp.float32)


def step_of(memory: replay.Replay, gamma: float | None = None) -> Callable[..., Any]:
    """Return a scan's body that adds, samples, and sets priorities computed from the batch."""

    def body(state: Any, inputs: Any) -> tuple[Any, Any]:
        new, key, noise = inputs
        state = memory.add(state, new)
        drawn = memory.sample(state, key, gamma=gamma)
        leaves = [x.reshape(len(noise), -1) for x in jax.tree.leaves(drawn.batch)]
        read = sum(leaf.astype(jnp.float32).mean(axis=1) for leaf in leaves)
        return memory.update(state, drawn, noise + 1e-3 * jnp.abs(read)), drawn.probabilities

    return body


def state_bytes(state: Any) -> int:
    """Return the bytes of a state's leaves."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def prioritised(capacity: int) -> dict[str, float]:
    """Measure prioritised replay of items of 8 bytes."""
    peak = Peak()
    memory = replay.make(jnp.zeros(2), capacity, BATCH, "prioritised", num_envs=ADDED)
    state = filled(memory, ADDED, AT_ONCE)
    inputs = inputs_of(memory, ADDED, BATCH, STEPS)
    state, step, copied = scanned(step_of(memory), state, inputs, capacity)
    held, most = state_bytes(state) / capacity, peak.size / capacity
    new = inputs[0]
    state, add, _ = scanned(lambda s, x: (memory.add(s, x), None), state, new, capacity)
    found = {STEP: step * 1e6, ADD: add * 1e6, HELD: held, PEAK: most}
    return {**found, COPIED: copied}


def frames(capacity: int) -> dict[str, float]:
    """Measure prioritised replay of stacks of four frames of 84 by 84, each stored once."""
    peak = Peak()
    frame = jnp.zeros((84, 84), jnp.uint8)
    item = Transition(frame, jnp.int32(0), jnp.float32(0), jnp.float32(1))
    memory = replay.make(
        item, capacity, FRAMES_BATCH, "prioritised", num_envs=FRAMES_ADDED, frame_stack=4
    )
    state = filled(memory, FRAMES_ADDED, FRAMES_AT_ONCE)
    inputs = inputs_of(memory, FRAMES_ADDED, FRAMES_BATCH, STEPS // 4)
    state, step, copied = scanned(step_of(memory, 0.99), state, inputs, capacity)
    held, most = state_bytes(state) / capacity, peak.size / capacity
    return {FRAME_STEP: step * 1e6, HELD: held, PEAK: most, COPIED: copied}


class _Held:
    """Full buffer, as `replay_loops` asks for it."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def full(self, name: str, memory: Any) -> Any:
        """Return the state."""
        del name, memory
        return self._state


def amper(sampler: str, capacity: int) -> dict[str, float]:
    """Measure a variant of AMPER on items of 8 bytes."""
    memory = replay.make(jnp.zeros(2), capacity, BATCH, sampler, num_envs=ADDED)
    state = filled(memory, ADDED, AMPER_AT_ONCE)
    inputs = inputs_of(memory, ADDED, BATCH, STEPS)
    state, step, copied = scanned(step_of(memory), state, inputs, capacity)
    loop = sampling_loop("", memory, _Held(state), STEPS)
    sample = least_seconds(loop) / STEPS
    return {SAMPLE: sample * 1e6, STEP: step * 1e6, COPIED: copied}


MEMORY = (Curve(HELD, "B an item", "O(1)"), Curve(PEAK, "B an item", "O(1)"))
CASES = (
    Case(
        "per", "prioritised replay", "items", decades(4, 8), (10_000, 32_000, 100_000),
        prioritised, (
            Curve(STEP, "us", "O(log n)", CACHES), Curve(ADD, "us", "O(log n)", CACHES), *MEMORY,
        ),
        (COPIED,), lambda size: 40.0 * size, 4.0,
    ),
    Case(
        "frames", "frames 84x84x4, stored once", "frames", decades(4, 6), (),
        frames, (Curve(FRAME_STEP, "us", "O(log n)", CACHES), *MEMORY), (COPIED,),
        lambda size: 8_000.0 * size, 2.0,
    ),
    *(
        Case(
            name, title, "items", (10_000, 100_000, 1_000_000, 10_000_000), (),
            functools.partial(amper, name),
            (Curve(SAMPLE, "us", "O(1)", CACHES), Curve(STEP, "us", "O(1)", CACHES)), (COPIED,),
            share=2.0,
        )
        for name, title in (("amper_fr", "AMPER-fr"), ("amper_k", "AMPER-k"))
    ),
)  # fmt: skip
