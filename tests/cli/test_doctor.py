"""`accel-rl doctor`: backends, UPMEM's SDK and real DPUs, present and absent."""

import pytest
from commands import as_json, succeed
from fake_upmem import VERSION, make_devices, make_sdk
from kernels_present import needs_kernels
from optional import require
from sdk_present import needs_sdk

from accel_rl import native, pim
from accel_rl.pim.upmem import sdk as upmem_sdk
from accel_rl.remote import module as remote_module


def backends(report):
    return {each["name"]: each for each in report["backends"]}


@pytest.fixture
def fresh(monkeypatch):
    """Forgets the loaded kernels, before and after."""

    def forget():
        native.library.cache_clear()
        pim.cpu_backend.cache_clear()

    forget()
    yield monkeypatch
    monkeypatch.undo()
    forget()


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without anything of UPMEM's."""
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(upmem_sdk, "DEVICES", make_devices(tmp_path / "bare"))


@needs_kernels
def test_native_kernels_present():
    report = backends(as_json("doctor"))
    assert report["cpu"]["present"]
    assert f"with {native.instruction_set()} instructions" in report["cpu"]["why"]
    assert report["auto"]["why"] == f"picks cpu: {report['cpu']['why']}"
    assert "instructions" not in report["jax"]["why"]


@pytest.mark.parametrize(("library", "part"), [("", "turns"), ("/absent.so", "/absent.so")])
def test_native_kernels_absent(fresh, library, part):
    fresh.setenv(native.VARIABLE, library)
    report = backends(as_json("doctor"))
    assert not report["cpu"]["present"]
    assert part in report["cpu"]["why"]
    assert "'jax'" in report["cpu"]["why"]
    assert report["auto"]["why"] == f"picks jax: {report['jax']['why']}"


def test_nothing_of_upmem(bare):
    upmem = as_json("doctor")["upmem"]
    sdk = upmem.pop("sdk")
    del upmem["emulator"]
    assert upmem == {"ranks": 0, "dpus_at_most": 0}
    assert (sdk["found"], sdk["where"], sdk["version"]) == (False, None, None)
    assert "UPMEM_HOME" in sdk["why"]
    printed = succeed("doctor")
    assert f"UPMEM SDK: not found: {sdk['why']}\n" in printed
    assert "real DPUs: none\n" in printed


@needs_sdk
def test_the_emulator_builds_programs_where_there_is_gcc(monkeypatch):
    works = "builds and runs DPU programs here"
    assert as_json("doctor")["upmem"]["emulator"] == {"present": True, "why": works}
    assert f"UPMEM emulator: {works}\n" in succeed("doctor")
    monkeypatch.setenv("PIM_EMU_CC", "no-such-compiler")
    emulator = as_json("doctor")["upmem"]["emulator"]
    assert not emulator["present"]
    assert "'no-such-compiler' cannot be run" in emulator["why"]
    assert f"UPMEM emulator: {emulator['why']}\n" in succeed("doctor")


def test_sdk_and_ranks(monkeypatch, tmp_path):
    home = make_sdk(tmp_path / "sdk")
    monkeypatch.setenv("UPMEM_HOME", str(home))
    devices = make_devices(tmp_path / "dev", "dpu_rank0", "dpu_rank1", "null")
    monkeypatch.setattr(upmem_sdk, "DEVICES", devices)
    upmem = as_json("doctor")["upmem"]
    del upmem["emulator"]
    assert upmem == {
        "sdk": {
            "found": True,
            "where": str(home / "bin"),
            "version": VERSION,
            "why": f"UPMEM_HOME is {home}",
        },
        "ranks": 2,
        "dpus_at_most": 128,
    }
    printed = succeed("doctor")
    assert f"UPMEM SDK: {VERSION}, in {home / 'bin'}: UPMEM_HOME is {home}\n" in printed
    assert "real DPUs: at most 128 (ranks: 2)\n" in printed


def test_transports_of_the_replay_server(monkeypatch):
    require("replay server")
    module = remote_module.native()
    found = {each["name"]: each for each in as_json("doctor")["transports"]}
    assert {"tcp", "tls", "udp", "unix", "shm"} <= set(found)
    assert all(each["why"] for each in found.values())
    assert found["tcp"]["present"]
    monkeypatch.setattr(module, "why_no_shm", lambda: "memfd_create: Function not implemented")
    (shared,) = (each for each in as_json("doctor")["transports"] if each["name"] == "shm")
    assert not shared["present"]
    assert "memfd_create" in shared["why"]
    assert "Transports of the replay server" in succeed("doctor")
