"""`accel-rl compose`: a plan's folder, a run of it, and what is refused."""

import json
import os
import signal

import pytest
from commands import as_json, invoke, succeed

from accel_rl import compose, experiment
from accel_rl.cli.composing import planning, running
from accel_rl.compose import Cost, Costs, cache
from accel_rl.compose import mapping as mappings
from accel_rl.compose.candidates import alike
from accel_rl.compose.costs import Key
from accel_rl.compose.devices import find
from accel_rl.compose.mapping import read_toml
from accel_rl.compose.workload import STEPS
from accel_rl.experiment import configuration

CONFIG = """
environment.name = "CartPole-v1"
agent.name = "dqn"
agent.hidden = [8]
replay.batch_size = 8
replay.capacity = 64
schedule.num_envs = 1
schedule.learning_starts = 16
compose.devices = ["cpu:0"]
compose.power."cpu:0" = [5, 20]
"""


EFFICIENT = "compose.objective=efficiency"
EXECUTORS = ("deterministic", "asynchronous")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A configuration whose costs are in the cache, so that nothing is measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    wanted = experiment.load(path, command="compose")
    known = Costs(alike(find(("cpu:0",))), {}, {}, {}, 1.2e-5, 2.3e-5, group=1)
    known.trials.update({Key((executor,), ("cpu:0",) * 4): 1.25 for executor in EXECUTORS})
    known.trials[Key(("fused",), ("cpu:0",) * 4)] = 1.0
    monkeypatch.setattr(compose, "confirm", lambda plan: (plan, []))  # runs nothing
    place = ("cpu:0",)
    known.fused_iterations[Key(("fused",), place * 2)] = Cost(1e-4, 1e-6, "measured")
    counts = dict(zip(STEPS, (2, 3, 3, 2, 1, 1), strict=True))
    for one in STEPS:
        known.steps[Key((one,), place * counts[one])] = Cost(3e-4, 1e-5, "measured")
        for other in STEPS:
            factor = 1.4 if (one, other) == ("collect", "sample") else 1.3
            known.slowdowns[Key((one, other), place * (counts[one] + counts[other]))] = factor
    cache.save(known, wanted)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """Without pictures, for which steps are compiled and counted."""
    monkeypatch.setattr(planning, "draw", lambda *_: [])


@pytest.mark.long  # trains and draws
def test_plan_run_report(config, tmp_path):
    out = tmp_path / "composed"
    found = as_json("compose", "plan", config, "--out", out)
    names = [each["name"] for each in found["plan"]["estimates"]]
    assert names[0] == "fused on cpu:0"
    assert len(names) == 3
    assert found["run"] is None
    assert {os.path.basename(path) for path in found["pictures"]} == {"pareto.png", "roofline.png"}
    assert read_toml(out / "mapping.toml")["executor"] == "fused"

    # A mapping may be edited.
    text = (out / "mapping.toml").read_text()
    (out / "mapping.toml").write_text(text.replace('"fused"', '"deterministic"'))
    ran = as_json("compose", "run", out, "--steps", 120)["run"]
    assert ran["name"] == "deterministic cpu:0 > cpu:0 > cpu:0"
    assert ran["predicted_iteration_seconds"] > 3e-4
    assert ran["measured_iteration_seconds"] > 0
    assert not ran["simulated"]
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["steps"] == 120
    assert "policy_age_max" in rows[-1]
    assert (out / "timeline_measured.png").stat().st_size > 5_000

    shown = succeed("compose", "report", out)
    assert "iteration, predicted" in shown
    assert "fused on cpu:0" in shown
    slowest = found["plan"]["estimates"][-1]
    seconds = [each["predicted_iteration_seconds"] for each in found["plan"]["estimates"]]
    (line,) = [each for each in shown.splitlines() if f" {slowest['name']} " in each]
    assert f" {seconds[-1] / min(seconds):.3g} " in line
    assert as_json("compose", "report", out)["run"] == ran


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_keeps_what_it_measured(config, tmp_path, monkeypatch):
    out, run = tmp_path / "composed", running.run
    succeed("compose", "plan", config, "--out", out)

    def interrupted(*words, progress, **more):
        def at(description, done, total):
            if done >= 120:
                signal.raise_signal(signal.SIGINT)

        return run(*words, progress=at, **more)

    monkeypatch.setattr(running, "run", interrupted)
    for executor, ended in (("fused", True), ("deterministic", False)):
        text = (out / "mapping.toml").read_text()
        (out / "mapping.toml").write_text(text.replace('"fused"', f'"{executor}"'))
        stopped = invoke("compose", "run", out, "--steps", "200")
        assert stopped.exit_code == 130
        assert "accel-rl: interrupted" in stopped.stderr
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        assert 120 <= rows[-1]["steps"] < 200
        assert (out / "measured.json").exists() == ended


