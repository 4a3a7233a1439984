"""The worked example of docs/native-kernels.md compiles, and computes what its twin does."""

import ctypes
import pathlib
import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernels_present import needs_kernels

from accel_rl import native

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "native-kernels.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The page's Python names, with its kernel compiled and registered."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on PATH: the example cannot be compiled")
    if native._jaxlib_version() > native.library().accel_rl_ffi_version():
        pytest.skip("this jaxlib's headers are newer than those that the kernels are built against")
    folder = tmp_path_factory.mktemp("example")
    blocks = dict(re.findall(r"```(c|python)\n(.*?)```", PAGE, re.DOTALL))
    (folder / "greedy.c").write_text(blocks["c"])
    sources = [folder / "greedy.c", *(ROOT / "kernels" / "ffi" / x for x in ("frame.c", "pool.c"))]
    includes = [f"-I{ROOT / 'kernels' / 'ffi'}", f"-isystem{jax.ffi.include_dir()}"]
    command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    library = folder / "greedy.so"
    subprocess.run([*command, *includes, "-o", library, *sources], check=True)
    name = "accel_rl_greedy_policy"
    handler = getattr(ctypes.CDLL(str(library)), name)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
    names = {}
    exec(compile(blocks["python"], "native-kernels.md", "exec"), names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "target", lambda symbol: symbol)
        yield names


@needs_kernels
def test_the_example_equals_its_twin(example):
    draw = np.random.default_rng(0)
    # Few distinct values, so that there are ties; many states, so that threads share them.
    values = jnp.asarray(draw.integers(0, 3, (50_000, 5)), jnp.float32)
    kernel, twin = jax.jit(example["greedy_policy"]), example["greedy_policy_twin"]
    np.testing.assert_array_equal(kernel(values), twin(values))
    many = values.reshape(10, 5_000, 5)
    np.testing.assert_array_equal(jax.vmap(kernel)(many), jax.vmap(twin)(many))


@needs_kernels
def test_the_example_refuses_what_it_cannot_take(example):
    with pytest.raises(TypeError, match=r"float32 \[S, A\], got int32"):
        example["greedy_policy"](jnp.zeros((3, 2), jnp.int32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="values must have an action"):
        example["greedy_policy"](jnp.zeros((3, 0)))
