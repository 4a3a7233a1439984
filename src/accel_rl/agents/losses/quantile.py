"""Distributional Q-learning by quantile regression (QR-DQN)."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses.regression import huber
from accel_rl.agents.losses.shapes import require_shapes
from accel_rl.types import Array


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

    Raises:
      ValueError: if a shape is wrong.

    Reference: Dabney et al., "Distributional reinforcement learning with quantile regression",
      AAAI 2018, equation 10 and algorithm 1.
    """
    require_shapes(quantiles=(quantiles, "N"), targets=(targets, "M"))
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

    Raises:
      ValueError: if a shape is wrong.

    Reference: Dabney et al. 2018, algorithm 1.
    """
    require_shapes(
        quantiles_tm1=(quantiles_tm1, "AN"),
        a_tm1=(a_tm1, ""),
        r_t=(r_t, ""),
        discount_t=(discount_t, ""),
        quantiles_t=(quantiles_t, "AM"),
        q_t_selector=(q_t_selector, "A"),
    )
    targets = r_t + discount_t * quantiles_t[jnp.argmax(q_t_selector)]
    quantiles = quantiles_tm1[a_tm1]
    error = jax.lax.stop_gradient(jnp.mean(targets) - jnp.mean(quantiles))
    return quantile_regression(quantiles, targets, delta), error