@pytest.mark.usefixtures("undrawn")
def test_settings_in_place_of_the_files(config, tmp_path):
    out = tmp_path / "other"
    as_json(
        "compose",
        "plan",
        config,
        *("compose.objective=efficiency", "compose.weight=0.25"),
        "--out",
        out,
    )
    table = json.loads((out / "config.json").read_text())["compose"]
    assert (table["objective"], table["weight"]) == ("efficiency", 0.25)


@pytest.mark.usefixtures("undrawn")
def test_a_plan_is_not_written_over_unasked(config, tmp_path):
    out = tmp_path / "composed"
    succeed("compose", "plan", config, "--out", out)
    before = (out / "plan.json").read_bytes()
    result = invoke("compose", "plan", config, "--out", out)
    assert result.exit_code == 2
    assert "--overwrite replaces what is in it" in result.output
    assert (out / "plan.json").read_bytes() == before
    succeed("compose", "plan", config, "--out", out, "--overwrite")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no/config.toml"], "no/config.toml: No such file"),
        (["{config}", "batch=3"], "no setting is named 'batch'"),
        (["{config}", "agent.name=ppo"], "the agent is named by the command"),
        (
            ["{config}", "replay.batch_size=big"],
            "replay.batch_size must be a valid",
        ),
        (["{config}", "environment.name=NoSuch-v0"], "NoSuch-v0"),
        (["{config}", 'compose.devices=["tpu:0"]'], "devices must be of cpu:0"),
        (["{config}", 'compose.devices=["native"]'], "no device offers actor"),
        (["{config}", "agent.depth=3"], "depth"),
        (["{config}", "replay.batch_size.x=3"], "replay.batch_size must be"),
        (
            ["{config}", "compose.objective=efficiency", 'compose.devices=["cpu:0", "cpu:1"]'],
            "must give watts of cpu:1",
        ),
    ],
)
def test_bad_configurations_are_refused(config, tmp_path, words, message):
    out = tmp_path / "composed"
    words = [word.replace("{config}", str(config)) for word in words]
    result = invoke("compose", "plan", *words, "--out", out)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert not out.exists()


