"""What every TabularRule must do; see docs/tabular-rule.md. Call `check_rule` on a new rule."""

import jax
import jax.numpy as jnp
import numpy as np
from transitions import synthetic

from accel_rl.tabular import Hyperparameters, PassProgram, make_order
from accel_rl.tabular.passes import PATHS
from accel_rl.tabular.rows import encode_transition, to_words

S, A, ROWS = 5, 3, 40


def check_rule(rule):
    """Assert the contract for one rule, in whatever numerics it has."""
    rows = synthetic(S, A, ROWS, seed=1)
    rates = Hyperparameters(alpha=0.25, gamma=0.5, epsilon=0.25)
    key = jax.random.key(0)
    tables = rule.init(S, A, 1.0)
    assert tables.shape == (rule.tables, S, A)
    assert tables.dtype == rule.numerics.dtype
    np.testing.assert_allclose(rule.values(tables), 1.0)
    step = jax.jit(rule.update)

    first = jax.tree.map(lambda x: x[0], rows)
    once = step(tables, first, rates, key)
    assert once.shape == tables.shape
    assert once.dtype == tables.dtype
    changed = np.argwhere(np.asarray(once != tables))
    assert len(changed) <= 1, "one transition must change one entry at most"
    for _, state, action in changed:
        assert (state, action) == (int(first.state), int(first.action))

    still = step(tables, first, Hyperparameters(alpha=0.0, gamma=0.5, epsilon=0.25), key)
    np.testing.assert_array_equal(still, tables, "alpha 0 must change nothing")

    def scan_step(q, row_key):
        return rule.update(q, row_key[0], rates, row_key[1]), None

    keys = jax.random.split(key, ROWS)
    scanned, _ = jax.jit(lambda q: jax.lax.scan(scan_step, q, (rows, keys)))(tables)
    looped = tables
    for k in range(ROWS):
        looped = step(looped, jax.tree.map(lambda x, k=k: x[k], rows), rates, keys[k])
    np.testing.assert_allclose(scanned, looped, rtol=1e-5)

    alphas = jnp.asarray([0.0, 0.25, 1.0])
    swept = jax.vmap(lambda a: rule.update(tables, first, Hyperparameters(a, 0.5, 0.25), key))(
        alphas
    )
    np.testing.assert_allclose(swept[1], once, rtol=1e-6)

    ended = jax.tree.map(lambda x: x, first)
    terminal = ended.__class__(**{**vars(ended), "discount": jnp.float32(0)})
    full = Hyperparameters(alpha=1.0, gamma=0.5, epsilon=0.25)
    learned = np.asarray(rule.numerics.decode(step(tables, terminal, full, key)))
    hit = learned[:, int(first.state), int(first.action)]
    reward = float(first.reward)
    assert np.isclose(hit, reward, atol=1e-3).any(), "at termination the target is the reward"

    if not rule.random:
        _check_paths_agree_with_update(rule, rows, rates, tables, looped)


def _check_paths_agree_with_update(rule, rows, rates, tables, looped):
    """With target block 1, a pass over one chunk is `update` on its rows, one after the other."""
    valid = jnp.ones(ROWS, bool)
    words = to_words(encode_transition(rows, A, rule.numerics.encode(rows.reward), valid))[None]
    program = PassProgram(rule, make_order("SEQ"), S, A, target_block=1)
    coefficients = rule.coefficients(rates)
    for path in PATHS.values():

        @jax.jit
        def run(words, flat, path=path):
            return path.sweep(program, flat, path.arrange(program, words), coefficients)

        swept = run(words, tables.reshape(1, -1))
        np.testing.assert_allclose(swept.reshape(tables.shape), looped, rtol=1e-5)
