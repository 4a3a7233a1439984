"""Every sampler through the conformance test of replay memories."""

import pytest
from conformance import CHECKS, SAMPLERS


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("check", CHECKS)
def test_conformance(check, name):
    CHECKS[check](name)
