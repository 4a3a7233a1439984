"""Every public callable has rows in a table here, or a reason not to."""

import ast
import importlib
import inspect
import pathlib

import pytest
import test_bad_agents
import test_bad_compose
import test_bad_data
import test_bad_pim
import test_bad_remote
import test_bad_replay
import test_bad_tabular
import test_bad_train

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = (
    test_bad_agents.TABLE, test_bad_compose.TABLE, test_bad_data.TABLE, test_bad_data.FILES,
    test_bad_pim.TABLE, test_bad_remote.TABLE, test_bad_remote.OF_SERVER, test_bad_replay.TABLE,
    test_bad_tabular.TABLE, test_bad_train.TABLE,
)  # fmt: skip

# What the library makes and gives, or a bundle of functions whose maker is in a table: nobody is
# meant to make one of these by hand, and protocols cannot be made.
MADE_BY_THE_LIBRARY = [
    "agents.Learned",
    "agents.Limits",
    "am.hardware.Comparison",
    "am.hardware.Figure",
    "am.hardware.Modelled",
    "am.hardware.Point",
    "compose.Alike",
    "compose.Costs",
    "compose.Device",
    "compose.Estimate",
    "compose.Executable",
    "compose.LogPlan",
    "compose.Modelled",
    "compose.Plan",
    "compose.Ran",
    "compose.Workload",
    "compose.devices.AssociativeMemory",
    "compose.devices.FpgaDevice",
    "compose.devices.JaxDevice",
    "compose.devices.NativeDevice",
    "compose.devices.Status",
    "datasets.DatasetInfo",
    "datasets.PackedDataset",
    "datasets.Policy",
    "datasets.TabularDataset",
    "envs.HostEnvironment",
    "envs.HostStep",
    "envs.Sampler",
    "envs.wrappers.RunningStatistics",
    "io.Checkpoint",
    "io.Logger",
    "pim.Backend",
    "pim.Chunks",
    "pim.Machine",
    "pim.Schedule",
    "pim.TrainResult",
    "pim.upmem.Recording",
    "pim.upmem.Report",
    "pim.upmem.Toolkit",
    "pim_emu.Counters",
    "pim_emu.ModelledSeconds",
    "pim_emu.Program",
    "pim_emu.Result",
    "pim_emu.Roofline",
    "pim_emu.ScalingPoint",
    "pim_emu.SetCounters",
    "pim_emu.cost.KernelCycles",
    "pim_emu.cost.UpdateInstructions",
    "plot.Compared",
    "plot.Curve",
    "plot.Interval",
    "remote.RemoteTable",
    "remote.Sample",
    "remote.apex.Actors",
    "remote.links.Address",
    "remote.links.Link",
    "remote.links.Parts",
    "remote.links.Served",
    "replay.Index",
    "replay.IndexState",
    "replay.MakeSampler",
    "replay.NStep",
    "replay.ReplayState",
    "replay.Sampler",
    "replay.Span",
    "replay.Store",
    "replay.StoreState",
    "tabular.Hyperparameters",
    "tabular.Numerics",
    "tabular.Order",
    "tabular.Program",
    "train.ActorProgress",
    "train.RunResult",
    "train.PipelineResult",
    "train.FusedResult",
    "train.TrainState",
]

# They take nothing, or a single flag, or arrays of any shape and number.
TAKE_NOTHING_WRONG = [
    "agents.losses.squared",
    "cli.main",
    "compose.available",
    "envs.list_environments",
    "io.Console",
    "pim.upmem.held",
    "pim.upmem.recording",
    "pim.upmem.release",
    "pim.upmem.typed_errors",
    "pim.upmem.why_absent",
    "pim_emu.available_machines",
    "pim_emu.cost.load_calibration",
    "pim_emu.sdk_path",
    "replay.uniform",
    "tabular.fp32",
]

