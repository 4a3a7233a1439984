"""Queues in WRAM between a C host and running DPUs; the host checks what the DPUs make of it."""

from pathlib import Path

import pytest
from sdk_present import needs_sdk
from test_host_api import run_host

import pim_emu

pytestmark = needs_sdk

DPU_PROGRAM = """
#include <defs.h>
#include <mutex.h>
#include <mram.h>
#include <stdint.h>
#include <wramfifo.h>

INPUT_FIFO_INIT(in, 3, 16)
OUTPUT_FIFO_INIT(out, 3, 8)
MUTEX_INIT(turn);
__host uint64_t active = 1;
__host uint32_t number;
__mram_noinit uint8_t far[40];

static void add(uint8_t *input, uint8_t *output) {
    const uint64_t *numbers = (uint64_t *)input;
    *(uint64_t *)output = 1000 * number + numbers[0] * numbers[1];
}

int main(void) {
    process_inputs_each_tasklet(&in, &out, add, turn, &active);
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fifo")
    (folder / "queue.c").write_text(DPU_PROGRAM)
    pim_emu.build(folder / "queue.c", tasklets=3, output=folder / "queue")
    return folder


def test_elements_pass_through_running_dpus(folder: Path):
    """More elements than the queues hold; each DPU's results are complete and none is twice."""
    source = """
    #define DPUS 3
    #define NUMBERS 50
    static uint64_t input[DPUS][2], output[DPUS][8];
    static uint32_t found[DPUS][NUMBERS + 1], count;

    static void flush(struct dpu_set_t set, struct dpu_fifo_link_t *out) {
        struct dpu_set_t dpu;
        uint32_t d, most = 0;
        OK(dpu_fifo_push_xfer(set, out, DPU_XFER_NO_RESET));
        DPU_FOREACH(set, dpu, d) {
            const uint32_t size = get_fifo_size(out, dpu);
            for (uint32_t i = 0; i < size; ++i) {
                uint8_t *const at = get_fifo_elem(out, dpu, (uint8_t *)output[d], (uint8_t)i);
                const uint64_t value = *(uint64_t *)at;
                assert(value == output[d][get_fifo_elem_index(out, dpu, i)]);
                assert(value / 1000 == d + 1 && value % 1000 % 2 == 0);
                ++found[d][value % 1000 / 2];
                ++count;
            }
            if (size > most) most = size;
        }
        struct dpu_rank_t *rank = set.list.ranks[0];
        assert(get_fifo_max_size(rank, get_rank_fifo(out, rank)) == most && most <= 8);
    }
    int main(void) {
        struct dpu_set_t set, dpu;
        struct dpu_fifo_link_t in, out;
        uint32_t d, numbers[DPUS] = {1, 2, 3};
        uint64_t stop = 0;
        OK(dpu_alloc(DPUS, NULL, &set));
        OK(dpu_load(set, "queue", NULL));
        DPU_FOREACH(set, dpu, d) OK(dpu_prepare_xfer(dpu, &numbers[d]));
        OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "number", 0, 4, DPU_XFER_DEFAULT));
        OK(dpu_link_input_fifo(set, &in, "in"));
        OK(dpu_link_output_fifo(set, &out, "out"));
        DPU_FOREACH(set, dpu, d) OK(dpu_fifo_prepare_xfer(dpu, &out, output[d]));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        for (uint64_t k = 0; k <= NUMBERS; ++k) {
            DPU_FOREACH(set, dpu, d) {
                input[d][0] = k;
                input[d][1] = 2;
                if (k < NUMBERS || d == 1) OK(dpu_fifo_prepare_xfer(dpu, &in, input[d]));
            }
            OK(dpu_fifo_push_xfer(set, &in, DPU_XFER_DEFAULT));
            if (k % 5 == 4) flush(set, &out);
        }
        while (count < DPUS * NUMBERS + 1) flush(set, &out);
        OK(dpu_broadcast_to(set, "active", 0, &stop, 8, DPU_XFER_PARALLEL));
        OK(dpu_sync(set));
        flush(set, &out);
        for (d = 0; d < DPUS; ++d)
            for (uint32_t k = 0; k <= NUMBERS; ++k) assert(found[d][k] == (k < NUMBERS || d == 1));
        OK(dpu_fifo_link_free(&in));
        OK(dpu_fifo_link_free(&out));
        OK(dpu_free(set));
        SHOW("%u", count);
        return 0;
    }
    """
    assert run_host(folder, source, PIM_EMU_WORKERS="3") == ["151"]


def test_the_order_of_a_queue_is_kept_over_its_end(folder: Path):
    """Without a launch: what a DPU would find is read back as it lies in WRAM."""
    source = """
    int main(void) {
        struct dpu_set_t set, dpu;
        struct dpu_fifo_link_t in;
        uint64_t element[2] = {0}, pointers[2], data[8][2];
        OK(dpu_alloc(2, NULL, &set));
        OK(dpu_load(set, "queue", NULL));
        OK(dpu_link_input_fifo(set, &in, "in"));
        OK(dpu_fifo_prepare_xfer(set, &in, element));
        for (uint64_t k = 0; k < 21; ++k) {
            element[0] = k;
            OK(dpu_fifo_push_xfer(set, &in, DPU_XFER_NO_RESET));
            pointers[0] = k < 5 ? 0 : k - 4; /* as a DPU that takes some out */
            OK(dpu_broadcast_to(set, "in", 0, pointers, 8, DPU_XFER_DEFAULT));
        }
        DPU_FOREACH(set, dpu) {
            OK(dpu_copy_from(dpu, "in", 0, pointers, 16));
            OK(dpu_copy_from(dpu, "__in_data", 0, data, sizeof data));
            assert(pointers[0] == 16 && pointers[1] == 21);
            for (uint64_t k = 13; k < 21; ++k) assert(data[k % 8][0] == k);
        }
        return 0;
    }
    """
    assert run_host(folder, source) == []


