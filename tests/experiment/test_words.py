"""Values of settings: read from words, checked against types, written back."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.experiment import words
from accel_rl.io.validation import validated, whole


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
    parsed = words.parse(word)
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
    parsed = words.parse(words.text(value))
    assert parsed == value
    assert type(parsed) is type(value)


@given(st.lists(st.integers(-9, 9) | st.lists(st.integers(0, 9), max_size=3), min_size=1))
def test_lists_in_a_sweep_stay_whole(several):
    word = ",".join(words.text(value) for value in several)
    assert [words.parse(part) for part in words.split(word)] == several


def test_commas_in_quotes_part_nothing():
    assert words.split("'a,b', c") == ["'a,b'", "c"]
    for word in ("1,,2", "1,", ""):
        with pytest.raises(ValueError, match="comma-separated"):
            words.split(word)


def test_assignments():
    assert words.assignment("a.b = c=d") == ("a.b", "c=d")
    for word in ("a.b", "=1", "a.=1", ".a=1", "a.b="):
        with pytest.raises(ValueError, match=r"section\.name=value"):
            words.assignment(word)


STRICT = pydantic.ConfigDict(strict=True, allow_inf_nan=False)


def converted(kind, value):
    return validated(pydantic.TypeAdapter(kind, config=STRICT), whole(value), "a.b")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (float, 1, 1.0),
        (int, 5e5, 500000),
        (int | None, None, None),
        (tuple[int, ...], [1, 2.0], (1, 2)),
        (tuple[float, ...], [1], (1.0,)),
        (Literal["a", "b"], "b", "b"),
        (Mapping[str, Any], {"x": []}, {"x": []}),
        (str | None, "x", "x"),
        (bool, False, False),
    ],
)
def test_valid_values(kind, value, expected):
    found = converted(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, 0.5, "a.b must be a valid integer, got 0.5"),
        (int, True, "a.b must be a valid integer, got true"),
        (float, False, "a.b must be a valid number, got false"),
        (float, float("nan"), "a.b must be a finite number, got NaN"),
        (float, float("-inf"), "a.b must be a finite number, got -Infinity"),
        (bool, 1, "a.b must be a valid boolean, got 1"),
        (int | None, "x", 'a.b must be a valid integer, got "x"'),
        (Literal["a", "b"], "c", """a.b must be 'a' or 'b', got "c\""""),
        (tuple[int, ...], "12", 'a.b must be a valid array, got "12"'),
        (tuple[int, ...], [1, "x"], 'a.b.1 must be a valid integer, got "x"'),
        (Mapping[str, Any], 3, "a.b must be an object, got 3"),
        (str, None, "a.b must be a valid string, got null"),
        (str, datetime.date(2024, 1, 1), "a.b: Object of type date is not JSON serializable"),
    ],
)
def test_invalid_values(kind, value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        converted(kind, value)


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
    with pytest.raises(ValueError, match=f"^no setting is named {name!r}; {re.escape(hint)}$"):
        words.check_known(name, known)
