"""Performance portability against its definition and its closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.hardware_models.portability import application_efficiency, performance_portability

EFFICIENCIES = st.lists(st.floats(1e-6, 1), min_size=2, max_size=8)


def portability(values):
    return performance_portability({f"platform {i}": value for i, value in enumerate(values)})


def test_two_platforms():
    assert portability([0.5, 1.0]) == pytest.approx(2 / (1 / 0.5 + 1 / 1.0))
    assert portability([0.5, 1.0]) == pytest.approx(2 / 3)
    assert portability([0.9, 0.6, 0.3]) == pytest.approx(3 / (10 / 9 + 10 / 6 + 10 / 3))


def test_the_best_everywhere_is_one():
    assert portability([1.0] * 5) == 1.0


@pytest.mark.parametrize("missing", [None, 0.0])
def test_one_unsupported_platform_is_zero(missing):
    assert portability([1.0, missing, 0.5]) == 0.0


@pytest.mark.parametrize("values", [[], [0.7], [None]])
def test_fewer_than_two_platforms_say_nothing(values):
    assert portability(values) is None


@given(EFFICIENCIES)
def test_it_lies_between_the_least_and_the_arithmetic_mean(values):
    found = portability(values)
    assert min(values) * (1 - 1e-12) <= found <= math.fsum(values) / len(values) * (1 + 1e-12)
    assert found == portability(values[::-1])


def test_application_efficiency():
    assert application_efficiency(3.0, 4.0) == 0.75
    assert application_efficiency(0.0, 4.0) == 0.0


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_efficiencies_lie_within_0_and_1(value):
    with pytest.raises(ValueError, match=r"efficiencies\['platform 1'\] must be from 0 to 1"):
        portability([0.5, value])


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match="best must be finite and above 0, got 0"):
        application_efficiency(0.0, 0.0)
    with pytest.raises(ValueError, match=r"achieved must be from 0 to 4\.0, got 5\.0"):
        application_efficiency(5.0, 4.0)
