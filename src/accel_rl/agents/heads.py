"""Heads of Q-networks: expected values, or distributions of returns."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses import LOSSES, categorical_q_learning, q_learning, quantile_q_learning
from accel_rl.arguments import one_of, whole
from accel_rl.types import Array

OWN_LOSS = {"c51": "cross_entropy", "quantile": "huber"}  # loss of each distributional head


class Head(NamedTuple):
    """Interpretation and loss of a Q-network's output.

    An output has shape [A], or [A, N] with atoms.
    """

    num_atoms: int | None
    """N, outputs for each action; None for a single value without an axis."""

    values: Callable[[Array], Array]
    """values(output [..., A] or [..., A, N]): expected returns, [..., A]."""

    learn: Callable[[Array, Array, Array, Array, Array, Array], tuple[Array, Array]]
    """learn(output_tm1, a_tm1, r_t, discount_t, output_t, q_t_selector [A]) of one transition:
    loss [], differentiable with respect to `output_tm1` only, and TD error []."""


def expected(loss: str = "squared") -> Head:
    """Make a head with one value for each action; the TD error is target - value.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015.
    """
    cost = LOSSES[loss]

    def learn(
        q_tm1: Array, a_tm1: Array, r_t: Array, discount_t: Array, q_t: Array, selector: Array
    ) -> tuple[Array, Array]:
        error = q_learning(q_tm1, a_tm1, r_t, discount_t, q_t, selector)
        return cost(error), error

    return Head(None, lambda output: output, learn)


def categorical(num_atoms: int, value_range: tuple[float, float]) -> Head:
    """Make a C51 head: logits of evenly spaced atoms; the TD error is a KL divergence.

    The divergence of the prediction from the target, in nats, sets priorities as in Rainbow (Hessel
    et al., AAAI 2018). Unlike a difference of means it is non-zero for a wrong distribution with
    the right mean. It is not in units of reward.

    Reference: Bellemare, Dabney and Munos, "A distributional perspective on reinforcement
      learning", ICML 2017.
    """
    atoms = np.linspace(*value_range, num_atoms, dtype=np.float32)

    def learn(
        logits_tm1: Array,
        a_tm1: Array,
        r_t: Array,
        discount_t: Array,
        logits_t: Array,
        selector: Array,
    ) -> tuple[Array, Array]:
        divergence = categorical_q_learning(
            jnp.asarray(atoms), logits_tm1, a_tm1, r_t, discount_t, logits_t, selector
        )
        return divergence, divergence

    return Head(num_atoms, lambda output: jax.nn.softmax(output) @ atoms, learn)


def quantile(num_atoms: int) -> Head:
    """Make a QR-DQN head: quantiles of the return; the TD error is that of their mean.

    Reference: Dabney et al., "Distributional reinforcement learning with quantile regression",
      AAAI 2018.
    """
    return Head(num_atoms, lambda output: jnp.mean(output, axis=-1), quantile_q_learning)


def make(
    distributional: str | None,
    num_atoms: int,
    value_range: tuple[float, float],
    loss: str | None,
) -> Head:
    """Make the head of a name; see `dqn` for the arguments."""
    if distributional is None:
        if loss is not None:
            one_of("loss", loss, LOSSES)
        return expected(loss or "squared")
    one_of("distributional", distributional, OWN_LOSS)
    if loss not in (None, OWN_LOSS[distributional]):
        raise ValueError(
            f"loss must be {OWN_LOSS[distributional]!r} where distributional is "
            f"{distributional!r}, got {loss!r}"
        )
    whole("num_atoms", num_atoms, 2)
    if distributional == "quantile":
        return quantile(num_atoms)
    low, high = value_range
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"value_range must be two finite, rising numbers, got {value_range}")
    return categorical(num_atoms, value_range)
