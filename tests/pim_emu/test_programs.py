"""Programs as third parties write them: built by their own Makefiles, judged by their own hosts.

Each host compares what the DPUs return with a plain computation of its own. That the hosts can
fail, and that races can be found, is shown on copies with planted errors.
"""

import re

import pytest
import quick
from sdk_present import needs
from third_party import PROGRAMS, Done, Edit, Workshop, shared_root

pytestmark = needs("gcc", "g++", "make")

NAMES = sorted(path.parent.name for path in PROGRAMS.glob("*/Makefile"))
TASKLETS = (1, 11, 16, 24)
DPUS = (1, 64, 200)
# Each program is built for `test_result`; these tests build them again.
few = pytest.mark.parametrize("name", quick.only(["pipeline", "vector_add"], NAMES))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory, sdk_environment: dict[str, str]) -> Workshop:
    return Workshop(shared_root(tmp_path_factory.getbasetemp()), sdk_environment)


def assert_right(done: Done) -> None:
    assert (done.status, done.complaints) == (0, ""), done
    assert "OK" in done.output
    assert "ERROR" not in done.output
    cycles = [int(number) for number in re.findall(r"DPU cycles .*: (\d+)", done.output)]
    assert cycles
    assert min(cycles) > 0


def without_cycles(done: Done) -> list[str]:
    return [line for line in done.output.splitlines() if "cycles" not in line]


def test_all_programs_are_there() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("dpus", DPUS)
@pytest.mark.parametrize("tasklets", quick.only([11], TASKLETS))
@pytest.mark.parametrize("name", NAMES)
def test_result(workshop: Workshop, name: str, tasklets: int, dpus: int) -> None:
    assert_right(workshop.run(workshop.build(name, tasklets), "-d", str(dpus)))


@pytest.mark.parametrize("name", NAMES)
def test_result_on_awkward_sizes(workshop: Workshop, name: str) -> None:
    """Less data than tasklets or DPUs, so that many have nothing to do."""
    for size in ("1", "70", "129"):
        assert_right(workshop.run(workshop.build(name, 11), "-d", "65", "-i", size))


@few
def test_more_tasklets_are_faster(workshop: Workshop, name: str) -> None:
    """One tasklet leaves the pipeline idle for 10 cycles of 11; the others use most of them, though
    some programs' tasklets wait for each other after every block."""

    def cycles(tasklets: int) -> int:
        done = workshop.run(workshop.build(name, tasklets), "-d", "1")
        return int(re.findall(r"DPU cycles .*: (\d+)", done.output)[-1])

    assert cycles(11) * 4 < cycles(1)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_tasklets_does_not_matter(workshop: Workshop, name: str) -> None:
    folder = workshop.build(name, 11)
    usual = workshop.run(folder, "-d", "3")
    for seed in range(4):
        shuffled = workshop.run(
            folder, "-d", "3", PIM_EMU_SCHEDULE="random", PIM_EMU_SEED=str(seed)
        )
        assert_right(shuffled)
        assert without_cycles(shuffled) == without_cycles(usual)


@pytest.mark.parametrize("name", NAMES)
def test_checks_change_nothing(workshop: Workshop, name: str) -> None:
    """Results and cycles are the same without them."""
    folder = workshop.build(name, 11)
    for size in ((), ("-i", "129")):
        checked = workshop.run(folder, "-d", "3", *size)
        assert_right(checked)
        assert workshop.run(folder, "-d", "3", *size, PIM_EMU_CHECKS="0") == checked


@few
@pytest.mark.parametrize("schedule", ["time", "random"])
def test_runs_are_repeatable(workshop: Workshop, name: str, schedule: str) -> None:
    """To the cycle, whichever of the host's threads run the DPUs."""
    folder = workshop.build(name, 16)
    settings = {"PIM_EMU_SEED": "5"}
    if schedule == "random":
        settings["PIM_EMU_SCHEDULE"] = "random"
    first = workshop.run(folder, PIM_EMU_WORKERS="1", **settings)
    second = workshop.run(folder, PIM_EMU_WORKERS="3", **settings)
    assert_right(first)
    assert second == first


@few
def test_no_race(workshop: Workshop, name: str) -> None:
    folder = workshop.build(name, 11, traced=True)
    assert_right(workshop.run(folder, "-d", "2"))
    assert_right(workshop.run(folder, "-d", "70", PIM_EMU_SCHEDULE="random", PIM_EMU_SEED="1"))


