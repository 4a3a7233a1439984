"""The two searches against each other, on random tables and on PEARL's."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import outcome, problem, whole

from accel_rl.compose.assign import Space, assign, branch_and_bound, exhaustive
from accel_rl.compose.pearl import (
    Link,
    Row,
    TaskSeconds,
    Workload,
    modelled_iteration_seconds,
    pearl_mapping,
)

TABLES = 1000


def test_branch_and_bound_finds_what_exhaustion_finds():
    feasible, evaluated, ties = 0, [0, 0], 0
    for seed in range(TABLES):
        space, evaluate, bound = problem(seed)
        one = outcome(exhaustive, space, evaluate)
        two = outcome(branch_and_bound, space, evaluate, bound)
        if isinstance(one, str):
            assert one == two
            continue
        assert (one.assignment, one.cost) == (two.assignment, two.cost), seed
        assert two.evaluated <= one.evaluated
        feasible += 1
        evaluated[0] += one.evaluated
        evaluated[1] += two.evaluated
        costs = [evaluate(a) for a in whole(space) if space.allows(a)]
        assert one.evaluated == len(costs)
        ties += costs.count(one.cost) > 1
    assert feasible > 0.7 * TABLES
    assert TABLES - feasible > 20  # the explanations are compared as well
    assert ties > 0.3 * TABLES
    assert evaluated[1] < 0.2 * evaluated[0]


def test_both_searches_find_the_mapping_of_pearl():
    rng = random.Random(0)
    roles, names = ("replay_manager", "learner"), ("CPU", "GPU1", "GPU2", "FPGA")
    links = {(one, two): Link(1e-3, 1e9) for one in names for two in names}
    for _ in range(100):
        table = {
            name: Row(
                rng.choice(["cpu", "gpu", "fpga"]), TaskSeconds(*rng.choices(range(1, 4), k=4))
            )
            for name in names
        }

        def evaluate(a, table=table):
            return modelled_iteration_seconds(table, a["replay_manager"], a["learner"])

        def bound(partial, table=table):  # co-located times are never shorter
            manager = table[partial["replay_manager"]].alone
            learn = table[partial["learner"]].alone.learn if "learner" in partial else 0
            return manager.sample + max(manager.update + manager.insert, learn)

        expected = pearl_mapping(table, links, Workload(512, 256, 4, 2))
        space = Space(roles, dict.fromkeys(roles, names))
        for found in (exhaustive(space, evaluate), branch_and_bound(space, evaluate, bound)):
            assert found.cost == expected.modelled_iteration_seconds
            assert tuple(found.assignment.values()) == (expected.replay_manager, expected.learner)


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.data())
def test_bounds_never_exceed_a_completion(seed, data):
    space, evaluate, bound = problem(seed)
    decided = space.roles[: data.draw(st.integers(0, len(space.roles)))]
    if not all(space.options.values()):
        return
    partial = {role: data.draw(st.sampled_from(space.options[role])) for role in decided}
    for completion in whole(space):
        if partial.items() <= completion.items():
            assert bound(partial) <= evaluate(completion)


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_constraints_forbid_only_prefixes_without_completion(seed):
    space, _, _ = problem(seed)
    for assignment in whole(space):
        if space.allows(assignment):
            for end in range(len(space.roles)):
                assert space.allows({role: assignment[role] for role in space.roles[:end]})


@settings(max_examples=100)
@given(st.integers(0, 10**9))
def test_a_bound_that_says_nothing_changes_nothing(seed):
    space, evaluate, _ = problem(seed)
    one = outcome(exhaustive, space, evaluate)
    two = outcome(branch_and_bound, space, evaluate, lambda partial: -math.inf)
    if not isinstance(one, str):
        one, two = (one.assignment, one.cost), (two.assignment, two.cost)
    assert one == two


def test_of_equals_the_first_wins_even_where_the_bound_leads_elsewhere():
    space = Space(("r", "q"), {"r": ("a", "b"), "q": ("x", "y")})

    def bound(partial):  # right, and in favour of the last one
        return 1.0 if partial == {"r": "b", "q": "y"} else {"a": 0.9, "b": 0.1}[partial["r"]]

    for found in (
        exhaustive(space, lambda a: 1.0),
        branch_and_bound(space, lambda a: 1.0, bound),
    ):
        assert found.assignment == {"r": "a", "q": "x"}


def test_a_small_space_is_exhausted_and_a_large_one_is_not():
    devices = tuple(f"d{i}" for i in range(10))
    roles = tuple(f"r{i}" for i in range(20))
    space = Space(roles, dict.fromkeys(roles, devices))
    assert space.size == 10**20

    def cost(partial):
        return float(sum(int(device[1:]) for device in partial.values()))

    found = assign(space, cost, cost)
    assert (found.method, found.cost, found.evaluated) == ("branch_and_bound", 0.0, 1)
    small = Space(roles[:2], dict.fromkeys(roles[:2], devices))
    assert assign(small, cost, cost).method == "exhaustive"
    assert assign(small, cost, cost, limit=100).evaluated == 100
    assert assign(small, cost, cost, limit=99).method == "branch_and_bound"


def test_infinite_costs_are_costs():
    space = Space(("r",), {"r": ("a", "b")})
    for found in (
        exhaustive(space, lambda a: math.inf),
        branch_and_bound(space, lambda a: math.inf, lambda a: 0.0),
    ):
        assert (found.assignment, found.cost) == ({"r": "a"}, math.inf)


def test_what_is_wrong_is_named():
    for roles in ((), ("r", "r")):
        with pytest.raises(ValueError, match="roles must be distinct and at least one"):
            Space(roles, dict.fromkeys(roles, ("a",)))
    with pytest.raises(ValueError, match="options must name the roles"):
        Space(("r",), {"q": ("a",)})
    with pytest.raises(ValueError, match="refused none besides"):
        Space(("r",), {"r": ("a",)}, {"q": {}})
    with pytest.raises(ValueError, match=r"options\['r'\] must be distinct and not refused"):
        Space(("r",), {"r": ("a", "a")})
    with pytest.raises(ValueError, match=r"options\['r'\] must be distinct and not refused"):
        Space(("r",), {"r": ("a",)}, {"r": {"a": "busy"}})
    space = Space(("r",), {"r": ("a",)})
    with pytest.raises(
        ValueError, match=r"evaluate must return a number, got nan for \{'r': 'a'\}"
    ):
        exhaustive(space, lambda a: math.nan)
    with pytest.raises(ValueError, match="bound must return a number"):
        branch_and_bound(space, lambda a: 0.0, lambda a: math.nan)
