"""Random spaces to search, with costs that have a bound."""

import itertools
import random

from accel_rl.compose.assign import Constraint, Infeasible, Space


def random_space(rng):
    """Two to five roles over up to five devices, some of which refuse, with some constraints."""
    devices = [f"d{i}" for i in range(rng.randint(1, 5))]
    rng.shuffle(devices)
    roles = tuple(f"r{i}" for i in range(rng.randint(2, 5)))
    refusing = rng.choice([0.0, 0.1, 0.3])
    options, refused = {}, {}
    for role in roles:
        refused[role] = {d: f"no {role} on it" for d in devices if rng.random() < refusing}
        options[role] = tuple(d for d in devices if d not in refused[role])
    constraints = [
        random_constraint(rng, roles, devices, index)
        for index in range(rng.choice([0, 0, 1, 2, 3]))
    ]
    return Space(roles, options, refused, tuple(constraints))


def random_constraint(rng, roles, devices, index):
    kind = rng.choice(["apart", "together", "at most", "forbidden"])
    one, two = rng.sample(roles, 2)
    device, most = rng.choice(devices), rng.randint(1, 2)

    def allows(partial):
        if kind == "at most":
            return list(partial.values()).count(device) <= most
        if kind == "forbidden":
            return partial.get(one) != device
        if one not in partial or two not in partial:
            return True
        return (partial[one] == partial[two]) == (kind == "together")

    return Constraint(f"c{index}", f"{kind} {one} {two} {device}", allows)


def separable_and_pairwise(rng, space):
    """Costs of each role, plus the longest over pairs of roles; a bound of the known terms."""
    coarse = rng.random() < 0.7  # costs of few values: many ties

    def draw():
        return float(rng.randint(0, 2)) if coarse else rng.random()

    alone = {(r, d): draw() for r in space.roles for d in space.options[r]}
    pairs = {
        (r, d, q, e): draw()
        for r, q in itertools.combinations(space.roles, 2)
        for d in space.options[r]
        for e in space.options[q]
    }
    cheapest = {r: min((alone[r, d] for d in space.options[r]), default=0.0) for r in space.roles}

    def cost(partial):
        total = 0.0
        for role in space.roles:
            total += alone[role, partial[role]] if role in partial else cheapest[role]
        known = [role for role in space.roles if role in partial]
        longest = 0.0
        for r, q in itertools.combinations(known, 2):
            longest = max(longest, pairs[r, partial[r], q, partial[q]])
        return total + longest

    return cost, cost


def pearl_generalised(rng, space):
    """One task before the rest, which run side by side; tasks of one device follow each other.

    With roles (sample, update and insert, learn) this is PEARL's iteration.
    """
    times = {(r, d): float(rng.randint(1, 4)) for r in space.roles for d in space.options[r]}
    serial = {d: rng.random() < 0.5 for d in {d for r in space.roles for d in space.options[r]}}
    first, *rest = space.roles

    def cost(partial):
        sides = {}
        for role in rest:
            if role in partial:
                device = partial[role]
                lane = device if serial[device] else (device, role)
                sides[lane] = sides.get(lane, 0.0) + times[role, device]
        lead = times[first, partial[first]] if first in partial else 0.0
        return lead + max(sides.values(), default=0.0)

    return cost, cost


COSTS = [separable_and_pairwise, pearl_generalised]


def problem(seed):
    rng = random.Random(seed)
    space = random_space(rng)
    return space, *COSTS[seed % 2](rng, space)


def outcome(search, *arguments):
    try:
        return search(*arguments)
    except Infeasible as error:
        return str(error)


def whole(space):
    for devices in itertools.product(*(space.options[role] for role in space.roles)):
        yield dict(zip(space.roles, devices, strict=True))
