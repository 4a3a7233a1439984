"""The import direction that the design fixes, read from the sources."""

import ast
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "accel_rl"
FOUNDATION = {"types", "arguments", "control_flow"}
BASE = FOUNDATION | {"envs", "am", "networks", "tabular"}
MIDDLE = BASE | {"datasets", "replay", "agents", "io"}
ALLOWED = {
    "types": {"arguments"},
    "arguments": set(),
    "control_flow": {"types"},
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
    "replay": BASE | {"native"},
    "agents": BASE,
    "train": MIDDLE,
    "pim": MIDDLE | {"native", "pim_emu"},
    "compose": MIDDLE | {"train", "pim", "native", "hardware_models", "experiment"},
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


def test_light_imports_stay_light():
    program = (
        "import sys, accel_rl.tabular, accel_rl.datasets, accel_rl.pim, accel_rl.envs;"
        "print([m for m in ('gymnax', 'gymnasium', 'matplotlib', 'flax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
