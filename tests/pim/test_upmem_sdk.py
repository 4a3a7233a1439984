"""UPMEM's SDK is found where it is, and real ranks are counted, on fake trees of both."""

import time

import pytest
from fake_upmem import VERSION, make_command, make_devices, make_sdk

from accel_rl.pim.upmem import sdk as upmem_sdk


def test_nothing_is_found_on_a_bare_machine(tmp_path):
    sdk = upmem_sdk.find_sdk({"PATH": str(tmp_path)})
    assert (sdk.found, sdk.where, sdk.version) == (False, None, None)
    for part in ("UPMEM_HOME is not set", "dpu-upmem-dpurte-clang", "on PATH", "upmem_env.sh"):
        assert part in sdk.why
    assert not upmem_sdk.find_sdk({}).found


def test_upmem_home_comes_before_path(tmp_path):
    home, other = make_sdk(tmp_path / "home"), make_sdk(tmp_path / "other")
    sdk = upmem_sdk.find_sdk({"UPMEM_HOME": str(home), "PATH": str(other / "bin")})
    assert sdk == upmem_sdk.Sdk(True, str(home / "bin"), VERSION, f"UPMEM_HOME is {home}")


def test_path_is_searched_where_upmem_home_is_wrong(tmp_path):
    sdk = make_sdk(tmp_path / "sdk")
    wrong = tmp_path / "wrong"
    found = upmem_sdk.find_sdk({"UPMEM_HOME": str(wrong), "PATH": f"/absent:{sdk / 'bin'}"})
    assert (found.found, found.where, found.version) == (True, str(sdk / "bin"), VERSION)
    assert f"{wrong / 'bin'} has no dpu-upmem-dpurte-clang" in found.why
    assert "dpu-upmem-dpurte-clang is on PATH" in found.why
    nowhere = upmem_sdk.find_sdk({"UPMEM_HOME": str(wrong), "PATH": ""})
    assert not nowhere.found
    assert f"UPMEM_HOME is {wrong}" in nowhere.why


def test_the_emulator_is_not_taken_for_the_sdk(tmp_path):
    home = make_sdk(tmp_path / "sdk")
    (home / "share" / "pim_emu").mkdir(parents=True)
    for environment in ({"UPMEM_HOME": str(home)}, {"PATH": str(home / "bin")}):
        sdk = upmem_sdk.find_sdk(environment)
        assert (sdk.found, sdk.where, sdk.version) == (False, None, None)
        assert f"the commands in {home / 'bin'} are the emulator's" in sdk.why


def test_empty_upmem_home_names_no_folder():
    assert "UPMEM_HOME is not set" in upmem_sdk.find_sdk({"UPMEM_HOME": ""}).why


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        ("dpu-upmem-dpurte-clang", "dpu-pkg-config"),
        ("dpu-pkg-config", "dpu-upmem-dpurte-clang"),
    ],
)
def test_half_an_sdk_is_found_and_says_what_it_lacks(tmp_path, present, missing):
    make_command(tmp_path, present, "echo 1.2.3")
    sdk = upmem_sdk.find_sdk({"PATH": str(tmp_path)})
    assert (sdk.found, sdk.where) == (True, str(tmp_path))
    assert f"{tmp_path} has no {missing}" in sdk.why
    assert sdk.version == ("1.2.3" if present == "dpu-pkg-config" else None)


def test_file_that_cannot_be_run_is_no_compiler(tmp_path):
    home = make_sdk(tmp_path / "sdk")
    (home / "bin" / "dpu-upmem-dpurte-clang").chmod(0o644)
    assert not upmem_sdk.find_sdk({"UPMEM_HOME": str(home), "PATH": ""}).found


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("exit 3", "exit status 3"),
        ("echo no such package", "no such package"),
        ("printf '\\377'", "printed"),
        ("true", "printed ''"),
        ("exec sleep 60", "timed out after 0.2"),
    ],
)
def test_version_that_cannot_be_had_is_unknown(tmp_path, body, part):
    home = make_sdk(tmp_path / "sdk")
    make_command(home / "bin", "dpu-pkg-config", body)
    start = time.monotonic()
    environment = {"UPMEM_HOME": str(home), "PATH": "/usr/bin:/bin"}
    sdk = upmem_sdk.find_sdk(environment, timeout=0.2 if "sleep" in body else 30)
    assert time.monotonic() - start < 30
    assert (sdk.found, sdk.version) == (True, None)
    assert "version is unknown" in sdk.why
    assert part in sdk.why


def test_command_that_does_not_start(tmp_path):
    home = make_sdk(tmp_path / "sdk")
    (home / "bin" / "dpu-pkg-config").write_text("#!/no/such/interpreter\n")
    sdk = upmem_sdk.find_sdk({"UPMEM_HOME": str(home)})
    assert (sdk.found, sdk.version) == (True, None)
    assert "version is unknown" in sdk.why


def test_ranks_are_counted_by_their_nodes_alone(tmp_path):
    names = ("dpu_rank0", "dpu_rank1", "dpu_rank12", "dpu_region0", "dpu_rank", "xdpu_rank3")
    devices = make_devices(tmp_path / "dev", *names)
    assert upmem_sdk.count_ranks(devices) == 3
    assert upmem_sdk.count_ranks(make_devices(tmp_path / "bare", "null")) == 0
    assert upmem_sdk.count_ranks(tmp_path / "absent") == 0
