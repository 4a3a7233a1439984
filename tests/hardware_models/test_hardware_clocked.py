"""The model of clocked AM hardware, that of the RTL."""

import dataclasses

import pytest
from designs import clocked, small

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.associative_memory import modelled_sample, modelled_update


def test_clocked_sample_by_hand():
    """Each phase: the cycles of its first item, and one for each further item."""
    design = small(groups=3, csp_size=6, batch_size=5, variant="fr_prefix")
    found = modelled_sample(design, clocked(), energy=False)
    assert found.overlap == "clocked"
    assert found.modelled_latency_by_stage_ns == pytest.approx(
        {"search": 2 * (3 + 2), "readout": 2 * (4 + 5), "draw": 2 * (2 + 4)}
    )
    assert found.modelled_busy_by_stage_ns == pytest.approx(
        {"search": 2 * 3, "readout": 2 * 6, "draw": 2 * 5}
    )
    assert found.modelled_energy_pj is None
    # The schedule is that of the RTL, whatever else the design says.
    other = dataclasses.replace(design, overlap="pipelined", rows_per_array=7, key_bits=32)
    assert modelled_sample(other, clocked(), energy=False) == found
    exact = dataclasses.replace(design, variant="fr_exact", range_queries=10.0)
    more = modelled_sample(exact, clocked(), energy=False).modelled_latency_by_stage_ns
    assert more["search"] == pytest.approx(2 * (3 + 29))
    update = modelled_update(design, clocked(), energy=False)
    assert update.modelled_latency_by_stage_ns == pytest.approx({"write": 2 * (4 + 4)})


def test_clocked_designs_refused():
    with pytest.raises(ValueError, match=r"clock_period \(ns\) of 'rtl_tcam' has no .* value"):
        modelled_sample(small(), hardware.load_components(tcam="rtl_tcam"), energy=False)
    for model in (modelled_sample, modelled_update):
        with pytest.raises(
            ValueError, match=r"'rtl_tcam' has .* no energies: energy must be False"
        ):
            model(small(), clocked())
        with pytest.raises(ValueError, match=r"variant one of fr_\w+, .*, got False, 'k_counted'"):
            model(small(variant="k_counted"), clocked(), energy=False)
        for ports in ("csp_ports", "write_ports"):
            with pytest.raises(ValueError, match=r"csp_ports and write_ports 1, got .*2"):
                model(small(**{ports: 2}), clocked(), energy=False)
