"""Values of settings: read from words, checked against types, written back."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.cli.training import values


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 0.001),
        ("500_000", 500000),
        ("true", True),
        ("none", None),
        ("Null", None),
        ("[64, 32]", [64, 32]),
        ("amper-fr", "amper-fr"),
        ('"7"', "7"),
        ("50%", "50%"),
        ("a\nb = 1", "a\nb = 1"),
    ],
)
def test_words_are_values_of_toml(word, value):
    parsed = values.parse(word)
    assert parsed == value
    assert type(parsed) is type(value)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("abcdefgh_", min_size=1).filter(lambda word: word not in ("none", "null")),
)


@given(SCALARS)
def test_text_is_read_back(value):
    parsed = values.parse(values.text(value))
    assert parsed == value
    assert type(parsed) is type(value)


@given(st.lists(st.integers(-9, 9) | st.lists(st.integers(0, 9), max_size=3), min_size=1))
def test_lists_in_a_sweep_stay_whole(several):
    word = ",".join(values.text(value) for value in several)
    assert [values.parse(part) for part in values.split(word)] == several


def test_commas_in_quotes_part_nothing():
    assert values.split("'a,b', c") == ["'a,b'", "c"]
    for word in ("1,,2", "1,", ""):
        with pytest.raises(ValueError, match="single commas"):
            values.split(word)


def test_assignments():
    assert values.assignment("a.b = c=d") == ("a.b", "c=d")
    for word in ("a.b", "=1", "a.=1", ".a=1", "a.b="):
        with pytest.raises(ValueError, match=r"section\.name=value"):
            values.assignment(word)


@pytest.mark.parametrize(
    ("kind", "value", "conformed"),
    [
        (float, 1, 1.0),
        (int, 5e5, 500000),
        (int | None, None, None),
        (Sequence[int], [1, 2.0], (1, 2)),
        (tuple[float, ...], [1], (1.0,)),
        (Literal["a", "b"], "b", "b"),
        (Mapping[str, Any], {"x": []}, {"x": []}),
        (str | None, "x", "x"),
        (bool, False, False),
    ],
)
def test_values_that_fit(kind, value, conformed):
    found = values.conform(kind, value, "a.b")
    assert found == conformed
    assert type(found) is type(conformed)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, 0.5, "a.b must be an integer, got 0.5"),
        (int, True, "a.b must be an integer, got true"),
        (float, False, "a.b must be a finite number, got false"),
        (float, float("nan"), "a.b must be a finite number, got NaN"),
        (float, float("-inf"), "a.b must be a finite number, got -Infinity"),
        (bool, 1, "a.b must be true or false, got 1"),
        (int | None, "x", 'a.b must be an integer or none, got "x"'),
        (Literal["a", "b"], "c", 'a.b must be one of a, b, got "c"'),
        (Sequence[int], "12", 'a.b must be a list, each item an integer, got "12"'),
        (Sequence[int], [1, "x"], r'a.b\[1\] must be an integer, got "x"'),
        (
            Mapping[str, Any],
            3,
            "a.b must be a table of names and values, all numbers finite, got 3",
        ),
        (Mapping[str, Any], {"x": float("inf")}, 'a.b must be a table .* got {"x": Infinity}'),
        (str, None, "a.b must be a string, got null"),
    ],
)
def test_values_that_do_not(kind, value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        values.conform(kind, value, "a.b")


def test_what_text_can_stand_for():
    for kind in (bool, int | None, Sequence[float], Literal["a"], tuple[float, float]):
        assert values.configurable(kind)
    for kind in (object, int | Mapping[str, int], Sequence[object]):
        assert not values.configurable(kind)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("training.stepps", "did you mean training.steps?"),
        ("stepps", "did you mean training.steps?"),
        ("agent.steps", "did you mean training.steps?"),
        ("training.nam", "did you mean agent.name?"),
        ("name", "did you mean agent.name?"),
        ("training.xyz", "there are training.steps, training.seed"),
        ("xyz", "there are training.steps, training.seed, agent.name"),
    ],
)
def test_what_was_meant(name, hint):
    known = ["training.steps", "training.seed", "agent.name"]
    assert str(values.unknown(name, known)) == f"no setting is named {name!r}; {hint}"
