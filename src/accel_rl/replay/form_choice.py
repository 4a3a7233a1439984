"""Choice among forms of prioritised replay by measurement on the device, kept in the cache folder.

The fastest form depends on the accelerator and on the capacity, not on the platform alone. So each
form runs a few steps when a memory is made, once for a device and a power of two of the capacity.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
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
LEAST_ALIKE = 0.99  # share of its slots that a form must draw near those of the first form
_chosen: dict[str, str] = {}  # by key: two memories of a process must not differ in their states


def fastest(samplers: Mapping[str, Callable[[], Sampler]], ring: Ring) -> str:
    """Return the form whose draws and updates take least time on the default device.

    The first form is the reference: one that draws other items or cannot run there is left out,
    with a warning. With several processes it is the first one, as all must take the same.

    Args:
      samplers: makers of samplers, by form, which draw the same items for the same words.
      ring: sizes of the ring.

    Raises:
      Exception: of the first form, whichever it raises if it cannot run.
    """
    if jax.process_count() > 1:
        return next(iter(samplers))
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    key = _key(samplers, ring, device)
    if key not in _chosen:
        path = cache_folder() / "forms.json"
        form = _read(path).get(key, "")
        if form not in samplers:
            # In a thread, which traces nothing: a memory may be made while a function is traced.
            with ThreadPoolExecutor(1) as pool:
                form, left_out = pool.submit(_measured, samplers, ring, device).result()
            for reason in left_out:
                warnings.warn(reason, stacklevel=2)
            _write(path, {**_read(path), key: form})
        _chosen[key] = form
    return _chosen[key]


def _measured(
    samplers: Mapping[str, Callable[[], Sampler]], ring: Ring, device: Any
) -> tuple[str, list[str]]:
    """Return the fastest form, and why others are left out."""
    seconds: dict[str, float] = {}
    expected, left_out = None, []
    # Sums of float32 round more in large memories, and a draw may be off by some items.
    near = 1 + (ring.capacity >> 20)
    for form, make in samplers.items():
        try:
            with jax.default_device(device):
                taken, slots = _run(make(), ring)
        except Exception as error:  # of a compiler or a driver, whichever it raises
            if expected is None:
                raise
            left_out.append(f"prioritised({form!r}) does not run here: {error}")
            continue
        expected = slots if expected is None else expected
        if np.mean(np.abs(slots - expected) <= near) < LEAST_ALIKE:
            left_out.append(f"prioritised({form!r}) draws other items here")
        else:
            seconds[form] = taken
    return min(seconds, key=seconds.__getitem__), left_out


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


def _key(samplers: Iterable[str], ring: Ring, device: Any) -> str:
    device = device if isinstance(device, jax.Device) else jax.devices(device)[0]
    versions = f"jax {jax.__version__}, accel-rl {__version__}"
    octave = (ring.capacity - 1).bit_length()
    return f"{device.platform} {device.device_kind}, {versions}, {', '.join(samplers)}, 2^{octave}"


def _read(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = known if isinstance(known, dict) else {}
    return {key: form for key, form in known.items() if isinstance(form, str)}


def _write(path: Path, known: Mapping[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "w") as file:
            json.dump(known, file, indent=1)
    except OSError:
        pass  # without a folder that can be written it is measured again next time
