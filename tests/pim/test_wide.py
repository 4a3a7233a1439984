"""64-bit arithmetic on 32-bit words, against Python integers."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracle

from accel_rl.pim import wide

COUNT = 16
INT64 = st.lists(st.integers(-(2**61), 2**61), min_size=COUNT, max_size=COUNT)


def as_wide(values):
    words = [(v >> 32 & 0xFFFFFFFF, v & 0xFFFFFFFF) for v in values]
    return wide.Wide(*(jnp.asarray(np.asarray(w, np.uint32)) for w in zip(*words, strict=True)))


def as_ints(x):
    bits = np.asarray(x.high).astype(np.uint64) << np.uint64(32) | np.asarray(x.low)
    return bits.astype(np.int64).tolist()


@hypothesis.given(INT64, INT64, st.integers(0, 31))
def test_sums_negations_and_shifts(xs, ys, bits):
    total = wide.add(as_wide(xs), as_wide(ys))
    assert as_ints(total) == [x + y for x, y in zip(xs, ys, strict=True)]
    assert as_ints(wide.negate(as_wide(xs))) == [-x for x in xs]
    wrapped = [((x << bits) + 2**63) % 2**64 - 2**63 for x in xs]
    assert as_ints(wide.shift_left(as_wide(xs), bits)) == wrapped


divide = jax.jit(wide.divide_rounded)


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(1, 2**32 - 1)),
        min_size=COUNT,
        max_size=COUNT,
    ),
    st.floats(-0.5, 0.5),
)
def test_division_rounds_half_away_from_zero(pairs, fraction):
    # Dividends whose quotient fits an int32, halves among them.
    dividends = [q * d + int(fraction * d) for q, d in pairs]
    divisors = jnp.asarray(np.asarray([d for _, d in pairs], np.uint32))
    truth = [oracle.half_away(x, d) for x, (_, d) in zip(dividends, pairs, strict=True)]
    assert divide(as_wide(dividends), divisors).tolist() == truth
