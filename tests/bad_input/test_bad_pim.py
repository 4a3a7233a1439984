"""Bad input to `pim` and `pim_emu`'s machine and cost model; its programs: test_python_input."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from refusals import INF, NAN, check_refused, rows_of

import pim_emu
from accel_rl import pim, tabular
from accel_rl.pim import cost
from accel_rl.types import TabularTransition
from pim_emu.cost import transfers

COLUMN = np.zeros(8, np.int32)
NUMBERS = np.zeros(8, np.float32)
ROWS = TabularTransition(COLUMN, COLUMN, NUMBERS, COLUMN, NUMBERS, COLUMN)
RAGGED = dataclasses.replace(ROWS, action=COLUMN[:3])
FAR = dataclasses.replace(ROWS, state=np.arange(8, dtype=np.int32) // 3 * 2)
RATES = tabular.Hyperparameters
machine = functools.cache(pim.load_machine)
chunks = functools.cache(lambda: pim.partition(ROWS, 2, 4, 2))
WORK = cost.DpuWorkload((8,) * 4, 16, 4)


def partition(dpus=2, states=4, actions=2, rows=ROWS):
    return pim.partition(rows, dpus, states, actions)


def train(*arguments, passes=2, **options):
    options = {"rule": tabular.q_learning(), "schedule": pim.MergeSchedule(passes), **options}
    return pim.train(*(arguments or (chunks(),)), **options)


def agents(rows=ROWS, lengths=None, states=4, actions=2):
    both = jax.tree.map(lambda column: np.stack([column, column]), rows)
    return pim.agent_chunks(both, states, actions, lengths)


def train_agents(*arguments, passes=2, **options):
    options = {"rule": tabular.q_learning(), **options}
    return pim.train_agents(*(arguments or (agents(),)), passes=passes, **options)


def work(**fields):
    return dataclasses.replace(WORK, **fields)


def mesh():
    return pim_emu.dpu_mesh()


NO_MACHINE = "machine must be a Machine (pim_emu.load_machine makes one), got 'm'"
NO_MESH = "mesh must be a Mesh"
SIZES = "size must be a whole number of at least 0, got"
TABLE = {
    "pim.partition": [
        (lambda: partition(0), ValueError, "num_dpus must be from 1 to 8, got 0"),
        (lambda: partition(1.5), TypeError, "num_dpus must be an int, got 1.5"),
        (lambda: partition(actions=0), ValueError, "num_actions must be from 1 to"),
        (lambda: partition(rows=RAGGED), ValueError, "transitions must be columns [N] of one leng"),
    ],
    "pim.chunk_lengths": [
        (lambda: pim.chunk_lengths(4, 8), ValueError, "dpus must be from 1 to 4, got 8"),
    ],
    "pim.merge_tables": [
        (
            lambda: pim.merge_tables("x", None, None, None, None, 1),
            *(ValueError, "merge must be one of visits, mean, visited, damped, got 'x'"),
        ),
    ],
    "pim.jax_backend": [
        (lambda: pim.jax_backend(path="x"), ValueError, "path must be one of auto, reference, fla"),
    ],
    "pim.upmem_backend": [
        (lambda: pim.upmem_backend(0), ValueError, "tasklets must be from 1 to 24, got 0"),
        (lambda: pim.upmem_backend(machine="x"), ValueError, "machine must be one of upmem-2560"),
        (lambda: pim.upmem_backend(sdk="x"), ValueError, "sdk must be one of auto, vendor, emula"),
    ],
    "pim.select_backend": [
        (lambda: pim.select_backend("x"), ValueError, "backend must be one of auto, jax, cpu, upm"),
        (lambda: pim.select_backend(None), ValueError, "got None"),
    ],
    "pim.upmem.find_toolkit": [
        (lambda: pim.upmem.find_toolkit("x"), ValueError, "sdk must be one of auto, vendor, emul"),
    ],
    "pim.upmem.which_toolkit": [
        (lambda: pim.upmem.which_toolkit(3), ValueError, "sdk must be one of auto, vendor, emulat"),
    ],
    "pim.train": [
        (lambda: train(passes=0), ValueError, "passes must be at least 1, got 0"),
        (lambda: train(schedule=pim.MergeSchedule(2, 0)), ValueError, "period must be at least 1"),
        (lambda: train(chunks(), RATES(alpha=NAN)), ValueError, "alpha must be in [0, 1] for fp32"),
        (lambda: train(chunks(), RATES(gamma=1.5)), ValueError, "gamma must be in [0, 1] for fp32"),
        (lambda: train(chunks(), RATES(alpha="x")), TypeError, "alpha must be a number, got 'x'"),
        (lambda: train(chunks(), RATES(epsilon=[0, 1])), ValueError, "epsilon must be a scalar"),
        (lambda: train(chunks(), None, -1), ValueError, "seed must be from 0 to 4294967295, got -"),
        (lambda: train(chunks(), None, 1.5), TypeError, "seed must be an int, got"),
        (lambda: train(first_pass=-1), ValueError, "first_pass must be from 0 to 4294967295, got"),
        (lambda: train(order="x"), ValueError, "order must be one of SEQ, STR, RAN, RAN_REPLACE"),
        (lambda: train(tasklets=25), ValueError, "25 tasklets asked for, a DPU of upmem-2560 has"),
        (lambda: train(machine="x"), ValueError, "unknown machine 'x'; known: upmem-2560"),
        (lambda: train(backend="x"), ValueError, "backend must be one of auto, jax, cpu, upmem"),
    ],
    "pim.agent_chunks": [
        (lambda: agents(RAGGED), ValueError, "transitions must be columns [agents, T] of one sh"),
        (lambda: pim.agent_chunks(ROWS, 4, 2), ValueError, "must be columns [agents, T] of one"),
        (lambda: agents(FAR), ValueError, "row 0, 6: state is 4, must be in [0, 4)"),
        (lambda: agents(lengths=[8]), ValueError, "lengths must have shape (2,), got (1,)"),
        (lambda: agents(lengths=[8, 9]), ValueError, "lengths[1] must be from 0 to 8, got 9"),
        (lambda: agents(lengths=[8.0, 7.0]), TypeError, "lengths[0] must be an int, got"),
        (lambda: agents(states=0), ValueError, "num_states must be at least 1, got 0"),
    ],
    "pim.train_agents": [
        (
            lambda: train_agents(pim.partition(ROWS, 2, 4, 2, "owner")),
            *(ValueError, "chunks must be logs of agents (pim.agent_chunks), got a log by owner"),
        ),
        (lambda: train_agents(passes=0), ValueError, "passes must be at least 1, got 0"),
        (lambda: train_agents(passes=1.5), TypeError, "passes must be an int, got 1.5"),
        (lambda: train_agents(target_block=0), ValueError, "target_block must be at least 1"),
        (lambda: train_agents(agents(), RATES(alpha=[0, 1])), ValueError, "alpha must be a scalar"),
        (lambda: train_agents(agents(), None, -1), ValueError, "seed must be from 0 to 4294967295"),
        (lambda: train_agents(tasklets=25), ValueError, "25 tasklets asked for, a DPU of upmem-25"),
        (lambda: train_agents(backend="x"), ValueError, "backend must be one of auto, jax, cpu, u"),
        (
            lambda: train_agents(initial=tabular.q_learning().init(4, 2)),
            *(ValueError, "initial must have shape (2, 1, 4, 2), got (1, 4, 2)"),
        ),
        (
            lambda: train_agents(rule=tabular.independent_learners(tabular.q_learning(), 3)),
            *(ValueError, "initial must have shape (2, 1, 4, 2), got (3, 1, 4, 2)"),
        ),
    ],
    "pim.load_machine": [
        (lambda: pim.load_machine("x"), ValueError, "unknown machine 'x'; known: upmem-2560"),
        (lambda: pim.load_machine(3), TypeError, "name must be a str or Path"),
        (lambda: pim.load_machine("no/such.toml"), FileNotFoundError, "no/such.toml"),
    ],
    "pim.cost.DpuWorkload": [
        (lambda: work(rows_per_dpu=()), ValueError, "sum of rows_per_dpu must be at leas"),
        (lambda: work(stride=0), ValueError, "stride must be at least 1, got 0"),
        (lambda: work(rule="x"), ValueError, "rule must be one of q_learning, sarsa"),
        (lambda: work(imbalance=NAN), ValueError, "imbalance must be at least 1, got nan"),
    ],
    "pim.cost.check_fits": [
        (lambda: cost.check_fits(machine(), work(tasklets=25)), ValueError, "25 tasklets asked"),
    ],
    "pim.cost.roofline": [
        (lambda: cost.roofline(machine(), "x", "fp32", 4), ValueError, "rule must be one of"),
        (lambda: cost.roofline(machine(), "sarsa", "fp32", 0), ValueError, "num_actions must"),
    ],
    "pim.cost.split_rows": [
        (lambda: cost.split_rows(10, 20), ValueError, "dpus must be from 1 to 10, got 20"),
    ],
    "pim_emu.dpu_mesh": [
        (lambda: pim_emu.dpu_mesh([]), ValueError, "devices must name at least one device, got n"),
        (lambda: pim_emu.dpu_mesh("cpu"), TypeError, "each of devices must be a Device"),
        (lambda: pim_emu.dpu_mesh(3), TypeError, "devices must be a Sequence or ndarray"),
    ],
    "pim_emu.dpu_map": [
        (lambda: pim_emu.dpu_map(3), TypeError, "f must be a function, got 3"),
        (lambda: pim_emu.dpu_map(max, mesh="x"), TypeError, NO_MESH),
        (lambda: pim_emu.dpu_map(max)(NUMBERS[0]), ValueError, "must have a leading DPU axis, got"),
        (lambda: pim_emu.dpu_map(max, 1)(NUMBERS), ValueError, "in_axes entries must be 0 or None"),
    ],
    "pim_emu.device_map": [
        (lambda: pim_emu.device_map(3, 0, mesh()), TypeError, "f must be a function, got 3"),
        (lambda: pim_emu.device_map(max, 0, None), TypeError, NO_MESH),
    ],
    "pim_emu.pad_axis": [
        (lambda: pim_emu.pad_axis(NUMBERS, "m"), TypeError, NO_MESH),
        (lambda: pim_emu.pad_axis(NUMBERS, mesh(), 1), ValueError, "axis must be one of the leaf'"),
    ],
    "pim.cost.arithmetic_operations": [
        (lambda: cost.arithmetic_operations("x", 4), ValueError, "rule must be one of q_learning"),
    ],
    "pim.cost.update_instructions": [
        (lambda: cost.update_instructions("sarsa", "x", 4), ValueError, "numerics must be one of"),
        (lambda: cost.update_instructions("sarsa", "fp32", 0), ValueError, "num_actions must be"),
    ],
    "pim_emu.cost.broadcast_seconds": [
        (lambda: transfers.broadcast_seconds("m", 4, 8), TypeError, NO_MACHINE),
        (lambda: transfers.broadcast_seconds(machine(), 4, -8), ValueError, f"{SIZES} -8"),
        (lambda: transfers.broadcast_seconds(machine(), 9999, 8), ValueError, "from 0 to 2560"),
    ],
    "pim_emu.cost.pull_seconds": [
        (lambda: transfers.pull_seconds(machine(), 1.5, 8), TypeError, "dpus must be a whole num"),
    ],
    "pim_emu.cost.push_seconds": [
        (lambda: transfers.push_seconds(machine(), 4, NAN), TypeError, f"{SIZES} nan"),
    ],
    "pim.cost.ownership_imbalance": [
        (
            lambda: cost.ownership_imbalance(machine(), NUMBERS, 4, 16),
            *(ValueError, "pairs must be int [n], n at least 1, got float32 (8,)"),
        ),
        (
            lambda: cost.ownership_imbalance(machine(), COLUMN[:0], 4, 16),
            *(ValueError, "pairs must be int [n], n at least 1, got int32 (0,)"),
        ),
    ],
    "pim.cost.pass_cycles": [
        (lambda: cost.pass_cycles(machine(), WORK, -1), ValueError, "rows must be at least 0"),
    ],
    "pim.cost.peak_updates": [
        (lambda: cost.peak_updates(machine(), INF, 4), ValueError, "must be finite and above 0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)
