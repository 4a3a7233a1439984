"""The two searches against each other on random tables, and what they say where nothing is left."""

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_rl.compose.assign import (
    Constraint,
    Infeasible,
    Space,
    assign,
    branch_and_bound,
    exhaustive,
)
from accel_rl.compose.objectives import efficiency, pareto, throughput, weighted
from accel_rl.compose.pearl import (
    Link,
    Row,
    TaskSeconds,
    Workload,
    modelled_iteration_seconds,
    pearl_mapping,
)

TABLES = 1000


def random_space(rng):
    """Two to five roles over up to five devices, some of which refuse, with some constraints."""
    devices = [f"d{i}" for i in range(rng.randint(1, 5))]
    rng.shuffle(devices)
    roles = tuple(f"r{i}" for i in range(rng.randint(2, 5)))
    refusing = rng.choice([0.0, 0.1, 0.3])
    options, refused = {}, {}
    for role in roles:
        refused[role] = {d: f"no {role} on it" for d in devices if rng.random() < refusing}
        options[role] = tuple(d for d in devices if d not in refused[role])
    constraints = [
        random_constraint(rng, roles, devices, index)
        for index in range(rng.choice([0, 0, 1, 2, 3]))
    ]
    return Space(roles, options, refused, tuple(constraints))


def random_constraint(rng, roles, devices, index):
    kind = rng.choice(["apart", "together", "at most", "forbidden"])
    one, two = rng.sample(roles, 2)
    device, most = rng.choice(devices), rng.randint(1, 2)

    def allows(partial):
        if kind == "at most":
            return list(partial.values()).count(device) <= most
        if kind == "forbidden":
            return partial.get(one) != device
        if one not in partial or two not in partial:
            return True
        return (partial[one] == partial[two]) == (kind == "together")

    return Constraint(f"c{index}", f"{kind} {one} {two} {device}", allows)


def separable_and_pairwise(rng, space):
    """Costs of each role, plus the longest over pairs of roles; a bound of the known terms."""
    coarse = rng.random() < 0.7  # costs of few values: many ties

    def draw():
        return float(rng.randint(0, 2)) if coarse else rng.random()

    alone = {(r, d): draw() for r in space.roles for d in space.options[r]}
    pairs = {
        (r, d, q, e): draw()
        for r, q in itertools.combinations(space.roles, 2)
        for d in space.options[r]
        for e in space.options[q]
    }
    cheapest = {r: min((alone[r, d] for d in space.options[r]), default=0.0) for r in space.roles}

    def cost(partial):
        total = 0.0
        for role in space.roles:
            total += alone[role, partial[role]] if role in partial else cheapest[role]
        known = [role for role in space.roles if role in partial]
        longest = 0.0
        for r, q in itertools.combinations(known, 2):
            longest = max(longest, pairs[r, partial[r], q, partial[q]])
        return total + longest

    return cost, cost


def pearl_generalised(rng, space):
    """One task before the rest, which run side by side; tasks of one device follow each other.

    With roles (sample, update and insert, learn) this is PEARL's iteration.
    """
    times = {(r, d): float(rng.randint(1, 4)) for r in space.roles for d in space.options[r]}
    serial = {d: rng.random() < 0.5 for d in {d for r in space.roles for d in space.options[r]}}
    first, *rest = space.roles

    def cost(partial):
        sides = {}
        for role in rest:
            if role in partial:
                device = partial[role]
                lane = device if serial[device] else (device, role)
                sides[lane] = sides.get(lane, 0.0) + times[role, device]
        lead = times[first, partial[first]] if first in partial else 0.0
        return lead + max(sides.values(), default=0.0)

    return cost, cost


COSTS = [separable_and_pairwise, pearl_generalised]


def problem(seed):
    rng = random.Random(seed)
    space = random_space(rng)
    return space, *COSTS[seed % 2](rng, space)


def outcome(search, *arguments):
    try:
        return search(*arguments)
    except Infeasible as error:
        return str(error)


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


def whole(space):
    for devices in itertools.product(*(space.options[role] for role in space.roles)):
        yield dict(zip(space.roles, devices, strict=True))


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


# What is left where nothing is


def test_a_role_that_no_device_offers_is_named_with_every_refusal():
    space = Space(
        ("learner", "actor"),
        {"learner": (), "actor": ("cpu",)},
        {"learner": {"cpu": "too little memory", "pim": "no floating point"}},
    )
    with pytest.raises(
        Infeasible,
        match=r"no device offers learner \(cpu: too little memory, pim: no floating point\)",
    ) as caught:
        exhaustive(space, lambda a: 0.0)
    assert caught.value.roles == ("learner",)
    assert caught.value.constraints == ()
    with pytest.raises(Infeasible, match="no device offers learner"):
        branch_and_bound(space, lambda a: 0.0, lambda a: 0.0)


def together(one, two):
    return lambda a: one not in a or two not in a or a[one] == a[two]