@pytest.mark.usefixtures("undrawn")
def test_bad_folders_are_refused(config, tmp_path):
    result = invoke("compose", "run", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "config.json: No such file" in result.output
    out = tmp_path / "composed"
    succeed("compose", "plan", config, "--out", out)
    table = read_toml(out / "mapping.toml")
    for changes, message in (
        ({"actor": "gpu:5"}, "actor must be one of cpu:0, got 'gpu:5'"),
        ({"executor": "magic"}, "executor must be one of"),
        ({"pilot": "cpu:0"}, "mapping.pilot Unexpected keyword argument"),
    ):
        lines = [f'{name} = "{value}"' for name, value in {**table, **changes}.items()]
        (out / "mapping.toml").write_text("\n".join(lines))
        result = invoke("compose", "run", out, "--steps", 50)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
    (out / "mapping.toml").write_text(mappings.toml_text(table))
    (out / "plan.json").write_text("{")
    for command in ("report", "run"):
        result = invoke("compose", command, out)
        assert result.exit_code == 2
        assert "plan.json is not a JSON file" in " ".join(result.output.split())
    assert not (out / "metrics.jsonl").exists()  # said before it trains


@pytest.mark.usefixtures("undrawn")
def test_a_plan_holds_what_predictions_rest_on(config, tmp_path):
    out = tmp_path / "composed"
    plan = as_json("compose", "plan", config, "--out", out)["plan"]
    assert (plan["handoff_seconds"], plan["bookkeeping_seconds"]) == (1.2e-5, 2.3e-5)
    assert [each["stretch"] for each in plan["estimates"]].count(1.25) == 2
    assert plan["stretch"] == {"fused": 1.0, "deterministic": 1.25, "asynchronous": 1.25}
    assert len(plan["slowdowns"]) == len(STEPS) * (len(STEPS) - 1)
    found = {(each["step"], each["beside"]): each for each in plan["slowdowns"]}
    assert found["learn", "update"]["factor"] == 1.3
    assert found["learn", "update"]["devices"] == ["cpu:0"] * 3
    shown = " ".join(succeed("compose", "report", out).split())
    assert "hand-off to a worker that waits 12 us" in shown
    assert "bookkeeping around a step 23 us" in shown
    assert "stretch of deterministic, median of trials 1.25" in shown
    assert "updates in a call of sample and of learn 1" in shown
    assert "largest slowdown, collect beside sample 1.4" in shown


ESTIMATE = {"mapping": {}, "name": "fused on cpu:0", "costs": "measured"}
ESTIMATE |= {"predicted_iteration_seconds": 1e-3, "predicted_samples_per_second": 8e3}
ESTIMATE |= {"modelled_samples_per_joule": None, "stretch": 1.0}
PLAN = {"objective": "throughput", "estimates": [ESTIMATE], "refused": {}, "slowdowns": []}
PLAN |= {"handoff_seconds": 0.0, "bookkeeping_seconds": 0.0, "stretch": {}, "links": {}}
PLAN |= {"group": None, "power": {}}
RUN = {"name": "fused on cpu:0", "steps": 20, "ended": "steps", "simulated": False}
RUN |= dict.fromkeys(("predicted_iteration_seconds", "measured_iteration_seconds"), 1e-3)
RUN |= {"measured_joules": [], "joules_unreadable": [], "episode_return": None}
SLOWDOWN = {"step": "learn", "beside": "sample", "devices": []}


def without(table, name):
    return {key: value for key, value in table.items() if key != name}


@pytest.mark.parametrize(
    ("plan", "run", "message"),
    [
        *((without(PLAN, name), RUN, f"plan.json: {name} is missing") for name in PLAN),
        *(
            (
                PLAN | {"estimates": [ESTIMATE, without(ESTIMATE, name)]},
                RUN,
                f"plan.json: estimates.1.{name} is missing",
            )
            for name in ESTIMATE
        ),
        *((PLAN, without(RUN, name), f"measured.json: {name} is missing") for name in RUN),
        (PLAN | {"slowdowns": [SLOWDOWN]}, RUN, "plan.json: slowdowns.0.factor is missing"),
        (
            PLAN,
            RUN | {"joules_unreadable": [{"boundary": "CPU"}]},
            "measured.json: joules_unreadable.0.reason is missing",
        ),
        (PLAN | {"estimates": [3]}, RUN, "plan.json: estimates.0 must be an object, got 3"),
        (PLAN | {"refused": []}, RUN, "plan.json: refused must be an object, got []"),
        (
            PLAN | {"refused": {"learner": 3}},
            RUN,
            "plan.json: refused.learner must be an object, got 3",
        ),
        (
            PLAN | {"stretch": {"deterministic": "x"}},
            RUN,
            'plan.json: stretch.deterministic must be a valid number, got "x"',
        ),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_files_that_lack_something_are_refused(tmp_path, plan, run, message, options):
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "measured.json").write_text(json.dumps(run))
    result = invoke("compose", "report", tmp_path, *options)
    assert result.exit_code == 2
    assert f"{tmp_path}/{message}" in result.output


def test_files_that_hold_it_all_are_shown(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "measured.json").write_text(json.dumps(RUN))
    assert "iteration, measured" in succeed("compose", "report", tmp_path)


def test_what_is_modelled_runs_only_when_asked(config, tmp_path):
    devices = {"compose.devices": ["cpu:0", "fpga"]}
    wanted = experiment.load(config, devices, command="compose")
    out = tmp_path / "composed"
    out.mkdir()
    tables = configuration.to_mapping(wanted.configuration)
    (out / "config.json").write_text(json.dumps(tables))
    table = {"executor": "deterministic", "actor": "cpu:0", "replay_manager": "cpu:0"}
    table |= {"data_storage": "cpu:0", "learner": "fpga"}
    (out / "mapping.toml").write_text("\n".join(f'{k} = "{v}"' for k, v in table.items()))
    (out / "plan.json").write_text(json.dumps(PLAN))
    result = invoke("compose", "run", out, "--steps", 60)
    assert result.exit_code == 2
    assert "fpga is modelled" in " ".join(result.output.split())
    ran = as_json("compose", "run", out, "--steps", 60, "--simulate")["run"]
    assert ran["simulated"]
    assert ran["measured_iteration_seconds"] is None
    of_it = {name: (out / name).read_bytes() for name in ("measured.json", "metrics.jsonl")}
    assert invoke("compose", "run", out, "--steps", 60).exit_code == 2
    assert {name: (out / name).read_bytes() for name in of_it} == of_it
