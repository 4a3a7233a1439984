"""The form of prioritised replay on accelerators: the fastest that draws the right items."""

import json
import time

import jax
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.replay import form_choice
from accel_rl.replay.blocks import Blocks
from accel_rl.replay.form_choice import fastest
from accel_rl.replay.prioritised import prioritised

RING = replay.Ring(300)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCEL_RL_CACHE", str(tmp_path))
    monkeypatch.setattr(form_choice, "STEPS", 3)
    monkeypatch.setattr(form_choice, "_chosen", {})


def made(form, change=None):
    """Return a maker of the sampler of a form, with its draws changed."""

    def make():
        sampler = prioritised(form)(RING, False)
        if change is None:
            return sampler
        return sampler._replace(draw=lambda *args: change(*sampler.draw(*args)))

    return make


def slowly(slots, probabilities):
    def wait(slots):
        time.sleep(0.002)
        return slots

    shape = jax.ShapeDtypeStruct(slots.shape, slots.dtype)
    return jax.pure_callback(wait, shape, slots), probabilities


def fail():
    raise NotImplementedError("no such instruction")


def test_the_fastest_form_is_chosen_and_kept(tmp_path):
    forms = {"wide": made("wide", slowly), "rows": made("rows")}
    assert fastest(forms, RING) == "rows"
    # Known now: for capacities up to the same power of two nothing is made or run.
    assert fastest(dict.fromkeys(forms, fail), replay.Ring(512)) == "rows"
    form_choice._chosen.clear()  # as in the next process
    assert fastest(dict.fromkeys(forms, fail), RING) == "rows"
    with pytest.raises(NotImplementedError):
        fastest(dict.fromkeys(forms, fail), replay.Ring(513))


@pytest.mark.parametrize("text", ["{", "[]", '{"x": []}'])
def test_a_damaged_file_is_measured_again_and_replaced(text, tmp_path):
    (tmp_path / "forms.json").write_text(text)
    assert fastest({"rows": made("rows")}, RING) == "rows"
    assert list(json.loads((tmp_path / "forms.json").read_text()).values()) == ["rows"]


@pytest.mark.parametrize("form", ["rows", "pallas"])
def test_a_whole_memory_is_filled_in_little_more_than_its_own(form):
    """One gather of a row for each item would take the square of it."""
    ring = replay.Ring(1 << 16)
    sampler = prioritised(form)(ring, False)
    state = jax.eval_shape(sampler.init)
    weights = jax.ShapeDtypeStruct((ring.capacity,), np.float32)
    first = jax.ShapeDtypeStruct((), np.int32)
    memory = jax.jit(sampler.assign_range).lower(state, first, weights).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 3 * 4 * ring.capacity


def test_a_form_that_draws_other_items_is_left_out():
    def next_ones(slots, probabilities):
        return (slots + 2) % RING.capacity, probabilities

    forms = {"wide": made("wide", slowly), "rows": made("rows", next_ones)}
    with pytest.warns(UserWarning, match="'rows'.* draws other items"):
        assert fastest(forms, RING) == "wide"


def test_a_form_that_does_not_run_is_left_out():
    with pytest.warns(UserWarning, match="'pallas'.* does not run here: no such instruction"):
        assert fastest({"wide": made("wide"), "pallas": fail}, RING) == "wide"


def test_processes_of_one_program_do_not_measure(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert fastest({"wide": fail, "rows": fail}, RING) == "wide"


@pytest.mark.filterwarnings("error")  # such as of a form that is left out
def test_all_forms_draw_the_same_items_and_may_be_made_in_a_traced_function(monkeypatch, tmp_path):
    monkeypatch.setattr(jax, "default_backend", lambda: "made up")
    sums = jax.jit(lambda: prioritised()(RING, False).init().sums)()
    (chosen,) = json.loads((tmp_path / "forms.json").read_text()).values()
    assert isinstance(sums, {"wide": jax.Array, "rows": Blocks, "pallas": Blocks}[chosen])
