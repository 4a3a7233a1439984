"""The benchmark of replay measures what it says: systems agree, and claims need a rival."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import replay as benchmark
import replay_calls
import replay_cases as cases
import replay_loops as loops
import replay_plot
import rivals
from replay_agreement import check_agreement, find_fault
from replay_calls import Compiled, Draws, system_of
from replay_memories import ALPHA, AUTO, DOCUMENTED, REMEDY, TREE, UNIFORM, Problem, make_memories

CAPACITY, BATCH = 1024, 8

ELSEWHERE = """
import json, sys
import numpy as np

print(json.dumps({"torchrl": "0"}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "fill" in request:
        held, alpha = dict(np.load(request["fill"])), request["alpha"]
        answer = {"filled": request["batch_size"]}
    elif "draws" in request:
        odds = held["priorities"].astype(float) ** alpha
        odds /= odds.sum()
        slots = np.random.default_rng(0).choice(len(odds), request["draws"], p=odds)
        answer = {"indices": slots, "rewards": held["reward"][slots], "weights": 1 / odds[slots]}
        answer = {name: leaf.tolist() for name, leaf in answer.items()}
    else:
        calls = len(request["calls"])
        answer = {"cpu": 1.0 * calls, "wall": 3.0 * calls}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(autouse=True)
def promotion_as_rivals_want_it():
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def problem():
    return Problem(CAPACITY)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(common, "SAMPLE_SECONDS", 0.0)
    return cases.Run(common.Report(("jax",)), rounds=3, steps=4)


def exact(problem):
    weights = problem.priorities.astype(np.float64) ** ALPHA
    return weights / weights.sum()


def right_draws(problem, num=20_000, temper=1.0):
    """Draws by the problem's probabilities, or by a power of them, that claim the former."""
    odds = exact(problem)
    tempered = odds**temper / (odds**temper).sum()
    slots = np.random.default_rng(3).choice(CAPACITY, num, p=tempered)
    return Draws(slots, problem.items["reward"][slots], odds[slots], exact=True)


def compiled(problem, name):
    return Compiled(name, make_memories([name], problem, BATCH)[name], problem, BATCH)


@pytest.mark.slow  # draws often from every memory
def test_the_library_draws_what_it_must(problem):
    systems = {name: compiled(problem, name) for name in (AUTO, TREE)}
    check_agreement(problem, systems)
    assert problem.agreed >= systems.keys()


@pytest.mark.parametrize("name", [DOCUMENTED, REMEDY])
def test_flashbax_draws_the_same(problem, name):
    require("rivals")
    check_agreement(problem, {name: compiled(problem, name)})


@pytest.mark.parametrize("name", ["cpprb", "torchrl"])
def test_rivals_called_from_python_draw_the_same(problem, name):
    with replay_calls.rivals(rivals.interpreter("--rivals")) as (makers, _):
        made = replay_calls.make_rivals(
            {each: make for each, make in makers.items() if each == name}, problem, BATCH
        )
        if not made:
            pytest.skip(f"{name} is absent: the extra benchmark brings cpprb, make rivals torchrl")
        check_agreement(problem, made)
        timed = common.interleave({name: system_of(made[name], "sample", "update")}, 2)[name]
    assert (timed.cpu > 0).all()
    assert (timed.wall > 0).all()


def test_a_rival_elsewhere_is_timed_there(problem, tmp_path, monkeypatch):
    """A script in torchrl's place, which holds what it is given and times by a clock of its own."""
    script = tmp_path / "rival.py"
    script.write_text(ELSEWHERE)
    monkeypatch.setattr(replay_calls, "SCRIPT", script)
    with replay_calls.rivals(sys.executable) as (makers, versions):
        assert versions == {"torchrl": "0"}
        makers.pop("cpprb")
        made = replay_calls.make_rivals(makers, problem, BATCH)
        check_agreement(problem, made)
        timings = common.interleave({"both": system_of(made["torchrl"], "sample", "update")}, 3)
    assert timings["both"].cpu.tolist() == [2.0] * 3
    assert timings["both"].wall.tolist() == [6.0] * 3
    problem.agreed.remove("torchrl")


@pytest.mark.parametrize("python", [None, "/no/such/python", "/bin/true"])
def test_without_its_interpreter_torchrl_is_left_out(python, capsys):
    with replay_calls.rivals(python) as (makers, versions):
        assert set(makers) == {"cpprb"}
        assert versions == {}
    warned = capsys.readouterr().err
    assert "torchrl is left out" in warned
    assert "make rivals" in warned


def test_right_draws_pass(problem):
    assert find_fault(right_draws(problem), exact(problem), problem) is None


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (lambda draws: draws._replace(rewards=draws.rewards + 1), "items"),
        (lambda draws: draws._replace(odds=draws.odds * 1.01), "probabilities"),
        (lambda draws: draws._replace(odds=draws.odds**1.1, exact=False), "probabilities"),
    ],
)
def test_what_is_wrong_with_draws_is_found(problem, wrong, fault):
    assert fault in find_fault(wrong(right_draws(problem)), exact(problem), problem)


