"""Every sampler through the conformance test of replay buffers."""

import pytest
from conformance import CHECKS, SAMPLERS

# In `make test` each check is made of one sampler: what is not here of the tree.
QUICK = {
    "uniform": {"odd_capacity"},
    "native": {
        "parallel_environments",
        "eager_jit_vmap_and_scan_agree",
        "keys_and_hyperparameters_are_mapped",
        "priorities_given_at_add",
        "items_of_priority_zero_are_never_drawn",
        "weights_formula",
        "transitions_have_n_step_targets",
    },
}
QUICK["tree"] = set(CHECKS) - QUICK["native"]


LONG = {("eager_jit_vmap_and_scan_agree", "tree")}


def marks(check, name):
    if check in QUICK.get(name, ()):
        return ()
    return pytest.mark.long if (check, name) in LONG else pytest.mark.slow


@pytest.mark.parametrize(
    ("check", "name"),
    [pytest.param(check, name, marks=marks(check, name)) for check in CHECKS for name in SAMPLERS],
)
def test_conformance(check, name):
    CHECKS[check](name)
