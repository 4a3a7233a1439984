"""Which cases of a test are part of `make test`; the others repeat it on more of the same."""

import pytest


def only(quick, cases, *, others="slow"):
    """Cases for `parametrize`, all but those named with the mark `others`, slow or long."""
    missing = set(quick) - set(cases)
    assert not missing, f"no cases: {missing}"
    mark = getattr(pytest.mark, others)
    return [case if case in quick else pytest.param(case, marks=mark) for case in cases]