# Refused in the tests of their own folder.
ELSEWHERE = {
    "am.any_match": "tests/am/test_search.py",
    "am.any_radius": "tests/am/test_search.py",
    "am.best_match": "tests/am/test_search.py",
    "am.count": "tests/am/test_lines.py",
    "am.count_packed": "tests/am/test_lines.py",
    "am.decode": "tests/am/test_keys.py",
    "am.draw": "tests/am/test_lines.py",
    "am.draw_by_rejection": "tests/am/test_rejection.py",
    "am.encode": "tests/am/test_keys.py",
    "am.exact": "tests/am/test_search.py",
    "am.key_dtype": "tests/am/test_keys.py",
    "am.low_mask": "tests/am/test_search.py",
    "am.match": "tests/am/test_search.py",
    "am.nearest": "tests/am/test_search.py",
    "am.nth": "tests/am/test_lines.py",
    "am.pack": "tests/am/test_lines.py",
    "am.prefix": "tests/am/test_search.py",
    "am.radius": "tests/am/test_search.py",
    "am.search_packed": "tests/am/test_pallas.py",
    "am.unpack": "tests/am/test_lines.py",
    "io.TensorBoard": "tests/io/test_loggers.py",
    "io.WeightsAndBiases": "tests/io/test_loggers.py",
    "envs.build_mdp": "tests/envs/test_registry.py",
    "envs.register": "tests/envs/test_registry.py",
    "pim.cpu_backend": "tests/pim/test_backends.py",
    "pim_emu.DpuSet": "tests/pim_emu/test_python_input.py",
    "pim_emu.build": "tests/pim_emu/test_python_input.py",
    "pim_emu.configure": "tests/pim_emu/test_python_input.py",
    "pim_emu.run": "tests/pim_emu/test_python_input.py",
    "plot.draw_comparison": "tests/report/test_report_page.py",
    "plot.draw_latency": "tests/plot/test_latency.py",
    "remote.ReplayServerProcess": "tests/remote/test_client.py",
    "remote.apex.RayActors": "tests/remote/test_ray.py",
    "remote.links.lane": "tests/remote/test_port.py",
    "testing.assert_inplace": "tests/test_testing.py",
    "testing.check_agent": "tests/agents/test_agent_contract.py",
    "testing.check_device": "tests/compose/test_device_check.py",
    "testing.check_environment": "tests/envs/test_wrappers.py",
    "testing.check_link": "tests/remote/test_link_check.py",
    "testing.check_sampler": "tests/replay/test_sampler_check.py",
}


def packages():
    """Names of the packages that say what is public, those of accel_rl without its name."""
    for folder, prefix in (("src/accel_rl", ""), ("pim_emu", "pim_emu")):
        for file in sorted((ROOT / folder).rglob("__init__.py")):
            inner = ".".join(file.parent.relative_to(ROOT / folder).parts)
            if "__all__" in file.read_text() and (prefix or inner):
                yield ".".join(part for part in (prefix, inner) if part)


def load(package):
    inside = package.split(".")[0] == "pim_emu"
    return importlib.import_module(package if inside else f"accel_rl.{package}")


def public():
    """{name: what it is} of what can be called and is no exception; each object once."""
    found = {}
    for package in packages():
        module = load(package)
        for name in module.__all__:
            value = getattr(module, name)
            error = inspect.isclass(value) and issubclass(value, BaseException)
            if callable(value) and not error:
                found[f"{package}.{name}"] = value
    return found


def test_every_public_callable_is_accounted_for():
    found = public()
    named = {name for table in TABLES for name in table}
    named |= {*MADE_BY_THE_LIBRARY, *TAKE_NOTHING_WRONG, *ELSEWHERE}
    assert named <= set(found), f"no longer public: {sorted(named - set(found))}"
    known = [found[name] for name in named]
    missing = [
        name
        for name, value in found.items()
        if name not in named and not any(value is each for each in known)
    ]
    assert not missing, f"add rows of bad input, or a reason: {missing}"
    assert len(found) > 250


@pytest.mark.parametrize(("name", "path"), ELSEWHERE.items())
def test_what_is_tested_elsewhere_is(name, path):
    tree = ast.parse((ROOT / path).read_text())
    names = {getattr(node, "attr", getattr(node, "id", None)) for node in ast.walk(tree)}
    assert {name.split(".")[-1], "raises"} <= names, f"{path} refuses nothing of {name}"
