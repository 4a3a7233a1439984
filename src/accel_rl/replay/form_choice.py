"""Choice among forms of prioritised replay by measurement on the device, kept in the cache folder.

Which form is fastest depends on the accelerator and on the capacity, and no name of a platform
tells. So the forms run a few steps each when a memory is made, once for a device and a power of two
of the capacity.
"""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import __version__
from accel_rl.cache import cache_folder
from accel_rl.io import atomic_write
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import Sampler, Span
from accel_rl.types import Array

BATCH, STEPS, REPEATS = 256, 100, 3
LEAST_ALIKE = 0.99  # share of slots that a form must draw as the first one, or a neighbour of these


def fastest(samplers: Mapping[str, Callable[[], Sampler]], ring: Ring) -> str:
    """Return the form whose draws and updates take least time on the default device.

    The first form is the reference: one that draws other items or cannot run there is left out,
    with a warning. With several processes it is the first one, as all must take the same.

    Args:
      samplers: makers of samplers, by form, which draw the same items for the same words.
      ring: sizes of the ring.
    """
    if jax.process_count() > 1:
        return next(iter(samplers))
    path, key = cache_folder() / "forms.json", _key(samplers, ring)
    known = _read(path)
    if known.get(key) not in samplers:
        # In a thread, which traces nothing: a memory may be made while a function is traced.
        with ThreadPoolExecutor(1) as pool:
            known[key] = pool.submit(_measured, samplers, ring).result()
        _write(path, known)
    return known[key]


def _measured(samplers: Mapping[str, Callable[[], Sampler]], ring: Ring) -> str:
    seconds, expected = {}, None
    for form, make in samplers.items():
        try:
            seconds[form], slots = _run(make(), ring)
        except Exception as error:  # of a compiler or a driver, whichever it raises
            if expected is None:
                raise
            warnings.warn(f"prioritised({form!r}) does not run here: {error}", stacklevel=4)
            continue
        expected = slots if expected is None else expected
        if np.mean(np.abs(slots - expected) <= 1) < LEAST_ALIKE:
            warnings.warn(f"prioritised({form!r}) draws other items here", stacklevel=4)
            del seconds[form]
    return min(seconds, key=seconds.__getitem__)


def _run(sampler: Sampler, ring: Ring) -> tuple[float, np.ndarray]:
    """Return the least seconds of some steps, and the slots that one draw gives."""
    key, size = jax.random.key(0), ring.capacity
    positions = (jnp.arange(BATCH, dtype=jnp.float32) + 0.5) / BATCH
    words = jax.random.bits(key, (STEPS, sampler.num_words, BATCH))
    span = Span(jnp.int32(0), jnp.int32(size))

    def step(state: Any, words: Array) -> tuple[Any, Array]:
        slots, probabilities = sampler.draw(state, span, positions, words)
        return sampler.assign(state, slots, 1 + probabilities), slots

    steps = jax.jit(lambda state: jax.lax.scan(step, state, words)[0], donate_argnums=0)
    weights = jax.random.uniform(key, (size,), minval=0.5, maxval=1.5)
    state = jax.jit(sampler.assign_range)(sampler.init(), jnp.int32(0), weights)
    slots = np.asarray(jax.jit(step)(state, words[0])[1])
    state = jax.block_until_ready(steps(state))  # compiled before it is timed
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        state = jax.block_until_ready(steps(state))
        taken.append(time.perf_counter() - began)
    return min(taken), slots


def _key(samplers: Mapping[str, Callable[[], Sampler]], ring: Ring) -> str:
    device = jax.devices()[0]
    versions = f"jax {jax.__version__}, accel-rl {__version__}"
    octave = (ring.capacity - 1).bit_length()
    return f"{device.platform} {device.device_kind}, {versions}, {', '.join(samplers)}, 2^{octave}"


def _read(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, known: Mapping[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "w") as file:
            json.dump(known, file, indent=1)
    except OSError:
        pass  # without a folder that can be written it is measured again next time
