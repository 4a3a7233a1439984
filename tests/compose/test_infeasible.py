"""What the searches say where nothing is allowed."""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import problem, whole

from accel_rl.compose.assign import (
    Constraint,
    Infeasible,
    Space,
    assign,
    branch_and_bound,
    exhaustive,
)


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
