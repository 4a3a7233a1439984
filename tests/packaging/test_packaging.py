"""The sdist, and what comes of it with and without a compiler, each in an empty environment.

Slow: the native sources are built from the sdist, and mypy reads the library anew.
"""

import json
import re
import shutil
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import oracle
import pytest
from environments import ROOT, Environment, run

from accel_rl import __version__, datasets

pytestmark = pytest.mark.long

DATA = ("calibration.toml", "upmem-2560.toml", "upmem-v1b.toml", "py.typed", "LICENSE")
LEFTOVERS = (
    "build/py3-none-any/CMakeCache.txt",
    "runs/demo/results.json",
    ".venv/lib/python/site.py",
    ".venv-newest/.test",
    ".jax_cache/program",
    "dist/accel_rl-0.0.1.tar.gz",
    "src/accel_rl/accel_rl_kernels.so",
    "src/accel_rl/__pycache__/native.cpython-311.pyc",
)
# What makes pim_emu a distribution of its own, and is no part of this one.
OF_PIM_EMU = {f"pim_emu/{name}" for name in ("LICENSE", "README.md", "pyproject.toml")}
# Types of the library that only its own annotations tell.
TYPED = """
import pim_emu
from accel_rl.remote import Limiter

reveal_type(Limiter(min_size=2).min_size)
reveal_type(pim_emu.load_machine)
"""
# What the library imports would take minutes to read.
MYPY = """
[mypy]
follow_imports = skip
[mypy-accel_rl,accel_rl.remote.*,pim_emu.*]
follow_imports = normal
[mypy-numpy.*]
follow_imports_for_stubs = True
"""
# On two emulated DPUs.
DPU_PROGRAM = """
#include <mram.h>
#include <stdint.h>

__host int32_t number;
__host int32_t doubled;

int main(void) {
    doubled = 2 * number;
    return 0;
}
"""
RUN_DPU = """
import numpy as np, pim_emu
program = pim_emu.build("double.c", tasklets=1)
numbers = np.array([4, 21], np.int32)
result = pim_emu.run(
    program, dpus=2, scatter={"number": numbers}, gather={"doubled": (np.int32, ())}
)
print(result["doubled"].tolist())
"""
SERVE = """
import numpy as np
from accel_rl import remote
spec = remote.TableSpec("t", 8, (remote.Column("x", "i4"),))
with remote.ReplayServer() as server, remote.ReplayClient(server.address) as client:
    client.table(spec).push([np.full(4, 7, np.int32)])
    print(client.table(spec).sample(1, 2).columns["x"].tolist())
"""
SETTING = {"rule": "sarsa_epsilon_greedy", "numerics": "int32_scaled", "order": "RAN"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist of a copy of the checkout in which much has been built and run."""
    folder = tmp_path_factory.mktemp("sdist")
    source = folder / "source"
    skipped = (".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist", "runs", "__pycache__")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*skipped))
    for name in LEFTOVERS:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left over")
    project = tomllib.loads((source / "pyproject.toml").read_text())
    builder = Environment(folder / "builder")
    requires = project["build-system"]["requires"]
    builder.pip("install", "--quiet", *(x for x in requires if x.startswith("scikit-build-core")))
    hook = "import scikit_build_core.build as b, sys; b.build_sdist(sys.argv[1])"
    run(builder.bin / "python", "-c", hook, folder, cwd=source)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture
def environment(tmp_path):
    made = Environment(tmp_path / "environment")
    yield made
    shutil.rmtree(made.folder)  # a gigabyte, which pytest would keep for three runs


def trained(environment, folder, backend):
    """The tables [K, S, A] that the installed command trains on `lake.npz` in a folder."""
    words = (f"--{name}={value}" for name, value in SETTING.items())
    size = ("--dpus=5", "--passes=3", "--seed=9", f"--backend={backend}", f"--out={backend}")
    environment.accel_rl("train", "lake.npz", *words, *size, cwd=folder)
    with np.load(folder / backend / "table.npz") as table:
        return table["tables"]


def check_training(environment, folder, backends):
    """Checks that each backend trains what the NumPy oracle does, bit for bit."""
    collect = ("collect", "FrozenLake-v1", "--num=1500", "--seed=3", "--out=lake.npz")
    environment.accel_rl(*collect, cwd=folder)
    log = datasets.load(folder / "lake.npz").transitions
    truth = oracle.train(log, 16, 4, 5, passes=3, seed=9, **SETTING)
    assert np.any(truth != 0)
    for backend in backends:
        np.testing.assert_array_equal(trained(environment, folder, backend), truth)


def doctor(environment, folder):
    report = json.loads(environment.accel_rl("doctor", "--json", cwd=folder)[0])
    return {each["name"]: each for each in report["backends"]}


def installed(environment, folder):
    """The folder that the environment's Python imports the library from, which must be its own."""
    words = (environment.bin / "python", "-c", "import accel_rl; print(accel_rl.__path__[0])")
    place = Path(run(*words, cwd=folder)[0].strip())
    assert place.is_relative_to(environment.folder)
    return place


def test_sdist_holds_what_a_build_needs_and_nothing_built(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder, pattern in (
        ("kernels", "**/*"),
        ("pim_emu", "**/*.toml"),
        ("pim_emu/native", "**/*"),
        ("src", "**/*.py"),
        ("tests", "**/*.py"),
        (".ci", "*"),
    ):
        found = (path for path in (ROOT / folder).glob(pattern) if path.is_file())
        wanted = {str(path.relative_to(ROOT)) for path in found}
        assert wanted
        assert wanted <= names
    assert {"LICENSE", "README.md", "Makefile", "constraints.txt", "pyproject.toml"} <= names
    assert sorted(names & set(LEFTOVERS)) == []
    assert not [name for name in names if name.endswith((".so", ".o", ".a", ".pyc"))]
    assert {name.partition("/")[0] for name in names}.isdisjoint({"runs", "build", ".venv", ".git"})


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that is built of the sdist."""
    folder = tmp_path_factory.mktemp("wheel")
    builder = Environment(folder / "builder")
    builder.pip("wheel", "--quiet", "--no-deps", "--wheel-dir", folder, sdist)
    (made,) = folder.glob("*.whl")
    return made


def test_wheel_holds_the_library_and_nothing_else(wheel):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name == f"accel_rl-{__version__}-{python}-{python}-{platform}.whl"
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {name for name in names if name.endswith(".so")}
    module = f"accel_rl/remote/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    driver = {"accel_rl/remote/libaccel_rl_dpdk.so"}  # where DPDK was found
    assert libraries - driver == {"accel_rl/accel_rl_kernels.so", module}
    assert set(DATA) <= {name.rpartition("/")[2] for name in names}
    assert {"accel_rl/py.typed", "pim_emu/py.typed"} <= set(names)
    for folder, wanted in (("src", "accel_rl/**/*.[pt][yo]*"), (".", "pim_emu/**/*")):
        found = (path.relative_to(ROOT / folder) for path in (ROOT / folder).glob(wanted))
        sources = {str(x) for x in found if (ROOT / folder / x).is_file()}
        assert {x for x in sources if "__pycache__" not in x} - OF_PIM_EMU <= set(names)
    assert OF_PIM_EMU.isdisjoint(names)
    templates = {"page.css", "page.html.j2"}
    assert {f"accel_rl/report/templates/{name}" for name in templates} <= set(names)
    parts = {name.partition("/")[0] for name in names}
    assert parts == {"accel_rl", "pim_emu", f"accel_rl-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or "test_" in name]


def test_wheel_works_in_an_empty_environment(wheel, environment, tmp_path):
    environment.install(wheel)
    assert (installed(environment, tmp_path) / "accel_rl_kernels.so").is_file()
    assert environment.accel_rl("--version", cwd=tmp_path)[0] == f"accel_rl {__version__}\n"
    backends = doctor(environment, tmp_path)
    assert backends["cpu"]["present"]
    assert backends["auto"]["why"].startswith("picks cpu")
    check_training(environment, tmp_path, ("cpu", "jax"))
    assert environment.python(SERVE, tmp_path) == "[7, 7]\n"
    (tmp_path / "double.c").write_text(DPU_PROGRAM)
    assert environment.python(RUN_DPU, tmp_path) == "[8, 42]\n"
    words = (environment.bin / "pim-emu", "doctor")
    lines = run(*words, cwd=tmp_path, XDG_CACHE_HOME=tmp_path)[0].splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7
    check_types(environment, tmp_path)


def check_types(environment, folder):
    """Checks that mypy reads the types of what is installed, which without py.typed it does not."""
    pytest.importorskip("mypy")
    (folder / "typed.py").write_text(TYPED)
    (folder / "mypy.ini").write_text(MYPY)
    python = f"--python-executable={environment.bin / 'python'}"
    words = (sys.executable, "-m", "mypy", python, "typed.py")
    said, _ = run(*words, cwd=folder)
    assert re.search(r'Revealed type is "(builtins\.)?int"', said)
    assert "pim_emu.machine.Machine" in said


def test_without_a_compiler_the_library_runs_on_jax(sdist, environment, tmp_path):
    environment.install(sdist, CC=tmp_path / "no-compiler")
    assert not list(installed(environment, tmp_path).glob("*kernels*"))
    backends = doctor(environment, tmp_path)
    assert not backends["cpu"]["present"]
    assert backends["auto"]["why"].startswith("picks jax")
    check_training(environment, tmp_path, ("auto",))
    words = ("train", "lake.npz", "--backend=cpu", "--dpus=5", "--out=refused")
    _, complaint = environment.accel_rl(*words, cwd=tmp_path, expect=2)
    for said in (backends["cpu"]["why"], complaint):
        for part in ("'cpu' is absent", "install a C compiler", "gcc", "pip install", "'jax'"):
            assert part in said