def test_draws_by_another_exponent_are_found(problem):
    draws = right_draws(problem, temper=0.9)
    assert "standard errors" in find_fault(draws, exact(problem), problem)


def test_a_system_that_draws_otherwise_is_refused(problem):
    uniform = compiled(problem, UNIFORM)
    with pytest.raises(RuntimeError, match="other does not draw what the others draw"):
        check_agreement(problem, {"other": uniform})


@pytest.mark.slow  # runs every case
def test_every_case_runs_and_is_recorded(problem, run, tmp_path, monkeypatch):
    for names in ("PROPORTIONAL", "FLOOR", "SAMPLED", "CALLED"):
        monkeypatch.setattr(cases, names, (AUTO,))
    cases.steps(run, problem, BATCH)
    cases.learner_steps(run, problem, BATCH)
    cases.seeds_steps(run, problem, BATCH, 2)
    cases.sampling(run, problem, BATCH)
    cases.calls(run, problem, BATCH)
    measured = {
        (record.case, record.system): record.value
        for record in run.report.records
        if record.metric.startswith(cases.LEAST)
    }
    assert all(value >= 0 for value in measured.values())
    for case in (
        cases.step_case(CAPACITY, BATCH),
        cases.learner_case(CAPACITY, BATCH),
        cases.seeds_case(CAPACITY, BATCH, 2),
        cases.sampling_case(CAPACITY, BATCH),
        cases.call_case("sample", CAPACITY, BATCH),
        cases.call_case("update", CAPACITY, BATCH),
    ):
        assert (case, AUTO) in measured
    replay_plot.plot(run.report, tmp_path / "steps.png", [CAPACITY, 2 * CAPACITY], BATCH)
    assert (tmp_path / "steps.png").stat().st_size > 0


def test_claims_without_rivals_are_null(run):
    benchmark.claims(run.report)
    assert len(run.report.claims) > 10
    assert all(claim.value is None and claim.holds is None for claim in run.report.claims)


def timed(run, seconds):
    """Records of systems that take so many seconds in each of three rounds."""
    timings = {
        name: common.Timing(np.float64(values), np.float64(values))
        for name, values in seconds.items()
    }
    cases.record_times(run.report, "case", "step", timings)


@pytest.mark.parametrize(("bound", "holds"), [(1.9, True), (2.1, False)])
def test_a_claim_compares_least_times(run, bound, holds):
    timed(run, {AUTO: [3, 2, 9], DOCUMENTED: [4, 8, 8]})
    benchmark.faster(run.report, "fast enough", bound, "case", DOCUMENTED)
    places = {
        record.system: record.place
        for record in run.report.records
        if record.metric.startswith(cases.LEAST)
    }
    expected = common.Claim(
        "fast enough", 2.0, bound, holds, ours=places[AUTO], rival=places[DOCUMENTED]
    )
    assert run.report.claims == [expected]


def test_what_is_absent_is_left_out_with_a_warning(problem, monkeypatch, capsys):
    def absent(problem, batch_size):
        raise ImportError("no such module")

    assert replay_calls.make_rivals({"absent": absent}, problem, BATCH) == {}
    monkeypatch.setitem(sys.modules, "flashbax", None)
    assert make_memories([DOCUMENTED], problem, BATCH) == {}
    warned = capsys.readouterr().err
    assert "absent is left out" in warned
    assert DOCUMENTED in warned


def test_whole_array_copies_in_loops_are_counted():
    text = (
        "body {\n  %a = f32[2,600]{1,0} copy(%b)\n}\n\nENTRY {\n  %c = f32[2,600]{1,0} copy(%d)\n}"
    )
    assert loops.copies(text, 1200) == 1
    assert loops.copies(text, 1201) == 0


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="is about XLA's CPU backend")
def test_slices_that_are_written_over_whole_arrays_are_counted():
    def body(table, value):
        head = jax.lax.slice_in_dim(table, 0, 4)
        return jax.lax.dynamic_update_slice(table, jnp.where(value > 0, head, value), (0, 0)), value

    loop = loops.Loop(body, jnp.zeros((5000, 4)), jnp.arange(10.0))
    assert loops.rewrites(loop._scan.as_text(), 20_000) == 1
