"""Independent agents on DPUs: each trains tables of its own from its own log, without merges."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.backends import Backend
from accel_rl.pim.partition import Chunks, encode_chunks
from accel_rl.pim.train import start_training
from accel_rl.tabular.orders import Order
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK, PassProgram
from accel_rl.tabular.rows import MAX_ACTIONS, check_indices
from accel_rl.tabular.rule import Hyperparameters, TabularRule
from accel_rl.tabular.rules import independent_learners
from accel_rl.types import Array, ArrayLike, TabularTransition
from pim_emu import Machine


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AgentsResult:
    """Result of `train_agents`."""

    tables: Array  # [agents, K, S, A] in the numerics' dtype
    values: Array  # [agents, S, A] float32, action values of the tables
    effective: Hyperparameters  # float32 rates as the numerics represent them


def agent_chunks(
    transitions: TabularTransition,
    num_states: int,
    num_actions: int,
    lengths: ArrayLike | None = None,
) -> Chunks:
    """Make the log of each agent the chunk of one DPU, for `train_agents`.

    Args:
      transitions: columns [agents, T], each agent's in the order of its log.
      num_states: S.
      num_actions: A, from 1 to 65,536.
      lengths: int [agents], transitions of each agent, from 0 to T; the rest is padding, which is
        not read. All T if None.

    Returns:
      The chunks, in the agents' order.
    """
    shapes = {np.shape(column) for column in jax.tree.leaves(transitions)}
    shape = next(iter(shapes))
    if len(shapes) != 1 or len(shape) != 2 or 0 in shape:
        raise ValueError(f"transitions must be columns [agents, T] of one shape, got {shapes}")
    whole("num_states", num_states, 1)
    whole("num_actions", num_actions, 1, MAX_ACTIONS)
    rows = np.full(shape[0], shape[1]) if lengths is None else lengths
    if not isinstance(rows, jax.core.Tracer):
        rows = _check_lengths(np.asarray(rows), *shape)
    if lengths is not None:
        transitions = _clear_padding(transitions, rows)
    check_indices(transitions, num_states, num_actions)
    columns = jax.tree.map(jnp.asarray, transitions)
    return Chunks(columns, jnp.asarray(rows, jnp.int32), num_states, num_actions)


def train_agents(
    chunks: Chunks,
    hyperparameters: Hyperparameters | None = None,
    seed: ArrayLike = 0,
    *,
    rule: TabularRule,
    passes: int,
    order: str | Order = "SEQ",
    target_block: int = DEFAULT_TARGET_BLOCK,
    backend: str | Backend = "auto",
    initial: Array | None = None,
    first_pass: ArrayLike = 0,
    machine: str | Machine | None = "upmem-2560",
    tasklets: int = 16,
) -> AgentsResult:
    """Train independent agents, each from the log and with the tables of its own DPU.

    Nothing is merged: initial tables are scattered, all passes are one launch, and the last tables
    are gathered. Agent d draws from the random streams of DPU d. If fewer DPUs are free than there
    are agents, the "upmem" backend trains the agents in rounds, one after the other; results do not
    depend on their number. With target block 1, order "SEQ" and a rule without random choices, a
    pass equals `tabular.independent_learners(rule, agents).update` scanned over the transitions.
    Pure: works under `jit` and `vmap`.

    Args:
      chunks: from `agent_chunks`, the log of one agent each.
      hyperparameters: leaves alpha, gamma and epsilon, the same for all agents; the defaults if
        None.
      seed: uint32 [], of the random orders and rules.
      rule: update rule of each agent, or `tabular.independent_learners` of it for as many agents as
        there are chunks. Static.
      passes: number of passes over each agent's log, static.
      order: sampling order or its name, static.
      target_block: rows whose targets use the table as it is at the block's start; 1 is strictly
        sequential. Static, at least 1.
      backend: backend or its name, static.
      initial: [agents, K, S, A] in the numerics' dtype, the initial tables; zeros if None.
      first_pass: uint32 [], the number of passes already done. Continuing with the last tables as
        `initial` is bit-identical to one longer call.
      machine: machine of the DPUs, as in `train`.
      tasklets: tasklets per DPU, as in `train`.

    Returns:
      Tables and action values of each agent, and effective rates.

    Raises:
      ValueError, jax.errors.JaxRuntimeError, pim.upmem.UpmemError: as `train`.

    Reference: Gogineni et al., "SwiftRL", ISPASS 2024, multi-agent Q-learning; the exact semantics
      of a pass are in docs/tabular-semantics.md.
    """
    if chunks.lanes:
        raise ValueError("chunks must be logs of agents (pim.agent_chunks), got a log by owner")
    whole("passes", passes, 1)
    sizes = chunks.num_states, chunks.num_actions
    is_single = jax.eval_shape(lambda: rule.init(*sizes)).shape == (rule.tables, *sizes)
    learners = independent_learners(rule, chunks.num_dpus) if is_single else rule
    settings = rule, order, target_block, backend, machine, tasklets
    operands = chunks, hyperparameters, seed, initial, first_pass
    return start_training(_train_agents, (learners, passes), learners, *settings, *operands)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _train_agents(
    program: PassProgram,
    backend: Backend,
    learners: TabularRule,
    passes: int,
    chunks: Chunks,
    rates: Hyperparameters,
    seed: Array,
    initial: Array,
    first_pass: Array,
) -> AgentsResult:
    agents, nx = chunks.num_dpus, program.rule.numerics
    c = program.rule.coefficients(rates)
    if program.is_static:  # vmapped seeds must not split identical replicas
        seed = jnp.uint32(0)
    memory = backend.load(program, encode_chunks(program, chunks), chunks.lengths, c)
    starts = initial.reshape(agents, -1)
    tables = backend.launch(program, memory, starts, c, seed, first_pass, passes)
    tables = tables[:agents].reshape(initial.shape)  # backends may pad the DPU axis
    effective = Hyperparameters(*(nx.decode_rate(x) for x in (c.alpha, c.gamma, c.epsilon)))
    return AgentsResult(tables, learners.values(tables), effective)


def _check_lengths(lengths: np.ndarray, agents: int, capacity: int) -> np.ndarray:
    """Check the number, type and range of the agents' lengths."""
    if lengths.shape != (agents,):
        raise ValueError(f"lengths must have shape ({agents},), got {lengths.shape}")
    for agent, length in enumerate(lengths):
        whole(f"lengths[{agent}]", length, 0, capacity)
    return lengths


def _clear_padding(
    transitions: TabularTransition, lengths: Array | np.ndarray
) -> TabularTransition:
    """Set transitions beyond the lengths to zero, so that any value there is in range."""
    leaves = [lengths, *jax.tree.leaves(transitions)]
    # NumPy, if it can, because jnp would trace even concrete arrays inside a jit.
    xp = jnp if any(isinstance(x, jax.core.Tracer) for x in leaves) else np
    valid = np.arange(leaves[1].shape[1]) < lengths[:, None]
    return jax.tree.map(lambda x: xp.where(valid, x, xp.zeros_like(x)), transitions)