# A call of the state that MISUSE makes, the code without DPU_ERR_, and what the message says.
ERRORS = [
    ('dpu_link_input_fifo(set, &other, "nosuch")', "UNKNOWN_SYMBOL", "nosuch"),
    ('dpu_link_input_fifo(set, &other, "out")', "INVALID_WRAM_ACCESS", "INPUT_FIFO_INIT"),
    ('dpu_link_output_fifo(set, &other, "in")', "INVALID_WRAM_ACCESS", "OUTPUT_FIFO_INIT"),
    ('dpu_link_output_fifo(set, &other, "far")', "INVALID_WRAM_ACCESS", '"far" is in MRAM'),
    ("dpu_link_output_fifo(set, &other, NULL)", "INTERNAL", "fifo_name is NULL"),
    ('dpu_link_input_fifo(set, NULL, "in")', "INTERNAL", "link or"),
    ('dpu_link_input_fifo(bare, &other, "in")', "NO_PROGRAM_LOADED", None),
    ("dpu_fifo_prepare_xfer(bare, &in, data)", "INVALID_DPU_SET", "not that of the link"),
    ("dpu_fifo_push_xfer(bare, &in, DPU_XFER_DEFAULT)", "INVALID_DPU_SET", "not that of the link"),
    ("dpu_fifo_push_xfer(set, &in, (dpu_xfer_flags_t)64)", "INVALID_MEMORY_TRANSFER", "0x40"),
    ("dpu_fifo_push_xfer(set, NULL, DPU_XFER_DEFAULT)", "INTERNAL", "NULL"),
    ("dpu_fifo_push_xfer(set, &in, DPU_XFER_DEFAULT)", "WRAM_FIFO_FULL", "2 DPUs is full"),
    ("dpu_fifo_push_xfer(running, &never, DPU_XFER_DEFAULT)", "WRAM_FIFO_FULL", "1 DPUs stays"),
    ("dpu_fifo_link_free(NULL)", "INTERNAL", "NULL"),
    ("dpu_fifo_link_free(&in)", None, None),
    ("dpu_fifo_push_xfer(set, &in, DPU_XFER_DEFAULT)", "INVALID_DPU_SET", "link"),
]
MISUSE = """
int main(void) {
    struct dpu_set_t set, bare, running;
    struct dpu_fifo_link_t in, never, other;
    uint64_t data[2] = {0}, stop = 0, taken = 8;
    OK(dpu_alloc(2, NULL, &set));
    OK(dpu_load(set, "queue", NULL));
    OK(dpu_link_input_fifo(set, &in, "in"));
    OK(dpu_fifo_prepare_xfer(set, &in, data));
    for (int i = 0; i < 8; ++i) OK(dpu_fifo_push_xfer(set, &in, DPU_XFER_NO_RESET));
    OK(dpu_alloc(1, NULL, &bare));
    OK(dpu_alloc(1, NULL, &running)); /* its output is never taken, so that its input fills */
    OK(dpu_load(running, "queue", NULL));
    OK(dpu_link_input_fifo(running, &never, "in"));
    dpu_fifo_set_time_for_push_retries(&never, running, 1000);
    OK(dpu_fifo_prepare_xfer(running, &never, data));
    OK(dpu_launch(running, DPU_ASYNCHRONOUS));
    for (int i = 0; i < 16; ++i) OK(dpu_fifo_push_xfer(running, &never, DPU_XFER_NO_RESET));
    dpu_fifo_set_push_max_retries(&never, running, 0);
@CALLS@
    OK(dpu_broadcast_to(running, "active", 0, &stop, 8, DPU_XFER_PARALLEL));
    OK(dpu_broadcast_to(running, "out", 0, &taken, 8, DPU_XFER_PARALLEL));
    OK(dpu_sync(running));
    OK(dpu_free(running));
    return 0;
}
"""


def test_misuse_is_refused_with_a_reason(folder: Path):
    calls = "".join(
        f'fputs("{number}: ", stderr); if (({call}) != DPU_{f"ERR_{code}" if code else "OK"}) '
        f'SHOW("{number} is wrong"); fputs("\\n", stderr);\n'
        for number, (call, code, _) in enumerate(ERRORS)
    )
    output = run_host(folder, MISUSE.replace("@CALLS@", calls))
    text = "\n".join(output)
    assert "wrong" not in text
    for number, (call, _, reason) in enumerate(ERRORS):
        said = text.partition(f"{number}: ")[2].partition(f"\n{number + 1}: ")[0]
        assert (reason or "") in said, call
        assert bool(reason) == ("pim_emu" in said), call
