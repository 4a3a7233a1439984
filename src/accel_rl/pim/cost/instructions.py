"""Instructions of one tabular update on a DPU, by rule and numerics.

Q-learning was measured with 4 actions (FrozenLake) and 6 (Taxi) in each numerics. A line through
the two points separates the fixed cost from the cost of each action (load a value of the next
state, keep the larger). Other numbers of actions are taken from that line. Part of the difference
comes from the values, not the actions (Taxi's are rarely zero), so the slope is an upper bound. The
other rules are derived: Q-learning's count, plus their additional operations, less the operations
that they lack. Counts and prices are in `calibration.toml`.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from importlib import resources

from accel_rl.arguments import one_of, whole
from pim_emu.machine import Constant, parse_constants

NUMERICS = ("fp32", "int32_scaled", "int32_pow2")
_MEASURED_ACTIONS = (4, 6)
_BY_NUMERICS = ("add", "product", "mean_entry")  # operations whose price depends on the numerics
_REDUCTIONS = ("entry", "mean_entry")  # n of them are n - 1 arithmetic operations


@dataclasses.dataclass(frozen=True)
class RuleOperations:
    """Operations of one update of a rule: counts by name of the operation."""

    target: Mapping[str, int]
    target_per_action: Mapping[str, int]
    apply: Mapping[str, int]
    owner: Mapping[str, int] = dataclasses.field(default_factory=dict)  # beyond a plain update
    tables: int = 1  # Q-tables, K
    columns: int = 1  # values of a next state by owner, C, beside those for each action
    columns_per_action: int = 0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Contents of `calibration.toml`."""

    sources: Mapping[str, Constant]
    rules: Mapping[str, RuleOperations]

    def __getitem__(self, name: str) -> float:
        """Return the value of the constant called `name`."""
        return self.sources[name].value


@dataclasses.dataclass(frozen=True)
class UpdateInstructions:
    """Instructions of one update, in the two phases of a target block.

    Attributes:
      target: instructions to decode the record, value the next state and compute the target.
      apply: instructions to move the entry towards the target.
    """

    target: float
    apply: float

    @property
    def total(self) -> float:
        """Instructions of a sequential update."""
        return self.target + self.apply


@functools.cache
def load_calibration() -> Calibration:
    """Load the calibration that comes with the package."""
    name = "calibration.toml"
    text = (resources.files("accel_rl.pim.cost") / name).read_text(encoding="utf-8")
    rules = {rule: RuleOperations(**table) for rule, table in tomllib.loads(text)["rules"].items()}
    return Calibration(parse_constants(text, name), rules)


def check_rule(rule: str, numerics: str) -> RuleOperations:
    """Return the operations of a rule; check the names of rule and numerics."""
    rules = load_calibration().rules
    one_of("rule", rule, rules)
    one_of("numerics", numerics, NUMERICS)
    return rules[rule]


def update_instructions(rule: str, numerics: str, num_actions: int) -> UpdateInstructions:
    """Return the instructions of one update: measured for Q-learning, derived for the other rules.

    Args:
      rule: "q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning".
      numerics: "fp32", "int32_scaled" or "int32_pow2".
      num_actions: A, at least 1.

    Returns:
      The instructions by phase. What is paid once is split in proportion to the phases' operations;
      what is paid for each action belongs to the target.
    """
    operations, q_learning = check_rule(rule, numerics), check_rule("q_learning", numerics)
    whole("num_actions", num_actions, 1)
    base, prices = _prices(numerics)
    target_price = _price(q_learning.target, prices)
    apply_price = _price(q_learning.apply, prices)
    share = target_price / (target_price + apply_price)
    # Derived rules differ from Q-learning by whole operations.
    return UpdateInstructions(
        target=base * share
        + _price(operations.target, prices)
        - target_price
        + num_actions * _price(operations.target_per_action, prices),
        apply=base * (1 - share) + _price(operations.apply, prices) - apply_price,
    )


def owner_instructions(rule: str, numerics: str) -> float:
    """Return the instructions of an update by owner: with a known target, and random choices.

    Args:
      rule: as for `update_instructions`.
      numerics: "fp32", "int32_scaled" or "int32_pow2".
    """
    operations, k = check_rule(rule, numerics), load_calibration()
    plain = k[f"owner_{numerics}_update"]
    return plain + _price(operations.owner, {"choice": k["owner_choice"]})


def arithmetic_operations(rule: str, num_actions: int) -> int:
    """Count additions, products and comparisons of one update: the useful work, whatever it costs.

    Args:
      rule: name of an update rule.
      num_actions: A, from 1.
    """
    operations = check_rule(rule, "fp32")
    whole("num_actions", num_actions, 1)
    once = sum(
        phase.get(name, 0)
        for phase in (operations.target, operations.apply)
        for name in ("add", "product")
    )
    per_action = sum(operations.target_per_action.get(name, 0) for name in _REDUCTIONS)
    return once + per_action * (num_actions - 1)


def _prices(numerics: str) -> tuple[float, dict[str, float]]:
    """Return the fixed instructions of a Q-learning update, and the price of each operation."""
    calibration = load_calibration()
    few, many = _MEASURED_ACTIONS
    at_few, at_many = (calibration[f"{numerics}_update_{n}_actions"] for n in _MEASURED_ACTIONS)
    slope = (at_many - at_few) / (many - few)
    prices = {name: calibration[f"{numerics}_{name}"] for name in _BY_NUMERICS}
    prices |= {name: calibration[name] for name in ("lookup", "track", "draw")}
    return at_few - few * slope, prices | {"entry": slope}


def _price(operations: Mapping[str, int], prices: Mapping[str, float]) -> float:
    return sum(count * prices[name] for name, count in operations.items())
