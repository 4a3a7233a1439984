"""Assignment of roles to devices: exhaustive search, and branch and bound.

An assignment maps each role to one of the devices that offer it. Both searches return the cheapest
one. They break ties by the order of `itertools.product` over the roles' options: the first role
counts most, an earlier option comes first. So they agree exactly. Exhaustive search is PEARL's (its
artifact's `SysCon.py`); branch and bound is for spaces that it cannot enumerate.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

Assignment = Mapping[str, str]
"""Role -> device; partial while roles are missing."""

Cost = Callable[[Assignment], float]


@dataclasses.dataclass(frozen=True)
class Constraint:
    """Condition that an assignment must satisfy."""

    name: str  # short, for messages
    message: str  # requirement and reason
    allows: Callable[[Assignment], bool]  # False for a partial one only if no completion is allowed


@dataclasses.dataclass(frozen=True)
class Space:
    """Search space of assignments.

    Attributes:
      roles: in the order in which they are decided.
      options: role -> devices that offer it, in the order that breaks ties; for every role.
      refused: role -> device -> reason why it does not offer the role.
      constraints: further conditions on assignments.

    Raises:
      ValueError: if roles or a role's options repeat, or the fields' roles do not match.
    """

    roles: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if not self.roles or len(set(self.roles)) < len(self.roles):
            raise ValueError(f"roles must be distinct and at least one, got {self.roles}")
        if set(self.options) != set(self.roles) or not set(self.refused) <= set(self.roles):
            raise ValueError(
                f"options must name the roles {self.roles} and refused none besides, "
                f"got {tuple(self.options)} and {tuple(self.refused)}"
            )
        for role, devices in self.options.items():
            both = set(devices) & set(self.refused.get(role, {}))
            if both or len(set(devices)) < len(devices):
                raise ValueError(
                    f"options[{role!r}] must be distinct and not refused, got {devices}"
                )

    @property
    def size(self) -> int:
        """Number of assignments, including those that constraints forbid."""
        return math.prod(len(self.options[role]) for role in self.roles)

    def allows(self, assignment: Assignment) -> bool:
        """Return True if all constraints allow a partial or complete assignment."""
        return all(constraint.allows(assignment) for constraint in self.constraints)


class Infeasible(ValueError):
    """Error of a space without an allowed assignment; the message has the reasons.

    Attributes:
      roles: those that no device offers.
      constraints: if each role has devices, the smallest sets of constraints, by name, such that
        dropping any one of these sets would allow an assignment.
    """

    def __init__(self, space: Space) -> None:
        self.roles = tuple(role for role in space.roles if not space.options[role])
        self.constraints = () if self.roles else tuple(_culprits(space))
        super().__init__("; ".join(self._reasons(space)))

    def _reasons(self, space: Space) -> Iterator[str]:
        for role in self.roles:
            refusals = [f"{device}: {why}" for device, why in space.refused.get(role, {}).items()]
            yield f"no device offers {role} ({', '.join(refusals) or 'none was asked'})"
        messages = {constraint.name: constraint.message for constraint in space.constraints}
        if self.constraints:
            yield "the constraints allow no assignment"
        for names in self.constraints:
            asked = " and ".join(f"{name} ({messages[name]})" for name in names)
            yield f"one would be allowed without {asked}"


def _culprits(space: Space) -> list[tuple[str, ...]]:
    """Return the smallest sets of constraints without which an assignment is allowed."""
    for size in range(1, len(space.constraints) + 1):
        sets = [
            tuple(constraint.name for constraint in removed)
            for removed in itertools.combinations(space.constraints, size)
            if _completes(space, [c for c in space.constraints if c not in removed], {})
        ]
        if sets:
            return sets
    return []


def _completes(space: Space, constraints: list[Constraint], partial: dict[str, str]) -> bool:
    if not all(constraint.allows(partial) for constraint in constraints):
        return False
    if len(partial) == len(space.roles):
        return True
    role = space.roles[len(partial)]
    return any(_completes(space, constraints, {**partial, role: d}) for d in space.options[role])


@dataclasses.dataclass(frozen=True)
class Found:
    """Best assignment, and the search that found it."""

    assignment: Assignment
    cost: float
    evaluated: int  # complete assignments
    method: Literal["exhaustive", "branch_and_bound"]


def exhaustive(space: Space, evaluate: Cost) -> Found:
    """Evaluate every allowed assignment and return the best.

    Args:
      space: what to search.
      evaluate: scalar cost of a complete assignment, lower is better.

    Raises:
      Infeasible: if no assignment is allowed.
      ValueError: if a cost is not a number.
    """
    best: Assignment | None = None
    least, evaluated = math.inf, 0
    for devices in itertools.product(*(space.options[role] for role in space.roles)):
        assignment = dict(zip(space.roles, devices, strict=True))
        if not space.allows(assignment):
            continue
        cost = _number("evaluate", evaluate(assignment), assignment)
        evaluated += 1
        if best is None or cost < least:
            best, least = assignment, cost
    if best is None:
        raise Infeasible(space)
    return Found(best, least, evaluated, "exhaustive")


def branch_and_bound(space: Space, evaluate: Cost, bound: Cost) -> Found:
    """Decide role after role, lowest bound first, and prune what cannot become the best.

    Args:
      space: what to search.
      evaluate: as for `exhaustive`.
      bound: lower bound for a partial assignment: never above the cost of any allowed completion,
        as floats. Sums and maxima of terms no greater, in the order of `evaluate`, keep this under
        rounding. A bound of -inf is always valid.

    Raises:
      Infeasible: if no assignment is allowed.
      ValueError: if a cost or bound is not a number.
    """
    best: tuple[float, tuple[int, ...]] | None = None  # cost and option indices, which break ties
    evaluated = 0

    def named(taken: tuple[int, ...]) -> dict[str, str]:
        roles = zip(space.roles, taken, strict=False)
        return {role: space.options[role][index] for role, index in roles}

    def visit(taken: tuple[int, ...]) -> None:
        nonlocal best, evaluated
        if len(taken) == len(space.roles):
            evaluated += 1
            cost = _number("evaluate", evaluate(named(taken)), named(taken))
            best = (cost, taken) if best is None else min(best, (cost, taken))
            return
        branches = []
        for index in range(len(space.options[space.roles[len(taken)]])):
            partial = named((*taken, index))
            if space.allows(partial):
                least = _number("bound", bound(partial), partial)
                branches.append((least, (*taken, index)))
        for least, branch in sorted(branches):
            # At equal cost, a later prefix has only later completions, which lose the tie.
            if best is None or (least, branch) < (best[0], best[1][: len(branch)]):
                visit(branch)

    visit(())
    if best is None:
        raise Infeasible(space)
    return Found(named(best[1]), best[0], evaluated, "branch_and_bound")


def assign(space: Space, evaluate: Cost, bound: Cost, *, limit: int = 1024) -> Found:
    """Return the best assignment: exhaustive if `space.size <= limit`, else branch and bound.

    Raises:
      Infeasible: if no assignment is allowed.
      ValueError: if a cost or bound is not a number.
    """
    if space.size <= limit:
        return exhaustive(space, evaluate)
    return branch_and_bound(space, evaluate, bound)


def _number(name: str, cost: float, assignment: Assignment) -> float:
    if math.isnan(cost):
        raise ValueError(f"{name} must return a number, got nan for {dict(assignment)}")
    return cost
