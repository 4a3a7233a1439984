"""Programs are built once, into a cache; and what cannot be built says why, and what to do."""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest
from fake_upmem import make_command
from sdk_present import needs
from upmem_runs import ROOT, caught, contents, run, start, train

from accel_rl import pim
from accel_rl.pim.backends import upmem as upmem_module
from accel_rl.pim.upmem import build, host
from pim_emu.sdk import sdk_path

pytestmark = needs("gcc", "g++")


def build_program(**options):
    """A DPU program's file, which is made within a second."""
    return build.dpu_program(pim.upmem.find_toolkit("emulator"), options)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """This process as if it had used no DPUs yet, and with a cache of its own."""
    cached = (build._folder, build._sources, build.host_library, upmem_module._backend)

    def forget():
        for function in cached:
            function.cache_clear()

    for name in ("CC", "CXX", "UPMEM_HOME", "ACCEL_RL_UPMEM", build.SOURCES, "PIM_EMU_CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCEL_RL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(host, "_hosts", {})
    forget()
    yield monkeypatch
    monkeypatch.undo()
    forget()


# --- The cache ---


# A gcc that notes that it compiles a DPU program, and then takes as long as is said.
SLOW = """#!/bin/sh
case "$*" in *tabular.c*) echo $$ >>"$NOTES"; sleep "$SECONDS_TO_WAIT" ;; esac
exec gcc "$@"
"""


@pytest.fixture
def slowly(tmp_path):
    """Variables of a process that builds into an empty cache, in no hurry."""
    gcc = tmp_path / "gcc"
    gcc.write_text(SLOW)
    gcc.chmod(0o755)
    return {
        "PIM_EMU_CC": gcc,
        "NOTES": tmp_path / "notes",
        "SECONDS_TO_WAIT": 1,
        "ACCEL_RL_CACHE": tmp_path / "cache",
    }


def test_a_second_process_builds_nothing(slowly):
    run(build_program, **slowly)
    made = contents(slowly["ACCEL_RL_CACHE"])
    assert len(made) == 2  # the program and a lock
    run(build_program, **slowly)
    assert contents(slowly["ACCEL_RL_CACHE"]) == made
    assert len(slowly["NOTES"].read_text().splitlines()) == 1


@pytest.mark.long  # waits for slow builds
def test_processes_that_build_the_same_at_the_same_time(slowly):
    processes = [start(build_program, **slowly) for _ in range(3)]
    for process in processes:
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0, printed
    assert len(slowly["NOTES"].read_text().splitlines()) == 1
    assert len(contents(slowly["ACCEL_RL_CACHE"])) == 2


@pytest.mark.long  # waits for slow builds
def test_a_build_that_is_killed_leaves_nothing_that_disturbs(slowly):
    cache = slowly["ACCEL_RL_CACHE"]
    process = start(build_program, **slowly | {"SECONDS_TO_WAIT": 60})
    with process:
        while not slowly["NOTES"].exists():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    half = [path for path in cache.rglob(".building-*") if path.is_dir()]
    assert len(half) == 1
    assert not [path for path in contents(cache) if path.parent.name == "programs"][1:]
    run(build_program, **slowly)
    assert len(contents(cache)) == 2
    assert not half[0].exists()


def build_on_a_full_disk():
    """A disk that takes files of 2 KiB and no more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))
    error = caught(pim.upmem.BuildFailed, build_program)
    print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert build_program().exists()


@pytest.mark.long  # builds in a process of its own
def test_a_full_disk(tmp_path):
    printed = run(build_on_a_full_disk, ACCEL_RL_CACHE=tmp_path)
    assert "failed with status" in printed
    assert len(contents(tmp_path)) == 2


def test_a_cache_that_cannot_be_written(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv("ACCEL_RL_CACHE", str(tmp_path / "file" / "cache"))
    for work in (train, build_program):
        error = caught(pim.upmem.BuildFailed, work)
        told = (
            r"/file/cache/upmem-.* cannot be written \(Not a directory\); name another folder in "
        )
        assert re.search(f"{told}ACCEL_RL_CACHE", str(error))


def test_the_cache_is_where_variables_say(fresh, tmp_path):
    toolkit = pim.upmem.find_toolkit()
    places = [build._folder(toolkit).parent]
    for name, value in (("ACCEL_RL_CACHE", ""), ("XDG_CACHE_HOME", "")):
        fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        fresh.setenv("HOME", str(tmp_path / "home"))
        fresh.setenv(name, value)
        build._folder.cache_clear()
        places.append(build._folder(toolkit).parent)
    expected = ("cache", "xdg/accel_rl", "home/.cache/accel_rl")
    assert places == [tmp_path / place for place in expected]


def test_what_a_build_depends_on_names_its_folder(fresh, tmp_path):
    sources = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", sources)
    fresh.setenv(build.SOURCES, str(sources))
    toolkit = pim.upmem.find_toolkit()
    seen = {build.fingerprint(toolkit)}
    (sources / "tests" / "more.c").touch()
    assert build.fingerprint(toolkit) in seen
    for name in ("common/rule.h", "ffi/frame.c", "upmem/dpu/tabular.c", "upmem/host/dpus.cpp"):
        path = sources / name
        path.write_text(path.read_text() + "\n")
        assert build.fingerprint(toolkit) not in seen, name
        seen.add(build.fingerprint(toolkit))
    assert build.fingerprint(pim.upmem.Toolkit("emulator", toolkit.folder, "other")) not in seen


def test_sources_that_change_while_a_process_runs(fresh, tmp_path):
    """What is built from the new ones must not pass for a program of the old ones."""
    sources = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", sources)
    fresh.setenv(build.SOURCES, str(sources))
    program = build_program()
    with (sources / "common" / "rule.h").open("a") as header:
        header.write("\n")
    assert build_program() == program
    error = caught(pim.upmem.BuildFailed, build_program, TASKLETS=11)
    assert "have changed: start again" in str(error)
    assert [path.name for path in contents(tmp_path / "cache")] == [".lock", program.name]


def test_what_a_program_depends_on_names_its_file(fresh):
    plain, other = build_program(), build_program(TASKLETS=11)
    fresh.setenv("PIM_EMU_FAST", "1")
    fast = build_program()
    fresh.delenv("PIM_EMU_FAST")
    assert len({plain, other, fast}) == 3
    assert plain == build_program()


def test_sources_with_a_mistake(fresh, tmp_path):
    sources = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", sources)
    with (sources / "upmem" / "dpu" / "tabular.c").open("a") as program:
        program.write("int mistake = nonsense;\n")
    fresh.setenv(build.SOURCES, str(sources))
    error = caught(pim.upmem.BuildFailed, build_program)
    assert "'nonsense' undeclared" in str(error)
    assert [path.name for path in contents(tmp_path / "cache")] == [".lock"]


def test_the_host_is_optimised(fresh, tmp_path):
    command, generator = build._cmake()
    options = [f"-DACCEL_RL_UPMEM_SDK={sdk_path()}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    source = ROOT / "kernels" / "upmem" / "host"
    words = [command, "-S", source, "-B", tmp_path, *generator, *options]
    subprocess.run(words, check=True, capture_output=True)
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    assert commands
    assert all("-O3" in command["command"] for command in commands)


def meet_another_host():
    class Report(ctypes.Structure):
        _fields_ = host._Report._fields_[1:]

    host._Report = Report
    error = caught(pim.upmem.SdkMissing, pim.upmem_backend)
    assert "are not of this accel_rl: reinstall it" in str(error)


def test_a_host_of_another_version():
    run(meet_another_host)


# --- The choice of what to build with ---


def test_a_toolkit_is_chosen_by_argument_or_variable(fresh):
    assert pim.upmem.which_toolkit() == "emulator"
    fresh.setenv("ACCEL_RL_UPMEM", "vendor")
    with pytest.raises(pim.upmem.SdkMissing, match="UPMEM's SDK was not found: UPMEM_HOME is not"):
        pim.upmem.which_toolkit()
    assert pim.upmem.find_toolkit("emulator").name == "emulator"
    fresh.setenv("ACCEL_RL_UPMEM", "nonsense")
    for work in (pim.upmem.which_toolkit, pim.upmem_backend):
        with pytest.raises(ValueError, match="sdk must be one of auto, vendor, emulator, got"):
            work()
    with pytest.raises(ValueError, match="got 'hardware'"):
        pim.upmem_backend(sdk="hardware")


def test_the_emulator_is_not_taken_for_the_vendors_sdk(fresh):
    fresh.setenv("UPMEM_HOME", str(sdk_path()))
    fresh.setenv("PATH", f"{sdk_path() / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert pim.upmem.find_toolkit().name == "emulator"
    error = caught(pim.upmem.SdkMissing, pim.upmem_backend, sdk="vendor")
    assert "are the emulator's, pim_emu" in str(error)


# --- There is nothing to build with, or to run ---


def only(folder, *commands):
    """A PATH with these commands alone."""
    folder.mkdir()
    for command in commands:
        found = build._tool(command)
        if found:
            (folder / command).symlink_to(found)
    return str(folder)


def without_gcc(patch, folder):
    patch.setenv("PATH", only(folder / "bin"))


def with_another_gcc(patch, folder):
    patch.setenv("PIM_EMU_CC", "no-such-gcc")


def without_cmake(patch, folder):
    patch.setenv("PATH", only(folder / "bin", "gcc", "g++", "ninja", "make"))
    patch.setattr(build.sysconfig, "get_path", lambda name: str(folder))


def without_make(patch, folder):
    patch.setenv("PATH", only(folder / "bin", "gcc", "g++", "cmake"))
    patch.setattr(build.sysconfig, "get_path", lambda name: str(folder))


def without_gxx(patch, folder):
    patch.setenv("PATH", only(folder / "bin", "gcc", "as", "ld", "cmake", "ninja", "make"))


def with_another_gxx(patch, folder):
    patch.setenv("CXX", "no-such-compiler -O2")


def without_sources(patch, folder):
    patch.setenv(build.SOURCES, str(folder / "nowhere"))


def without_sources_in_the_installation(patch, folder):
    spec = type("Spec", (), {"submodule_search_locations": [str(folder)]})
    patch.setattr(build.importlib.util, "find_spec", lambda name: spec)


def without_the_vendors_sdk(patch, folder):
    patch.setenv("ACCEL_RL_UPMEM", "vendor")
    patch.setenv("UPMEM_HOME", str(folder / "nowhere"))


def where_no_sdk_is(patch, folder):
    patch.setenv("UPMEM_HOME", str(folder / "nowhere"))


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        (without_gcc, "gcc is needed .* 'gcc' cannot be run; install it, or name another in PIM"),
        (with_another_gcc, "gcc is needed .* 'no-such-gcc' cannot be run"),
        (without_cmake, r"there is no cmake: install accel-rl\[upmem\], or cmake from your system"),
        (without_make, r"there is neither ninja nor make: install accel-rl\[upmem\]"),
        (without_gxx, "no C.. compiler: install gcc and g.., or name others in CC and CXX"),
        (with_another_gxx, "no C.. compiler: install gcc and g.., or name others in CC and CXX"),
        (without_sources, "are not in .*/nowhere, which ACCEL_RL_KERNEL_SOURCES names: unset"),
        (without_sources_in_the_installation, "install a C compiler .*, then reinstall accel_rl"),
        (without_the_vendors_sdk, "UPMEM_HOME is .*/nowhere; .* install UPMEM's SDK and source"),
        (
            where_no_sdk_is,
            "UPMEM_HOME is .*/nowhere; .* or unset UPMEM_HOME, or ACCEL_RL_UPMEM=emu",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(fresh, tmp_path, remove, message):
    assert pim.upmem.why_absent() is None
    remove(fresh, tmp_path)
    build._sources.cache_clear()
    assert re.search(message, pim.upmem.why_absent())
    error = caught(pim.upmem.SdkMissing, train)
    assert re.search(rf"backend 'upmem' is absent: .*{message}.*; or use 'cpu'", str(error), re.S)
    assert isinstance(error, ValueError)
    assert train(backend="auto").any()


def test_half_an_sdk_says_what_it_lacks(fresh, tmp_path):
    make_command(tmp_path / "bin", "dpu-upmem-dpurte-clang")
    fresh.setenv("UPMEM_HOME", str(tmp_path))
    error = caught(pim.upmem.SdkMissing, pim.upmem_backend, sdk="vendor")
    assert "there is no dpu-pkg-config: install UPMEM's SDK" in str(error)


def test_a_host_library_that_cannot_be_loaded(fresh):
    path = build._folder(pim.upmem.find_toolkit()) / "host.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a library")
    error = caught(pim.upmem.SdkMissing, train)
    assert f"{path} cannot be loaded" in str(error)
    assert "remove it, so that it is built again" in str(error)
