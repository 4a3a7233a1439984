"""Every sampler through the conformance test of replay memories."""

import pytest
import quick
from conformance import CHECKS, SAMPLERS


@pytest.mark.parametrize("name", quick.only(set(SAMPLERS) - {"wide"}, SAMPLERS))
@pytest.mark.parametrize("check", CHECKS)
def test_conformance(check, name):
    CHECKS[check](name)
