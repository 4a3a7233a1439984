"""With queues, one rank hands over its results while another still computes."""

import shlex
import subprocess

import pytest
from dpu_programs import KERNELS
from sdk_present import needs

import pim_emu
from pim_emu.sdk import sdk_path

pytestmark = needs("gcc", "g++")

DPU = """
#include <attributes.h>
#include <perfcounter.h>
#include <stdint.h>

__host uint64_t rounds, counted, tables;

int main(void) {
    for (uint64_t k = 0; k < rounds; ++k) counted = perfcounter_get() ? k + 1 : 0;
    return 0;
}
"""

HOST = """
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "dpus.hpp"

using namespace accel_rl::upmem;

// Prints how many DPUs of the other rank have handed over their results when all of one have.
int main(int, char **arguments) {
  const Mode mode = arguments[2][0] == 'a' ? Mode::asynchronous : Mode::synchronous;
  const uint64_t rounds = 200000;
  std::vector<uint64_t> counted(128, 77);
  const volatile uint64_t *seen = counted.data();
  const auto done = [&](size_t first) {
    int count = 0;
    for (size_t d = first; d < first + 64; ++d) count += seen[d] != 77;
    return count;
  };
  Dpus dpus(128, "", mode);
  dpus.load(arguments[1], 8);
  dpus.broadcast("rounds", &rounds, 8);
  dpus.launch();
  dpus.gather("counted", counted.data(), 8, 8);
  while (done(0) < 64 && done(64) < 64) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::cout << std::min(done(0), done(64));
  dpus.sync();
  std::cout << ' ' << done(0) + done(64) << std::endl;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlap")
    (folder / "overlap.cpp").write_text(HOST)
    command = f"{sdk_path()}/bin/dpu-pkg-config --cflags --libs dpu"
    flags = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True).stdout
    host = KERNELS / "upmem" / "host"
    subprocess.run(
        [
            *("g++", "-std=c++20", "-O2", f"-I{host}", "-o", str(folder / "overlap")),
            *(str(folder / "overlap.cpp"), str(host / "dpus.cpp"), *shlex.split(flags), "-pthread"),
        ],
        check=True,
    )
    return folder / "overlap", pim_emu.build(DPU, output=folder / "work").path


@pytest.mark.parametrize(
    ("mode", "printed"), [("asynchronous", "0 128"), ("synchronous", "64 128")]
)
def test_one_rank_is_done_while_the_other_works(programs, mode, printed, monkeypatch):
    monkeypatch.setenv("PIM_EMU_WORKERS", "1")  # or the ranks' DPUs would run at the same time
    host, dpu = programs
    done = subprocess.run([host, dpu, mode], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == printed
