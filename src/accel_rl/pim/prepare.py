"""Start of a training: arguments that `train` and `train_agents` share are checked, and run."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from accel_rl.arguments import whole
from accel_rl.pim.backends import Backend, select_backend
from accel_rl.pim.partition import Chunks
from accel_rl.pim.train_arguments import check_counter, check_initial, check_memory, check_program
from accel_rl.pim.upmem.errors import translated
from accel_rl.tabular.orders import Order, make_order
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Hyperparameters, TabularRule
from accel_rl.types import Array, ArrayLike
from pim_emu import Machine, load_machine


class Prepared(NamedTuple):
    """Training whose arguments were checked."""

    program: PassProgram
    backend: Backend
    operands: tuple[Chunks, Hyperparameters, Array, Array, Array]
    """Chunks, rates, seed, initial tables and first pass."""

    def run(self, compiled: Callable[..., Any], *static: object) -> Any:
        """Run a function of (program, backend, *static, *operands)."""
        arguments = self.program, self.backend, *static, *self.operands
        if self.backend.translate is None:
            return compiled(*arguments)
        with translated(self.backend.translate):
            # A launch raises its errors when the result is awaited. Under an outer transformation
            # the result is traced and there is nothing to await.
            return jax.block_until_ready(compiled(*arguments))


def prepare(
    rule: TabularRule,
    chunks: Chunks,
    hyperparameters: Hyperparameters | None,
    seed: ArrayLike,
    initial: Array | None,
    first_pass: ArrayLike,
    *,
    agents: TabularRule | None = None,
    order: str | Order,
    target_block: int,
    backend: str | Backend,
    machine: str | Machine | None,
    tasklets: int,
) -> Prepared:
    """Check arguments of a training, fill in their defaults and choose a backend.

    Arguments are those of `train`; `agents` is the rule over all agents, where each chunk is one's.
    """
    rates = Hyperparameters() if hyperparameters is None else hyperparameters
    order = make_order(order) if isinstance(order, str) else order
    sizes = chunks.num_states, chunks.num_actions
    program = PassProgram(rule, order, *sizes, target_block, chunks.lanes, chunks.runs)
    check_program(program, rates, chunks)
    seed, first_pass = check_counter("seed", seed), check_counter("first_pass", first_pass)
    whole("tasklets", tasklets, 1)
    machine = load_machine(machine) if isinstance(machine, str) else machine
    if machine is not None:
        # Agents train in rounds where DPUs are few.
        dpus = chunks.num_dpus if agents is None else min(chunks.num_dpus, machine.total_dpus)
        check_memory(program, chunks, dpus, machine, tasklets)
    if initial is None:
        initial = (agents or rule).init(*sizes)
    leading = () if agents is None else (chunks.num_dpus,)
    check_initial(rule, (*leading, rule.tables, *sizes), initial)
    name = None if machine is None else machine.name
    chosen = select_backend(backend, program, tasklets=tasklets, machine=name)
    if chosen.specialise is not None:
        chosen = chosen.specialise(program, rates)
    return Prepared(program, chosen, (chunks, rates, seed, initial, first_pass))
