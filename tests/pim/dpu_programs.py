"""DPU programs built and launched without the library's host: what pim_emu alone sees of them."""

import pathlib

import numpy as np
import oracle

import pim_emu
from accel_rl.tabular import RULES
from accel_rl.tabular.orders import NAMES as ORDERS
from accel_rl.tabular.passes.native import NUMERICS

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels"
SOURCE = KERNELS / "upmem" / "dpu" / "tabular.c"


def macros(rule, numerics, order, block, states, actions, stride=4, rows=128):
    return {
        "ARL_RULE": list(RULES).index(rule),
        "ARL_NUMERICS": NUMERICS[numerics],
        "ARL_ORDER": ORDERS.index(order),
        "ARL_STRIDE": stride,
        "ARL_BLOCK": block,
        "ARL_STATES": states,
        "ARL_ACTIONS": actions,
        "ARL_RANDOM_BLOCKS": -(-rows // 128),
    }


def build(tasklets, source=SOURCE, **setting):
    traced = setting.pop("traced", False)
    return pim_emu.build(
        source, tasklets=tasklets, define=macros(**setting), include=(KERNELS / "common",),
        stack_bytes=768, optimise="-O3", traced=traced,
    )  # fmt: skip


def launch(
    program, transitions, dpus, *, rule, numerics, order, block, states, actions, stride=4,
    lists=False,
):  # fmt: skip
    """Tables after two passes on every DPU, and NumPy's; `lists`: DPUs return visited entries."""
    nx = oracle.NUMERICS[numerics]()
    chunks = oracle.chunk_rows(oracle.encode(transitions, nx), dpus)
    start = oracle.zeros(rule, nx, states, actions)
    rates = oracle.coefficients(nx, 0.3, 0.9, 0.25)
    truth, _ = oracle.launch(rule, nx, start, chunks, order, stride, block, rates, 9, range(1, 3))

    def bits(value):
        return int(np.array(value, nx.dtype).view(np.uint32))

    codes = sorted({row[2] for chunk in chunks for row in chunk})
    records = np.zeros((dpus, len(chunks[0]), 2), np.uint32)
    for d, chunk in enumerate(chunks):
        for t, (s, a, r, s2, discount, a2) in enumerate(chunk):
            low = s * actions + a | s2 * actions << 16
            records[d, t] = low, codes.index(r) | a2 << 16 | (not discount) << 24
    codebook = np.zeros(256, nx.dtype)
    codebook[: len(codes)] = codes
    tables = np.zeros((start.size + 1) // 2 * 2, nx.dtype)
    tables[: start.size] = start.reshape(-1)
    visited = [np.unique([s * actions + a for s, a, *_ in chunk]) for chunk in chunks]
    listed = -(-max(map(len, visited)) // 4) * 4 if lists else 0
    padded = np.zeros((dpus, -(-states * actions // 4) * 4), np.uint16)
    for d, entries in enumerate(visited):
        padded[d, : len(entries)] = entries
    parameters = [9, 1, 2, *map(bits, rates[:3]), rates[3], 0, 0, listed]
    result = pim_emu.run(
        program,
        dpus=dpus,
        broadcast={
            "parameters": np.array(parameters, np.uint32), "codebook": codebook, "tables": tables,
        },
        scatter={
            "chunk": np.array([(len(c), d) for d, c in enumerate(chunks)], np.uint32),
            "heap": records.reshape(dpus, -1),
            "visited": padded,
        },
        gather={"tables": (nx.dtype, len(tables))},
    )  # fmt: skip
    found = result["tables"]
    if not lists:
        return found[:, : start.size].reshape(truth.shape), truth
    spread = np.broadcast_to(start.reshape(len(start), -1), (dpus, len(start), states * actions))
    spread = spread.copy()
    for d, entries in enumerate(visited):
        values = found[d, : len(start) * listed].reshape(-1, listed)
        spread[d][:, entries] = values[:, : len(entries)]
    return spread.reshape(truth.shape), truth
