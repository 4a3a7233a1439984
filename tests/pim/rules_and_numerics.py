"""Pairs of a rule and numerics, of which `make test` has each rule and each numerics."""

import oracle
import pytest

from accel_rl import tabular

# Each rule once, with the numerics in turn; the others are the same check on more of the same.
rules_and_numerics = pytest.mark.parametrize(
    ("rule", "numerics"),
    [
        pytest.param(rule, numerics, marks=() if k % 3 == n else pytest.mark.slow)
        for k, rule in enumerate(tabular.RULES)
        for n, numerics in enumerate(oracle.NUMERICS)
    ],
)
