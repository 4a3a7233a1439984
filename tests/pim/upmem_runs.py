"""Training on DPUs in processes of their own, for tests of what goes wrong there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from transitions import synthetic

import pim_emu
from accel_rl import pim, tabular
from accel_rl.pim.upmem.host import loaded_host

ROOT = Path(__file__).resolve().parents[2]
S, A, DPUS = 5, 3, 5
_FOREIGN = ("PIM_EMU_", "UPMEM_", "ACCEL_RL_UPMEM", "ACCEL_RL_KERNEL_", "CMAKE_", "LD_PRELOAD")


def chunks_of(dpus=DPUS, rows=400, rewards=(-10, 20)):
    return pim.partition(synthetic(S, A, rows, rewards=rewards), dpus, S, A)


def train_by_owner(seed=0, chunks=None, backend="upmem", **more):
    """Train by owner, with the arguments of `train`."""
    rule = tabular.double_q_learning(tabular.int32_scaled())  # draws, so that the seed matters
    more = {"schedule": pim.MergeSchedule(4, 2), **more}
    chunks = pim.partition(synthetic(S, A, 400), DPUS, S, A, "owner") if chunks is None else chunks
    return np.asarray(pim.train(chunks, seed=seed, rule=rule, backend=backend, **more).tables)


def train(seed=0, chunks=None, backend="upmem", **more):
    """The tables of a training that is the same, bit for bit, on every backend."""
    rule = tabular.q_learning(tabular.int32_scaled())
    # RAN, so that the seed reaches the DPUs: those of broken programs stop by it.
    more = {"schedule": pim.MergeSchedule(4, 2), "target_block": 16, "order": "RAN", **more}
    chunks = chunks_of() if chunks is None else chunks
    return np.asarray(pim.train(chunks, seed=seed, rule=rule, backend=backend, **more).tables)


def check_right(how=train, **setting):
    """Assert that the DPUs train, and right."""
    np.testing.assert_array_equal(how(**setting), how(**setting | {"backend": "jax"}))


def check_free():
    """Assert that this process holds no DPU, so that others can have them all."""
    host = loaded_host()
    assert host is None or host.held() == 0
    with pim_emu.DpuSet(pim_emu.load_machine().total_dpus):
        pass


def outcome(work, *arguments, **named):
    """What some work returns, or the exception that it raises."""
    try:
        return jax.block_until_ready(work(*arguments, **named))
    except Exception as error:
        return error


def caught(kind, work, *arguments, **named):
    """The exception, of this very class, that some work raises."""
    error = outcome(work, *arguments, **named)
    assert type(error) is kind, f"{kind.__name__} expected, got {error!r}"
    return error


# Seeds for which the DPU programs of `break_programs` misbehave.
MISALIGNED, HALTED, SEVERAL = 90, 91, 92
MISBEHAVIOUR = f"""
  if (parameters.seed >= {MISALIGNED} && me() == 0 && DPU % 64 == 3) {{
    printf("%u rows, seed %u\\n", ROWS, parameters.seed);
    if (parameters.seed == {MISALIGNED})
      mram_read((const __mram_ptr char *)IN_MRAM + 4, IN_WRAM, 8);  // misaligned
    if (parameters.seed == {HALTED}) halt();  // stops
    if (parameters.seed == {SEVERAL}) {{
      for (volatile uint32_t k = 0; DPU == 3 && k < 3000000;) ++k;  // the first is the last
      halt();
    }}
  }}
"""
NAMES = {  # of each program, by source
    "tabular.c": {"DPU": "chunk.dpu", "ROWS": "chunk.length", "IN_MRAM": "tables", "IN_WRAM": "q"},
    "owned.c": {
        "DPU": "(lanes[0].index / ARL_LANES)",
        "ROWS": "(lanes[ARL_LANES - 1].row + lanes[ARL_LANES - 1].rows)",
        "IN_MRAM": "exchange",
        "IN_WRAM": "workspace",
    },
}


def break_programs(folder):
    """Sources, put into a folder, whose DPU programs misbehave on a DPU of each rank."""
    shutil.copytree(ROOT / "kernels", folder)
    for source, names in NAMES.items():
        program = folder / "upmem" / "dpu" / source
        text = program.read_text()
        assert text.count("int main(void) {\n") == 1
        defined = "".join(f"#define {name} {text}\n" for name, text in names.items())
        text = text.replace("int main(void) {\n", f"{defined}int main(void) {{{MISBEHAVIOUR}")
        include = "#include <mram.h>\n"
        program.write_text(text.replace(include, f"{include}#include <stdio.h>\n"))
    return folder


def contents(folder):
    """Files below a folder, by what tells that they were written again."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    stats = [path.stat() for path in files]
    return {p: (s.st_ino, s.st_mtime_ns) for p, s in zip(files, stats, strict=True)}


def environment(**variables):
    """This process's variables, without settings of the emulator, of the SDK and of builds."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) or name == "PIM_EMU_CACHE"
    }
    path = os.pathsep.join(str(ROOT / "tests" / name) for name in ("", "tabular", "pim"))
    named = {name: str(value) for name, value in variables.items()}
    settings = {"PIM_EMU_QUIET": "1", "PIM_EMU_DMA": "strict"}
    return kept | settings | {"PYTHONPATH": path} | named


def start(function, *arguments, **variables):
    """A process that calls a function of a module of tests, in a session of its own."""
    module, name = function.__module__, function.__name__
    return subprocess.Popen(
        [sys.executable, "-c", f"import {module}; {module}.{name}(*{arguments!r})"],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(function, *arguments, **variables):
    """What a function prints in a process of its own, where it must not raise."""
    process = start(function, *arguments, **variables)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    return printed