def test_the_constraint_that_leaves_nothing_is_named():
    space = Space(
        ("actor", "learner"),
        {"actor": ("cpu",), "learner": ("gpu", "cpu")},
        constraints=(
            Constraint("pinned", "the learner is on the GPU", lambda a: a.get("learner") != "cpu"),
            Constraint("fused", "both on one device", together("actor", "learner")),
            Constraint("idle", "asks for nothing", lambda a: True),
        ),
    )
    with pytest.raises(Infeasible) as caught:
        assign(space, lambda a: 0.0, lambda a: 0.0)
    assert caught.value.constraints == (("pinned",), ("fused",))
    assert str(caught.value) == (
        "the constraints allow no assignment; "
        "one would be allowed without pinned (the learner is on the GPU); "
        "one would be allowed without fused (both on one device)"
    )


def test_constraints_that_only_together_leave_something_are_named_together():
    never = [Constraint(n, f"no {n}", lambda a, n=n: n not in a.values()) for n in ("a", "b")]
    space = Space(("r", "q"), {"r": ("a",), "q": ("b",)}, constraints=tuple(never))
    with pytest.raises(Infeasible, match=r"without a \(no a\) and b \(no b\)") as caught:
        exhaustive(space, lambda a: 0.0)
    assert caught.value.constraints == (("a", "b"),)


@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_explanations_hold_and_are_smallest(seed):
    space, evaluate, _ = problem(seed)
    if any(map(space.allows, whole(space))):
        return
    with pytest.raises(Infeasible) as caught:
        exhaustive(space, evaluate)
    assert caught.value.roles == tuple(r for r in space.roles if not space.options[r])
    if caught.value.roles:
        return
    names = [constraint.name for constraint in space.constraints]
    (size,) = {len(culprits) for culprits in caught.value.constraints}
    for removed in itertools.chain(*(itertools.combinations(names, n) for n in range(size + 1))):
        kept = tuple(c for c in space.constraints if c.name not in removed)
        left = any(map(dataclasses.replace(space, constraints=kept).allows, whole(space)))
        assert left == (removed in caught.value.constraints)


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


# Objectives


@dataclasses.dataclass(frozen=True)
class Estimated:
    seconds: float
    joules: float | None
    samples: int = 1


POSITIVE = st.floats(1e-6, 1e6)
ESTIMATES = st.builds(Estimated, POSITIVE, POSITIVE, st.integers(1, 4096))


def test_objectives_as_worked_out_by_hand():
    estimate = Estimated(seconds=2.0, joules=32.0, samples=4)
    assert throughput(estimate) == 0.5
    assert efficiency(estimate) == 8.0
    assert weighted(0.5)(estimate) == pytest.approx(math.sqrt(0.5 * 8.0))
    assert weighted(0.25)(estimate) == pytest.approx(0.5**0.75 * 8.0**0.25)


@given(ESTIMATES)
def test_the_ends_of_the_weight_are_the_other_objectives(estimate):
    assert weighted(0)(estimate) == throughput(estimate)
    assert weighted(1)(estimate) == efficiency(estimate)


@given(ESTIMATES, ESTIMATES, st.floats(0, 1), POSITIVE, POSITIVE)
def test_units_change_no_order(one, two, weight, time_unit, energy_unit):
    def scaled(estimate):
        return Estimated(
            estimate.seconds * time_unit, estimate.joules * energy_unit, estimate.samples
        )

    objective = weighted(weight)
    before = objective(one) / objective(two)
    assert objective(scaled(one)) / objective(scaled(two)) == pytest.approx(before, rel=1e-9)


def test_throughput_asks_for_no_joules_and_the_others_do():
    unknown = Estimated(1.0, None)
    assert weighted(0)(unknown) == throughput(unknown) == 1.0
    for objective in (efficiency, weighted(0.5), lambda e: pareto([e])):
        with pytest.raises(ValueError, match="joules must be known"):
            objective(unknown)
    with pytest.raises(ValueError, match=r"weight must lie within 0 and 1, got 1\.5"):
        weighted(1.5)


def test_pareto_as_worked_out_by_hand():
    a, b, c, d = Estimated(3, 1), Estimated(1, 3), Estimated(2, 2), Estimated(2, 3)
    assert pareto([a, b, c, d]) == [a, b, c]
    assert pareto([d, c, b, a]) == [c, b, a]
    assert pareto([]) == []
    again = Estimated(2, 2)
    (kept,) = pareto([c, again])
    assert kept is c
    # What counts is the cost of a sample.
    assert pareto([Estimated(2, 2, 1), Estimated(3, 3, 2)]) == [Estimated(3, 3, 2)]
    assert pareto([Estimated(1, math.inf)]) == [Estimated(1, math.inf)]


@given(st.lists(st.builds(Estimated, st.integers(1, 5), st.integers(1, 5)), max_size=20))
def test_pareto_against_its_definition(estimates):
    def beats(one, two):
        no_worse = one.seconds <= two.seconds and one.joules <= two.joules
        return no_worse and (one.seconds, one.joules) != (two.seconds, two.joules)

    expected = [
        e
        for i, e in enumerate(estimates)
        if not any(beats(other, e) for other in estimates) and e not in estimates[:i]
    ]
    found = pareto(estimates)
    assert [id(e) for e in found] == [id(e) for e in expected]


@given(st.lists(ESTIMATES, min_size=1, max_size=10), st.floats(0.01, 0.99))
def test_the_best_by_any_weight_is_on_the_front(estimates, weight):
    best = min(map(weighted(weight), estimates))
    assert min(map(weighted(weight), pareto(estimates))) == pytest.approx(best, rel=1e-12)
