"""Categorical distributional Q-learning (C51)."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses.shapes import require_shapes
from accel_rl.arguments import whole
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

    Raises:
      ValueError: if a shape is wrong.

    Reference: Bellemare, Dabney and Munos, "A distributional perspective on reinforcement
      learning", ICML 2017, equation 7.
    """
    require_shapes(position=(position, "M"), probability=(probability, "M"))
    whole("num_atoms", num_atoms, 1)
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

    Raises:
      ValueError: if a shape is wrong.

    Reference: Bellemare, Dabney and Munos 2017, algorithm 1; as a divergence, Hessel et al.,
      "Rainbow: combining improvements in deep reinforcement learning", AAAI 2018, equation 3.
    """
    require_shapes(
        atoms=(atoms, "N"),
        logits_tm1=(logits_tm1, "AN"),
        a_tm1=(a_tm1, ""),
        r_t=(r_t, ""),
        discount_t=(discount_t, ""),
        logits_t=(logits_t, "AN"),
        q_t_selector=(q_t_selector, "A"),
    )
    num_atoms = whole("the number of atoms", atoms.shape[0], 2)
    position = (r_t + discount_t * atoms - atoms[0]) / (atoms[1] - atoms[0])
    probability = jax.nn.softmax(logits_t[jnp.argmax(q_t_selector)])
    target = jax.lax.stop_gradient(project(position, probability, num_atoms))
    predicted = jax.nn.log_softmax(logits_tm1[a_tm1])
    # xlogy is 0 for atoms of probability 0, where target * log(target) is NaN.
    return jnp.sum(jax.scipy.special.xlogy(target, target) - target * predicted)
