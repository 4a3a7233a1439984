"""Skip tests of optional parts; the end of a run counts the skips by part."""

import pytest

from accel_rl.cli import optional


def needs(part):
    """Mark tests that an optional part of `accel_rl.cli.optional` must be present for."""
    why = optional.describe_absence(part)
    return pytest.mark.skipif(why is not None, reason=why or part)


def require(part):
    """Skip the running test, or the module that is being imported, where a part is absent."""
    why = optional.describe_absence(part)
    if why is not None:
        pytest.skip(why, allow_module_level=True)