@pytest.mark.slow
@pytest.mark.parametrize("tasklets", TASKLETS)
@pytest.mark.parametrize("name", NAMES)
def test_no_race_in_many_orders(workshop: Workshop, name: str, tasklets: int) -> None:
    folder = workshop.build(name, tasklets, traced=True)
    for seed in range(10):
        assert_right(
            workshop.run(folder, "-d", "2", PIM_EMU_SCHEDULE="random", PIM_EMU_SEED=str(seed))
        )


WRONG_KERNELS = {
    "vector_add": Edit("dpu/add.c", "b[i] += a[i]", "b[i] -= a[i]"),
    "reduction": Edit("dpu/main.c", "output += input[j]", "output ^= input[j]"),
    "histogram": Edit("dpu/private.c", "histogram[bin] += mine", "histogram[bin] = mine"),
    "scan": Edit("dpu/chain.c", "= before + value", "= value"),
    "selection": Edit(
        "dpu/task.c", "= p_count + l_count;\n        handshake", "= l_count;\n        handshake"
    ),
    "tree_search": Edit("dpu/search.c", "key < node.key", "key <= node.key"),
    "stencil": Edit("dpu/sweep.c", "first + n < cells ? PAIR : 0", "0"),
    "scatter_gather": Edit("dpu/rows.c", "* scale + done + i", "* scale + i"),
    "pipeline": Edit("dpu/task.c", "(sum.b + sum.a)", "(sum.b + 1)"),
}
WRONG_HOSTS = {
    "vector_add": Edit("host/app.c", "A[i] + B[i]", "A[i] + B[i] + (i + 1 == elements)"),
    "histogram": Edit("host/image.cpp", "bins(BINS, 0)", "bins(BINS, 1)"),
}


@few
def test_planted_error_is_noticed(workshop: Workshop, name: str) -> None:
    check_wrong(workshop, name, WRONG_KERNELS[name], "-wrong-kernel")


@pytest.mark.parametrize("name", quick.only(["vector_add"], WRONG_HOSTS, others="long"))
def test_wrong_expectation_is_noticed(workshop: Workshop, name: str) -> None:
    check_wrong(workshop, name, WRONG_HOSTS[name], "-wrong-host")


def check_wrong(workshop: Workshop, name: str, edit: Edit, variant: str) -> None:
    """The host reports a wrong result: not a fault, nor an error of the interface."""
    done = workshop.run(workshop.build(name, 11, variant=variant, edits=(edit,)), "-d", "64")
    assert done.status != 0
    assert "ERROR" in done.output
    assert done.complaints == ""


def without(file: str, *texts: str) -> tuple[Edit, ...]:
    return tuple(Edit(file, text, "") for text in texts)


# The file in which the race is seen, and what is taken away to plant it.
RACES = {
    "reduction": (
        "tree.c",
        without("dpu/tree.c", "handshake_wait_for(tasklet_id + offset);", "handshake_notify();"),
    ),
    "histogram": (
        "shared.c",
        without(
            "dpu/shared.c",
            "mutex_pool_lock(&bins_pool, bin);",
            "mutex_pool_unlock(&bins_pool, bin);",
        ),
    ),
    "scan": (
        "task.c",
        (
            Edit(
                "dpu/task.c",
                "barrier_wait(&my_barrier);\n        if (tasklet_id",
                "if (tasklet_id",
            ),
        ),
    ),
    "stencil": ("sweep.c", without("dpu/task.c", "        barrier_wait(&sweep_barrier);\n")),
    "scatter_gather": (
        "task.c",
        without("dpu/task.c", "mutex_lock(next_row_mutex);", "mutex_unlock(next_row_mutex);"),
    ),
    "pipeline": (
        "ring.c",
        without("dpu/ring.c", "mutex_lock(head_mutex);", "mutex_unlock(head_mutex);"),
    ),
}


@pytest.mark.parametrize("name", quick.only(["pipeline", "scan"], RACES, others="long"))
def test_planted_race_is_found(workshop: Workshop, name: str) -> None:
    """In the usual order of tasklets: neither luck nor a seed is needed."""
    file, edits = RACES[name]
    folder = workshop.build(name, 11, traced=True, variant="-race", edits=edits)
    done = workshop.run(folder, "-d", "1")
    assert done.status != 0
    assert re.search(rf"pim_emu: race: DPU 0, tasklet \d+, {file}:\d+ ", done.complaints), done
