"""The library of kernels: found, refused with a reason, or done without."""

import os
import pathlib
import subprocess
import sys

import jax
import pytest
from kernels_present import needs_kernels
from sdk_present import why_absent
from transitions import synthetic

from accel_rl import native, pim, tabular


@pytest.fixture
def reload(monkeypatch):
    """Make the loader look again, for this test only."""
    caches = (native.library, native.target, pim.cpu_backend)
    for cached in caches:
        cached.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def train(backend):
    chunks = pim.partition(synthetic(4, 2, 40), 2, 4, 2)
    rule, schedule = tabular.q_learning(tabular.int32_scaled()), pim.MergeSchedule(2)
    return pim.train(chunks, rule=rule, schedule=schedule, backend=backend).tables


def test_without_kernels_auto_trains_on_jax_and_cpu_says_what_to_do(reload):
    reload.setenv(native.VARIABLE, "")
    assert "turns the native kernels off" in native.why_absent()
    assert pim.select_backend("auto").name == "jax"
    assert train("auto").any()
    with pytest.raises(ValueError, match="backend 'cpu' is absent: ACCEL_RL_KERNELS is empty"):
        train("cpu")


def test_kernels_that_were_not_built_are_explained(reload, tmp_path):
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    reload.delenv(native.VARIABLE, raising=False)
    reload.setattr(native.importlib.util, "find_spec", lambda name: spec)
    assert "install a C compiler" in native.why_absent()


def test_a_file_that_is_no_library_is_refused(reload, tmp_path):
    broken = tmp_path / "accel_rl_kernels.so"
    broken.write_bytes(b"not a library")
    reload.setenv(native.VARIABLE, str(broken))
    assert f"{broken} cannot be loaded" in native.why_absent()


def test_a_compiler_at_hand_means_kernels():
    """An installation falls back to JAX alone in silence; the tests must not."""
    if os.environ.get(native.VARIABLE) == "":
        pytest.skip(f"{native.VARIABLE} is empty: the kernels are turned off")
    if why_absent("gcc") is not None:
        pytest.skip("no C compiler on PATH, or no headers: the kernels could not be built")
    assert native.why_absent() is None


@needs_kernels
def test_a_library_without_a_handler_is_stale():
    with pytest.raises(native.KernelsAbsent, match=r"stale, reinstall accel_rl: .*no_such_handler"):
        native.target("no_such_handler")


def test_without_cpu_devices_the_cpu_backend_is_absent(reload):
    def local_devices(backend):
        raise RuntimeError(f"Unknown backend: {backend!r}")

    reload.setattr(jax, "local_devices", local_devices)
    with pytest.raises(ValueError, match=r"backend 'cpu' is absent: (jax has no CPU|the native)"):
        pim.select_backend("cpu")


@needs_kernels
@pytest.mark.parametrize(("found", "usable"), [(2, False), (3, True), (4, True), (1003, False)])
def test_a_jaxlib_older_than_the_headers_is_refused(reload, found, usable):
    reload.setattr(native, "_jaxlib_version", lambda: found)
    reason = native.why_absent()
    assert (reason is None) == usable
    if not usable:
        assert f"need XLA's FFI 0.3, this jaxlib has {found // 1000}.{found % 1000}" in reason


@needs_kernels
@pytest.mark.parametrize("header", [None, "#define XLA_FFI_API_MAJOR 0"])
def test_a_jaxlib_that_does_not_state_its_version_is_refused(reload, tmp_path, header):
    if header:
        folder = tmp_path / "xla" / "ffi" / "api"
        folder.mkdir(parents=True)
        (folder / "c_api.h").write_text(header)
    reload.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    assert "jaxlib does not state its FFI version" in native.why_absent()


@needs_kernels
def test_a_library_with_another_interface_is_stale(reload):
    reload.setattr(native, "INTERFACE", native.INTERFACE + 1)
    assert f"stale (interface {native.INTERFACE - 1}, not" in native.why_absent()


@needs_kernels
def test_built_against_the_oldest_supported_headers():
    assert native.library().accel_rl_ffi_version() == 3  # of jaxlib 0.10.2
    assert native._jaxlib_version() >= 3


@needs_kernels
def test_auto_is_cpu_here_and_falls_back_for_what_the_kernels_lack():
    def program_of(numerics, **replaced):
        rule = tabular.make_rule("q_learning", numerics)._replace(**replaced)
        return tabular.PassProgram(rule, tabular.make_order("SEQ"), 4, 2)

    assert jax.default_backend() == "cpu"
    fp32 = tabular.fp32()
    for program in (program_of(fp32), program_of(fp32, name="renamed")):
        assert pim.select_backend("auto", program).name == "cpu"
    for program in (
        program_of(fp32, kernel=None),
        program_of(fp32, target=lambda values, row, c: row.reward),
        program_of(tabular.int32_scaled(1_000)),
        program_of(tabular.int32_pow2()._replace(multiply=lambda c, x: x)),
    ):
        assert pim.select_backend("auto", program).name == "jax"
        with pytest.raises(ValueError, match=r"backend 'cpu': .* has no native kernel"):
            pim.select_backend("cpu", program)


@needs_kernels
def test_nothing_is_loaded_before_it_is_needed():
    program = (
        "import accel_rl.pim, accel_rl.tabular, accel_rl.native;"
        "print('accel_rl_kernels' in open('/proc/self/maps').read())"
    )
    if not pathlib.Path("/proc/self/maps").exists():
        pytest.skip("no /proc: loaded libraries cannot be listed")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
