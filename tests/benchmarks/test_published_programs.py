"""The runner of published programs, on a suite of our own: it tells each way to fail."""

import json
import sys
from pathlib import Path

import pytest
from sdk_present import needs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import published_programs

pytestmark = needs("gcc", "make")

DPU = """
#include <mram.h>
#include <stdint.h>
__host uint32_t number;
int main(void) { number = 3 * number; return 0; }
"""
HOST = """
#include <dpu.h>
#include <stdio.h>
int main(int argc, char **argv) {
    struct dpu_set_t set, dpu;
    uint32_t number = 14, expected = 42 + WRONG;
    if (argc != 2 || argv[1][0] != 'x') return 2;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, "bin/dpu_code", NULL));
    DPU_ASSERT(dpu_copy_to(set, "number", 0, &number, sizeof number));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH (set, dpu) DPU_ASSERT(dpu_copy_from(dpu, "number", 0, &number, sizeof number));
    printf(number == expected ? "[\\x1b[32mOK\\x1b[0m] equal\\n" : "[ERROR] %u\\n", number);
    return 0;
}
"""
MAKEFILE = """
all: bin/host bin/dpu_code
bin/host: host.c
\tmkdir -p bin
\tgcc -DWRONG=$(WRONG) -o $@ $< `dpu-pkg-config --cflags --libs dpu`
bin/dpu_code: dpu.c
\tdpu-upmem-dpurte-clang -o $@ $<
"""
SUITES = """
[ours]
title = "Ours"
source = "here"
build = "make WRONG=0"
passed = '^\\[OK\\]'
failed = "^no$"

[ours.programs]
right = { folder = "programs/plain", run = "bin/host x" }
wrong = { folder = "programs/plain", build = "make -B WRONG=1", run = "bin/host x" }
refused = { folder = "programs/plain", run = "bin/host" }
both = { folder = "programs/plain", build = "make -B WRONG=0", run = "bin/host x; echo no" }
broken = { run = "bin/host x" }
absent = { run = "bin/host" }

[theirs]
title = "Theirs"
source = "elsewhere"
build = "make"
passed = "never"

[theirs.programs]
right = { run = "bin/host" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plain, broken = tmp_path / "checkout" / "programs" / "plain", tmp_path / "checkout" / "broken"
    for path in (plain, broken):
        path.mkdir(parents=True)
        (path / "Makefile").write_text(MAKEFILE)
        (path / "host.c").write_text(HOST)
        (path / "dpu.c").write_text(DPU)
    (broken / "dpu.c").write_text("int main(void) { return undeclared; }\n")
    (tmp_path / "suites.toml").write_text(SUITES)
    return tmp_path


def test_each_way_to_fail_is_told(folder: Path, capsys: pytest.CaptureFixture[str]):
    before = sorted(folder.rglob("*"))
    words = ["--suites", str(folder / "suites.toml"), "--ours", str(folder / "checkout")]
    words += ["--json", str(folder / "records.json")]
    assert published_programs.main(words) == 1
    records = json.loads((folder / "records.json").read_text())["records"]
    stages = {
        name: [
            record["value"]
            for metric in published_programs.STAGES
            for record in records
            if (record["case"], record["system"], record["metric"]) == ("ours", name, metric)
        ]
        for name in ("right", "wrong", "refused", "both", "broken", "absent")
    }
    assert stages == {
        "right": [1, 1, 1],
        "wrong": [1, 1, 0],
        "refused": [1, 0, 0],
        "both": [1, 1, 0],
        "broken": [0, 0, 0],
        "absent": [0, 0, 0],
    }
    printed = capsys.readouterr().out
    assert "ours right:" not in printed
    assert "ours wrong: check: status 0: [ERROR] 42" in printed
    assert "ours refused: run: status 2" in printed
    assert "ours broken: build: status 2: dpu.c:1:25: error: 'undeclared'" in printed
    assert "ours absent: no folder absent" in printed
    after = sorted(folder.rglob("*"))  # a copy was built
    assert after == sorted([*before, folder / "records.json"])


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(folder: Path):
    program = published_programs.Program("ours", "slow", ".", "true", "sleep 60; echo ok", "ok")
    outcome = published_programs.try_program(program, folder, 0.5)
    assert (outcome.stages, outcome.reason) == (1, "run: took too long: ")


def test_programs_find_the_emulators_library_and_module(monkeypatch: pytest.MonkeyPatch):
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, "/own")
    found = published_programs.environment()
    root = found["UPMEM_HOME"]
    assert found["PATH"].startswith(f"{root}/bin:")
    assert found["LD_LIBRARY_PATH"] == f"{root}/lib:/own"
    assert found["PYTHONPATH"] == f"{root}/lib/python3/dist-packages:/own"


def test_chosen_programs_pass(folder: Path):
    words = ["--suites", str(folder / "suites.toml"), "--ours", str(folder / "checkout")]
    assert published_programs.main([*words, "--only", "right"]) == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name a checkout: --ours DIR, --theirs DIR"),
        (["--ours", "nowhere"], "--ours: no folder nowhere"),
        (["--ours", ".", "--only", "right", "nosuch"], "no program nosuch"),
        (["--suites", "nosuch.toml"], "nosuch.toml"),
    ],
)
def test_wrong_options_are_refused(
    folder: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
):
    suites = [] if "--suites" in words else ["--suites", str(folder / "suites.toml")]
    with pytest.raises(SystemExit):
        published_programs.main([*suites, *words])
    assert reason in capsys.readouterr().err


def test_a_wrong_description_is_refused(folder: Path):
    path = folder / "suites.toml"
    path.write_text(SUITES.replace('broken = { run = "bin/host x" }', 'broken = { ruin = "x" }'))
    with pytest.raises(ValueError, match=r"ours\.broken"):
        published_programs.read_suites(path)


def test_the_suites_that_come_with_it_are_complete():
    suites = published_programs.read_suites(published_programs.SUITES)
    assert {name: len(programs) for name, programs in suites.items()} == {
        "prim": 16,
        "simplepim": 2,
    }
