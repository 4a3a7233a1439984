"""Which cases of a test are short ones: the others repeat it on more of the same."""

import pytest


def only(quick, cases):
    """Cases for `parametrize`, all slow but those named."""
    missing = set(quick) - set(cases)
    assert not missing, f"no cases: {missing}"
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
