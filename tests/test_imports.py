"""The import direction that the design fixes, read from the sources."""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "accel_rl"
FOUNDATION = {"types", "arguments", "control_flow", "words"}
BASE = FOUNDATION | {"envs", "am", "networks", "tabular"}
MIDDLE = BASE | {"datasets", "replay", "agents", "io"}
ALLOWED = {
    "types": {"arguments"},
    "arguments": set(),
    "cache": set(),
    "control_flow": {"types"},
    "words": {"types"},
    "native": set(),
    "testing": MIDDLE | {"compose", "remote"},
    "envs": FOUNDATION,
    "am": FOUNDATION,
    "networks": FOUNDATION,
    "hardware_models": FOUNDATION,
    "tabular": FOUNDATION | {"native"},
    "io": FOUNDATION,
    "plot": FOUNDATION,
    "report": FOUNDATION | {"io", "plot"},
    "datasets": BASE | {"io"},
    "replay": BASE | {"cache", "native", "io"},
    "agents": BASE,
    "train": MIDDLE,
    "pim": MIDDLE | {"native", "cache", "pim_emu"},
    "compose": MIDDLE | {"train", "pim", "native", "cache", "hardware_models", "experiment"},
    "remote": MIDDLE | {"train", "pim", "experiment"},
    "experiment": MIDDLE | {"train", "pim", "plot"},
    "cli": MIDDLE | {"native", "train", "pim", "compose", "remote", "plot", "report", "experiment"},
    "__main__": {"cli"},
    "__init__": MIDDLE
    | {
        "train",
        "pim",
        "compose",
        "remote",
        "plot",
        "testing",
        "experiment",
        "hardware_models",
        "cache",
    },  # when asked
}


def imported(path):
    """Names of the form accel_rl.X or pim_emu that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module]
            if node.module == "accel_rl":
                names = [f"accel_rl.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "pim_emu":
                yield "pim_emu"
            elif parts[0] == "accel_rl" and len(parts) > 1:
                yield parts[1]


def test_folders_import_only_what_lies_below_them():
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        extra = set(imported(path)) - ALLOWED[folder] - {folder, "__version__"}
        assert not extra, f"{path.relative_to(ROOT)} must not import {sorted(extra)}"
        checked += 1
    assert checked > 20


def test_pim_emu_stands_alone():
    for path in (ROOT / "pim_emu").rglob("*.py"):
        assert not set(imported(path)) - {"pim_emu"}, path


def test_pim_emu_knows_nothing_of_reinforcement_learning():
    words = (
        "accel.rl|reinforcement|q-?_?(table|learning|value)s?|sarsa|swiftrl|tabular|td.error|agents?"
        "|episodes?|rewards?|replay|epsilon|greedy|mdp|learners?"
    )
    word = re.compile(rf"\b({words})\b", re.IGNORECASE)
    own = {"README.md", "pyproject.toml", "LICENSE"}  # they tell of the other distribution
    checked = 0
    for path in (ROOT / "pim_emu").rglob("*"):
        if path.is_file() and path.suffix != ".pyc" and path.name not in own:
            found = word.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)} says {found[0]!r}"
            checked += 1
    assert checked > 100


def test_pim_emu_imports_without_jax():
    program = (
        "import sys; sys.modules['jax'] = None\n"
        "import importlib, pkgutil, pim_emu\n"
        "names = [each.name for each in pkgutil.walk_packages(pim_emu.__path__, 'pim_emu.')]\n"
        "for name in names:\n"
        "    if not name.endswith(('.mapping', '.__main__')): importlib.import_module(name)\n"
        "print(len(names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 30


def test_light_imports_stay_light():
    program = (
        "import sys, accel_rl.tabular, accel_rl.datasets, accel_rl.pim, accel_rl.envs;"
        "print([m for m in ('gymnax', 'gymnasium', 'matplotlib', 'flax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
