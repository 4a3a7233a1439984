"""Like devices: what may stand for what, and that leaving the rest out changes no choice."""

import itertools
import random
from unittest import mock

import jax
import pytest
import quick
from tables import SMALL_DQN, devices_of, loaded, made_up, mappings

from accel_rl import compose
from accel_rl.compose.candidates import alike, distinct, enough, mappings_of, offers, options
from accel_rl.compose.costs import trial_key
from accel_rl.compose.devices import JaxDevice, NativeDevice, find
from accel_rl.compose.workload import ROLES, workload_of

HOSTS = tuple(f"cpu:{number}" for number in range(8))


def with_devices(*names):
    return loaded(compose={"devices": names})


def pattern(names):
    """What a tuple's cost depends on: who is whom, and who has the cores that `native` uses."""

    def seen(name):
        kind = name.split(":")[0]
        return kind, names.index(name), "native" in names and name == "cpu:0"

    return tuple(map(seen, names))


@pytest.mark.parametrize("hosts", [HOSTS[:4], HOSTS[3::-1]], ids=["in order", "the first last"])
def test_tuples_are_renamed_to_the_same_exactly_where_they_cost_the_same(hosts):
    names = (*hosts, "native", "fpga")
    like = alike(find(names))
    patterns = {}
    for size in (1, 2, 3, 4):
        for each in itertools.product(names, repeat=size):
            renamed = like.renamed(each)
            assert pattern(renamed) == pattern(each)  # so what is measured of one is true of all
            patterns.setdefault(pattern(each), set()).add(renamed)
    assert {len(found) for found in patterns.values()} == {1}


def count(wanted):
    devices = devices_of(wanted)
    return len(list(mappings_of(options(wanted, devices)[0], devices)))


def test_what_is_measured_does_not_grow_with_the_number_of_like_devices():
    for others in (("native",), ("fpga",), ("native", "fpga")):
        few, many = (with_devices(*HOSTS[:n], *others) for n in (5, 8))
        assert len(mappings(few)) == len(mappings(many))
        assert count(few) == count(many)
        devices = devices_of(many)
        assert len(enough(devices, alike(devices))) <= len(ROLES) + 1 + len(others)
    # One mapping of one device, not as many as there are other devices to be told apart from.
    keys = {trial_key(each, alike(find(HOSTS))) for each in mappings(with_devices(*HOSTS))}
    assert len(keys) == 1 + 2 * 15  # fused; two executors, four roles: Bell's number of 4


def test_a_device_of_ones_own_keeps_the_device_apart_whose_place_it_takes():
    own = NativeDevice(jax.local_devices(backend="cpu")[2], name="own")
    like = alike({**find(HOSTS[:3]), "own": own})
    assert like.renamed(["own", "cpu:1"]) == ("own", "cpu:0")
    assert like.renamed(["own", "cpu:2"]) == ("own", "cpu:2")
    assert like.renamed(["cpu:2", "cpu:1"]) == ("cpu:0", "cpu:1")


def drawn(seed):
    """Costs that are equal where nothing but names of like devices differs, with some ties."""
    found = {}

    def cost(mapping):
        # Of a team the first member publishes policies; the rest are as good as each other.
        used = tuple(getattr(mapping, role) for role in ROLES[:-1]) + mapping.learner[:1]
        place = (mapping.executor, len(mapping.learner), pattern(used))
        if place not in found:
            found[place] = random.Random(f"{seed} {place}").randint(1, 40)
        return found[place]

    return cost


@pytest.mark.parametrize("seed", quick.only(range(2), range(5)))
@pytest.mark.parametrize("others", [("native",), ("native", "fpga")])
def test_the_choice_is_that_of_all_mappings(seed, others):
    names = list(HOSTS[:7])
    random.Random(seed).shuffle(names)
    wanted = with_devices(*names[:3], *others, *names[3:])
    devices = devices_of(wanted)
    few, _ = options(wanted, devices)
    taken, _ = offers(devices, workload_of(wanted))
    all_of = {role: tuple(names) for role, names in taken.items()}
    all_of["learner"] = tuple((name,) for name in taken["learner"])
    few, every = (list(mappings_of(each, devices)) for each in (few, few | all_of))
    assert len(few) < len(every) / 2

    cost, like = drawn(seed), alike(devices)
    assert min(distinct(few, like), key=cost) == min(every, key=cost)
    # The same mappings are left of both.
    assert distinct(few, like) == distinct(every, like)


@pytest.mark.parametrize("seed", range(3))
def test_accelerators_learn_together_however_many_there_are(seed):
    boards = [mock.Mock(spec=jax.Device, platform="gpu", device_kind="g", id=n) for n in range(8)]
    many = {f"gpu:{n}": JaxDevice(f"gpu:{n}", board) for n, board in enumerate(boards)}
    devices = {**find(HOSTS[:1]), **many}
    few, _ = options(SMALL_DQN, devices)
    team = tuple(many)
    singles = ("cpu:0", "gpu:0", "gpu:1", "gpu:2", "gpu:3")
    assert few["learner"] == (*((name,) for name in singles), team)
    all_of = dict.fromkeys(ROLES, tuple(devices))
    all_of["learner"] = (*((name,) for name in devices), team)
    every = mappings_of(few | all_of, devices)
    cost = drawn(seed)
    best = min(distinct(mappings_of(few, devices), alike(devices)), key=cost)
    assert best == min(every, key=cost)


def test_like_devices_of_other_watts_are_told_apart_in_joules():
    watts = {"cpu:0": (0.0, 500.0), "cpu:1": (0.0, 1.0)}
    section = {"devices": HOSTS[:2], "objective": "efficiency", "power": watts}
    wanted = loaded(replay={"sampler": "uniform"}, compose=section)
    plan = compose.plan(wanted, costs=made_up(wanted))
    assert plan.best.mapping.devices == ("cpu:1",)
    names = [str(each.mapping) for each in plan.estimates]
    assert {"fused on cpu:0", "fused on cpu:1"} <= set(names)
    # Any number of them may be worth offering where the first are the dear ones.
    dear = dict.fromkeys(HOSTS[:7], (0.0, 500.0)) | {HOSTS[7]: (0.0, 1.0)}
    assert HOSTS[7] in enough(HOSTS, alike(find(HOSTS), dear))


def test_without_cpu_devices_it_says_what_to_set(monkeypatch):
    def none(backend=None):
        raise RuntimeError(f"Unknown backend {backend}")

    monkeypatch.setattr(jax, "local_devices", none)
    with pytest.raises(ValueError, match='JAX_PLATFORMS leaves out: make it "cuda,cpu"'):
        find(("cpu:0",))
