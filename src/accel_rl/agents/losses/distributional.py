"""Distributional Q-learning: categorical (C51) and by quantile regression (QR-DQN)."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses.regression import huber
from accel_rl.types import Array


def project(position: Array, probability: Array, num_atoms: int) -> Array:
    """Project probability mass onto evenly spaced atoms by linear interpolation.

    Args:
      position: [M] float32, positions of the mass in units of atoms: 0 is the first atom,
        num_atoms - 1 the last. Positions outside are clipped to the nearest atom.
      probability: [M] float32, the mass at each position.
      num_atoms: N.

    Returns:
      [N] float32, the mass at each atom; its sum is that of `probability`.

    Reference: Bellemare, Dabney and Munos, "A distributional perspective on reinforcement
      learning", ICML 2017, equation 7.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([position, probability], 1)
    chex.assert_equal_shape([position, probability])
    inside = jnp.clip(position, 0, np.float32(num_atoms - 1))
    atoms = jnp.arange(num_atoms, dtype=jnp.float32)
    near = jnp.maximum(1 - jnp.abs(inside[None, :] - atoms[:, None]), 0)
    return near @ probability


def categorical_q_learning(
    atoms: Array,
    logits_tm1: Array,
    a_tm1: Array,
    r_t: Array,
    discount_t: Array,
    logits_t: Array,
    q_t_selector: Array,
) -> Array:
    """Return the KL divergence of the predicted distribution from the projected target, in nats.

    The target is the target network's distribution for the selector's greedy action, its atoms z
    moved to r + discount * z and projected onto `atoms`. The gradient is that of the cross-entropy.
    Unlike the cross-entropy, the divergence is 0 for a perfect prediction, even if returns are
    random.

    Args:
      atoms: [N] float32, evenly spaced and increasing, at least two.
      logits_tm1: [A, N] float32, of the online network for the observation.
      a_tm1: [] int, the action taken.
      r_t: [] float32, one-step or discounted n-step reward.
      discount_t: [] float32, bootstrap coefficient; 0 where the episode terminated.
      logits_t: [A, N] float32, of the target network for the next observation.
      q_t_selector: [A] float32, values that select the next action.

    Returns:
      [] float32, at least 0 up to rounding, with a gradient with respect to `logits_tm1` only.

    Reference: Bellemare, Dabney and Munos 2017, algorithm 1; as a divergence, Hessel et al.,
      "Rainbow: combining improvements in deep reinforcement learning", AAAI 2018, equation 3.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([atoms, q_t_selector, a_tm1, r_t, discount_t], [1, 1, 0, 0, 0])
    num_actions, num_atoms = len(q_t_selector), len(atoms)
    chex.assert_axis_dimension_gt(atoms, 0, 1)  # of one atom the loss is always 0
    chex.assert_shape([logits_tm1, logits_t], (num_actions, num_atoms))
    # (r + discount * z - z_0) / spacing, in an order that keeps the digits of atoms far from 0.
    spacing = (atoms[-1] - atoms[0]) / np.float32(num_atoms - 1)
    numbers = jnp.arange(num_atoms, dtype=jnp.float32)
    position = discount_t * numbers + (r_t - (1 - discount_t) * atoms[0]) / spacing
    probability = jax.nn.softmax(logits_t[jnp.argmax(q_t_selector)])
    target = jax.lax.stop_gradient(project(position, probability, num_atoms))
    predicted = jax.nn.log_softmax(logits_tm1[a_tm1])
    # xlogy is 0 for atoms of probability 0, where target * log(target) is NaN.
    return jnp.sum(jax.scipy.special.xlogy(target, target) - target * predicted)


def quantile_regression(quantiles: Array, targets: Array, delta: float = 1.0) -> Array:
    """Return the quantile Huber loss: the sum over quantiles of the mean over targets.

    Quantile i of N is at the midpoint m = (i + 1/2) / N. The loss is m * `huber` of the error where
    the target is above the quantile, (1 - m) * `huber` where it is below.

    Args:
      quantiles: [N] float32.
      targets: [M] float32, equally likely.
      delta: error at which the Huber loss becomes linear, above 0.

    Returns:
      [] float32, at least 0, with a gradient with respect to `quantiles` only.

    Reference: Dabney et al., "Distributional reinforcement learning with quantile regression",
      AAAI 2018, equation 10 and algorithm 1.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([quantiles, targets], 1)
    num = quantiles.shape[0]
    midpoints = ((np.arange(num) + 0.5) / num).astype(np.float32)[:, None]
    error = jax.lax.stop_gradient(targets)[None, :] - quantiles[:, None]
    share = jnp.where(error < 0, 1 - midpoints, midpoints)
    return jnp.sum(jnp.mean(share * huber(error, delta), axis=1))


def quantile_q_learning(
    quantiles_tm1: Array,
    a_tm1: Array,
    r_t: Array,
    discount_t: Array,
    quantiles_t: Array,
    q_t_selector: Array,
    delta: float = 1.0,
) -> tuple[Array, Array]:
    """Return the quantile Huber loss of a transition, and the TD error of the mean.

    Args:
      quantiles_tm1: [A, N] float32, of the online network for the observation.
      a_tm1: [] int, the action taken.
      r_t: [] float32, one-step or discounted n-step reward.
      discount_t: [] float32, bootstrap coefficient; 0 where the episode terminated.
      quantiles_t: [A, M] float32, of the target network for the next observation.
      q_t_selector: [A] float32, values that select the next action.
      delta: as of `quantile_regression`.

    Returns:
      The loss, [] float32, with a gradient with respect to `quantiles_tm1` only, and the mean of
      the targets minus that of the quantiles, [] float32. The latter is the TD error of the
      expected return; unlike the loss it is 0 for a correct mean even if returns are random.

    Reference: Dabney et al. 2018, algorithm 1.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([q_t_selector, a_tm1, r_t, discount_t], [1, 0, 0, 0])
    chex.assert_shape([quantiles_tm1, quantiles_t], (len(q_t_selector), None))
    targets = r_t + discount_t * quantiles_t[jnp.argmax(q_t_selector)]
    quantiles = quantiles_tm1[a_tm1]
    error = jax.lax.stop_gradient(jnp.mean(targets) - jnp.mean(quantiles))
    return quantile_regression(quantiles, targets, delta), error
