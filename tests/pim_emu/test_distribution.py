"""pim_emu as a distribution of its own: its wheel, in an environment that has nothing else."""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from emulator_page import FILE, PAGE
from sdk_present import needs

import accel_rl
import pim_emu

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")

needs_backend = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("pip") is None,
    reason="pim_emu's wheel: absent: pip install hatchling pip",
)


def run(*words, cwd, expect=0, **variables):
    """Return what a command prints, in an environment without the settings of the tests."""
    ours = ("ACCEL_RL_", "JAX_", "PIM_EMU_", "PYTHON", "UPMEM_", "XLA_", "MAKE", "MFLAGS")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=inherited | variables, text=True,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == expect, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    words = (*OFFLINE, "--no-build-isolation", "--wheel-dir", folder, ROOT / "pim_emu")
    run(sys.executable, "-m", "pip", "wheel", *words, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The folder of an environment with the wheel alone: no pip, no NumPy, no JAX."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", *OFFLINE, wheel, cwd=folder)
    return folder


@needs_backend
def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name == f"pim_emu-{pim_emu.__version__}-py3-none-any.whl"
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "pim_emu").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    own = {f"pim_emu/{name}" for name in ("LICENSE", "README.md", "pyproject.toml")}
    assert own < sources
    assert {name for name in names if name.startswith("pim_emu/")} == sources - own
    assert not list((ROOT / "pim_emu").glob("*.egg-info"))
    assert not (ROOT / "pim_emu" / "build").exists()


@needs_backend
def test_wheel_of_the_sdist_is_the_same(wheel, tmp_path):
    words = (sys.executable, "-m", "hatchling", "build", "--target", "sdist")
    run(*words, "--directory", tmp_path, cwd=ROOT / "pim_emu")
    (sdist,) = tmp_path.glob("*.tar.gz")
    words = (*OFFLINE, "--no-build-isolation", "--wheel-dir", tmp_path, sdist)
    run(sys.executable, "-m", "pip", "wheel", *words, cwd=tmp_path)
    (made,) = tmp_path.glob("*.whl")
    assert set(zipfile.ZipFile(made).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_both_distributions_have_one_version_and_licence():
    assert pim_emu.__version__ == accel_rl.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {accel_rl.__version__}\n" in citation
    assert (ROOT / "pim_emu" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@needs_backend
@needs("gcc", "cc", "make")
def test_wheel_builds_and_runs_the_first_program(environment, tmp_path):
    command, cache = environment / "bin" / "pim-emu", str(tmp_path / "cache")
    for module in ("jax", "numpy", "accel_rl"):
        run(environment / "bin" / "python", "-c", f"import {module}", cwd=tmp_path, expect=1)
    lines = run(command, "doctor", cwd=tmp_path, PIM_EMU_CACHE=cache).splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    run(command, "run", "make", cwd=tmp_path, PIM_EMU_CACHE=cache)
    said = run(command, "run", "./app", cwd=tmp_path, PIM_EMU_CACHE=cache)
    assert said.splitlines()[1] == "15626 elements, 16 tasklets"
    assert said.endswith("\n0 of 1000000 sums are wrong\n")
    words = ("run", environment / "bin" / "python", "ranks.py")
    assert run(command, *words, cwd=tmp_path, PIM_EMU_CACHE=cache).startswith("70 1000 1\n")


@needs_backend
@needs("gcc")
def test_doctor_tells_what_is_wrong(environment, tmp_path):
    doctor = (environment / "bin" / "pim-emu", "doctor")
    lines = run(*doctor, cwd=tmp_path, expect=1, PIM_EMU_CC="no-gcc").splitlines()
    assert len(lines) == 7
    failed = {line.split()[1]: line for line in lines if line.startswith("FAILED")}
    assert set(failed) == {"gcc", "binutils", "SDK", "program"}
    assert "'no-gcc' cannot be run; install it" in failed["gcc"]


@needs_backend
@needs("gcc")
def test_doctor_finds_two_owners(environment, tmp_path):
    (packages,) = (environment / "lib").glob("python*/site-packages")
    other = packages / "other-2.0.dist-info"
    other.mkdir()
    try:
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
        (other / "RECORD").write_text("_editable.pth,,\n")  # of an editable installation
        (other / "entry_points.txt").write_text("[console_scripts]\npim-emu = pim_emu:main\n")
        words = (environment / "bin" / "pim-emu", "doctor")
        line = run(*words, cwd=tmp_path, expect=1, PIM_EMU_CC="no-gcc").splitlines()[0]
    finally:
        shutil.rmtree(other)
    assert line.startswith("FAILED")
    twice = tmp_path / "twice"
    twice.symlink_to(packages)
    code = "import sys; sys.path.append(sys.argv[1]); import pim_emu.doctor as d; d._installation()"
    run(environment / "bin" / "python", "-c", code, twice, cwd=tmp_path)
    for part in ("other 2.0", f"pim-emu {pim_emu.__version__}", "uninstall all, then install one"):
        assert part in line
