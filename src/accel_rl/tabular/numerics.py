"""Arithmetic of Q-tables: FP32 and two forms of INT32 fixed point.

A `Numerics` is a bundle of pure functions, so that a rule is written once and runs in any of them.
Rates (alpha, gamma, epsilon) become coefficients, and values become table entries. Both stay
leaves, so `vmap` over rates works. Every operation is elementwise.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from accel_rl.arguments import one_of, real, whole, within
from accel_rl.types import Array, ArrayLike, PyTree

INT32_MAX = 2**31 - 1
MAX_MEAN = 46_340  # most entries of an INT32 mean: their remainders are summed in 32 bits
KERNEL_SCALE = 10_000  # the scale that native kernels are compiled for, ARL_SCALE


class Kernel(NamedTuple):
    """Native code that computes the same as some Python functions.

    Attributes:
      name: name of the native code.
      functions: functions that it computes. The native code is not used for a bundle whose own
        functions differ because they were replaced.
    """

    name: str
    functions: tuple[Callable[..., PyTree], ...]

    def name_for(self, *functions: Callable[..., PyTree]) -> str | None:
        """Return the name if the native code computes these functions, else None."""
        return self.name if functions == self.functions else None


class Numerics(NamedTuple):
    """Arithmetic on table entries; made by `fp32`, `int32_scaled` or `int32_pow2`.

    Attributes:
      name: "fp32", "int32_scaled" or "int32_pow2".
      dtype: NumPy dtype of a table entry.
      gamma_max: largest discount for which entries cannot overflow (1 if they never can).
      reward_range: smallest and largest reward for which entries cannot overflow.
      encode: float32 value -> entry, rounded to the nearest (ties to even).
      decode: entry -> float32 value.
      encode_rate: float32 rate in [0, 1] -> coefficient of `dtype`.
      decode_rate: coefficient -> float32, the effective rate.
      multiply: (coefficient, entry) -> entry.
      add: (entry, entry) -> entry.
      subtract: (entry, entry) -> entry.
      mean: sequence of n entries -> entry, their mean, summed from the first to the last.
      kernel: native arithmetic that computes the same, or None.
    """

    name: str
    dtype: np.dtype
    gamma_max: float
    reward_range: tuple[float, float]
    encode: Callable[[ArrayLike], Array]
    decode: Callable[[Array], Array]
    encode_rate: Callable[[ArrayLike], Array]
    decode_rate: Callable[[Array], Array]
    multiply: Callable[[Array, Array], Array]
    add: Callable[[Array, Array], Array]
    subtract: Callable[[Array, Array], Array]
    mean: Callable[[Sequence[Array]], Array]
    kernel: Kernel | None = None


@functools.cache
def fp32() -> Numerics:
    """Make IEEE single-precision numerics, with operations in the order in which they are written.

    The mean of n entries is their sum times float32(1 / n).
    """

    def mean(values: Sequence[Array]) -> Array:
        return _sum(values) * np.float32(1 / len(values))

    def as_float(x: ArrayLike) -> Array:
        return jnp.asarray(x, jnp.float32)

    return Numerics(
        name="fp32",
        dtype=np.dtype(np.float32),
        gamma_max=1.0,
        reward_range=(-np.inf, np.inf),
        encode=as_float,
        decode=as_float,
        encode_rate=as_float,
        decode_rate=as_float,
        multiply=jnp.multiply,
        add=jnp.add,
        subtract=jnp.subtract,
        mean=mean,
        kernel=Kernel("fp32", (jnp.multiply, jnp.add, jnp.subtract, mean)),
    )


@functools.cache
def int32_scaled(
    scale: int = KERNEL_SCALE,
    gamma_max: float = 0.99,
    reward_range: tuple[float, float] = (-100.0, 100.0),
) -> Numerics:
    """Make INT32 numerics with a decimal scale and truncating division, as remembered of SwiftRL.

    A product is (x / scale) * c + ((x % scale) * c) / scale, division truncating toward zero:
    exact in 32 bits for 0 <= c <= scale, where c * x / scale would overflow. Values reachable under
    `gamma_max` and `reward_range` must not overflow an int32.

    Args:
      scale: entries and coefficients for one unit; 1 to 46,340, so that its square fits.
      gamma_max: the largest discount that will be used, below 1.
      reward_range: the smallest and largest reward that will be used.

    Reference: Gogineni et al., "SwiftRL", ISPASS 2024 (fixed point instead of emulated floats).
    """
    whole("scale", scale, 1, 46_340)
    divisor = np.int32(scale)

    def multiply(c: Array, x: Array) -> Array:
        whole, part = _divide(x, divisor), _remainder(x, divisor)
        return whole * c + _divide(part * c, divisor)

    def mean(values: Sequence[Array]) -> Array:
        n = np.int32(len(values))
        rest = _sum([_remainder(x, n) for x in values])
        return _sum([_divide(x, n) for x in values]) + _divide(rest, n)

    arithmetic = multiply, jnp.add, jnp.subtract, mean
    made = _fixed_point("int32_scaled", scale, scale, gamma_max, reward_range, *arithmetic)
    return made if scale == KERNEL_SCALE else made._replace(kernel=None)


@functools.cache
def int32_pow2(
    fraction_bits: int = 16,
    gamma_max: float = 0.99,
    reward_range: tuple[float, float] = (-100.0, 100.0),
) -> Numerics:
    """INT32 with `fraction_bits` binary places, rates in 1/256, rounding and saturation.

    A product is c * x / 256, rounded half away from zero, computed without a wider type; sums and
    differences saturate at +-(2**31 - 1), which values reachable under `gamma_max` and
    `reward_range` must not. Shift-and-add code for fixed rates gives the same values.

    Args:
      fraction_bits: binary places of an entry, 0 to 24.
      gamma_max: the largest discount that will be used, below 1.
      reward_range: the smallest and largest reward that will be used.
    """
    whole("fraction_bits", fraction_bits, 0, 24)

    def multiply(c: Array, x: Array) -> Array:
        # In two parts, since c * x would need 40 bits. Magnitudes, as >> rounds towards -infinity.
        magnitude = jnp.abs(x)
        low = (magnitude & np.int32(255)) * c + np.int32(128)
        product = (magnitude >> np.int32(8)) * c + (low >> np.int32(8))
        return jnp.where(x < np.int32(0), -product, product)

    def mean(values: Sequence[Array]) -> Array:
        n = np.int32(len(values))
        rest = _sum([_remainder(x, n) for x in values])
        half = jnp.where(rest < np.int32(0), -(n // 2), n // 2).astype(jnp.int32)
        return _sum([_divide(x, n) for x in values]) + _divide(rest + half, n)

    def subtract(x: Array, y: Array) -> Array:
        return saturating_add(x, -y)

    arithmetic = multiply, saturating_add, subtract, mean
    return _fixed_point("int32_pow2", 2**fraction_bits, 256, gamma_max, reward_range, *arithmetic)


FACTORIES: dict[str, Callable[[], Numerics]] = {
    "fp32": fp32,
    "int32_scaled": int32_scaled,
    "int32_pow2": int32_pow2,
}


def make_numerics(name: str) -> Numerics:
    """Make the numerics called `name`, with default scale and bounds."""
    one_of("numerics", name, FACTORIES)
    return FACTORIES[name]()


def saturating_add(x: Array, y: Array) -> Array:
    """Add int32 x and y, clipped to +-(2**31 - 1)."""
    total = x + y
    overflow = ((x ^ total) & (y ^ total)) < np.int32(0)
    limit = jnp.where(x < np.int32(0), np.int32(-INT32_MAX), np.int32(INT32_MAX))
    return jnp.where(overflow, limit, jnp.maximum(total, np.int32(-INT32_MAX)))


def _fixed_point(
    name: str,
    scale: int,
    rate_scale: int,
    gamma_max: float,
    reward_range: tuple[float, float],
    multiply: Callable[[Array, Array], Array],
    add: Callable[[Array, Array], Array],
    subtract: Callable[[Array, Array], Array],
    mean: Callable[[Sequence[Array]], Array],
) -> Numerics:
    """Make INT32 numerics that have native code; check that reachable values fit."""
    low, high = (real("reward_range", bound) for bound in reward_range)
    within("gamma_max", gamma_max, "[0, 1)")
    if not low <= high:
        raise ValueError(f"reward_range must be (low, high) with low <= high, got {reward_range}")
    value = max(abs(low), abs(high)) / (1 - gamma_max)
    # A temporal difference spans twice the largest value.
    if 2 * value * scale > INT32_MAX:
        raise ValueError(
            f"values up to {value:g} (reward_range {reward_range}, gamma_max {gamma_max}) at scale "
            f"{scale} need {2 * value * scale:.3g} > {INT32_MAX}: lower the scale, gamma_max or "
            "reward_range"
        )
    return Numerics(
        name,
        np.dtype(np.int32),
        gamma_max,
        reward_range,
        lambda x: _quantise(x, scale),
        lambda x: _dequantise(x, scale),
        lambda x: _quantise(x, rate_scale),
        lambda x: _dequantise(x, rate_scale),
        multiply,
        add,
        subtract,
        mean,
        Kernel(name, (multiply, add, subtract, mean)),
    )


def _divide(x: Array, n: np.int32) -> Array:
    return lax.div(x, jnp.full_like(x, n))  # truncates toward zero, as C does


def _remainder(x: Array, n: np.int32) -> Array:
    return lax.rem(x, jnp.full_like(x, n))


def _quantise(x: ArrayLike, scale: int) -> Array:
    return jnp.round(jnp.asarray(x, jnp.float32) * np.float32(scale)).astype(jnp.int32)


def _dequantise(x: Array, scale: int) -> Array:
    return jnp.asarray(x).astype(jnp.float32) / np.float32(scale)


def _sum(values: Sequence[jax.Array]) -> jax.Array:
    # Left to right, as a C loop: jnp.sum may associate differently.
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
