"""Tabular training again, in plain NumPy and Python integers: the truth that tests compare with.

Written from docs/tabular-semantics.md, one row at a time, sharing no code with the library.
"""

import numpy as np

U32 = 2**32
INT32_MAX = 2**31 - 1


def hash32(x):
    x = (x + 0x9E3779B9) % U32
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) % U32
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) % U32
    return x ^ (x >> 16)


def stream(seed, pass_index, dpu, number):
    key = hash32(seed)
    for word in (pass_index, dpu, number):
        key = hash32(key ^ word)
    return Lcg(key)


class Lcg:
    def __init__(self, state):
        self.state = state

    def draw(self):
        self.state = (self.state * 1664525 + 1013904223) % U32
        return self.state


def shuffled(n, lcg):
    values = list(range(n))
    for i in range(n - 1, 0, -1):
        j = ((lcg.draw() >> 16) * (i + 1)) >> 16
        values[i], values[j] = values[j], values[i]
    return values


def order_of(name, stride, n, lcg):
    if name == "SEQ":
        return list(range(n))
    if name == "STR":
        return [row for offset in range(stride) for row in range(offset, n, stride)]
    if name == "RAN":
        within = shuffled(128, lcg)
        blocks = shuffled(-(-n // 128), lcg)
        return [b * 128 + p for b in blocks for p in within if b * 128 + p < n]
    return [(lcg.draw() * n) >> 32 for _ in range(n)]


def truncated(x, n):
    """C's x / n."""
    return abs(x) // n * (1 if x >= 0 else -1)


def half_away(x, n):
    """x / n rounded to the nearest, halves away from zero."""
    return (2 * abs(x) + n) // (2 * n) * (1 if x >= 0 else -1)


class Fp32:
    dtype = np.float32

    def encode(self, x):
        return np.float32(x)

    rate = encode

    def mul(self, c, x):
        return np.float32(c * x)

    def add(self, x, y):
        return np.float32(x + y)

    def sub(self, x, y):
        return np.float32(x - y)

    def mean(self, values):
        total = values[0]
        for value in values[1:]:
            total = np.float32(total + value)
        return np.float32(total * np.float32(1 / len(values)))


class Scaled:
    dtype = np.int32
    scale = 10_000

    def encode(self, x):
        return int(np.round(np.float32(x) * np.float32(self.scale)))

    rate = encode

    def mul(self, c, x):
        whole = truncated(x, self.scale)
        return whole * c + truncated((x - whole * self.scale) * c, self.scale)

    def add(self, x, y):
        assert abs(x + y) <= INT32_MAX, "overflow"
        return x + y

    def sub(self, x, y):
        return self.add(x, -y)

    def mean(self, values):
        n = len(values)
        whole = [truncated(x, n) for x in values]
        rest = sum(x - w * n for x, w in zip(values, whole, strict=True))
        return sum(whole) + truncated(rest, n)


class Pow2:
    dtype = np.int32
    scale = 2**16

    def encode(self, x):
        return int(np.round(np.float32(x) * np.float32(self.scale)))

    def rate(self, x):
        return int(np.round(np.float32(x) * np.float32(256)))

    def mul(self, c, x):
        return half_away(c * x, 256)

    def add(self, x, y):
        return max(-INT32_MAX, min(INT32_MAX, x + y))

    def sub(self, x, y):
        return self.add(x, -y)

    def mean(self, values):
        n = len(values)
        whole = [truncated(x, n) for x in values]
        rest = sum(x - w * n for x, w in zip(values, whole, strict=True))
        return sum(whole) + half_away(rest, n)


NUMERICS = {"fp32": Fp32, "int32_scaled": Scaled, "int32_pow2": Pow2}


def next_value(rule, nx, own, other, next_action, greedy, epsilon):
    best = max(own)
    if rule == "q_learning":
        return best
    if rule == "expected_sarsa":
        return nx.add(best, nx.mul(epsilon, nx.sub(nx.mean(own), best)))
    if rule == "double_q_learning":
        return other[own.index(best)]
    return best if greedy else own[next_action]


def run_pass(rule, nx, table, rows, order, block, rates, draws, source=None):
    """One pass over one chunk; `table` [K][S][A] changes in place. Returns visits [K, S, A].

    Targets come from `source`; None: from the table itself.
    """
    source = table if source is None else source
    alpha, gamma, epsilon, explore = rates
    visits = np.zeros(table.shape, np.int64)
    item = (lambda x: x) if nx.dtype == np.float32 else int
    for start in range(0, len(order), block):
        pending = []
        for row in order[start : start + block]:
            s, a, r, s2, d, a2 = rows[row]
            learning, greedy = 0, False
            if rule == "double_q_learning":
                learning = draws.draw() >> 31
                draws.draw()
            elif rule == "sarsa_epsilon_greedy":
                u, v = draws.draw(), draws.draw()
                greedy = not (u >> 16) < explore
                a2 = ((v >> 16) * table.shape[2]) >> 16
            own = [item(x) for x in source[learning, s2]]
            other = [item(x) for x in source[-1 - learning, s2]]
            target = r
            if d:
                value = next_value(rule, nx, own, other, a2, greedy, epsilon)
                target = nx.add(r, nx.mul(gamma, value))
            pending.append((learning, s, a, target))
        for learning, s, a, target in pending:
            old = item(table[learning, s, a])
            table[learning, s, a] = nx.add(old, nx.mul(alpha, nx.sub(target, old)))
            visits[learning, s, a] += 1
    return visits


def chunk_rows(rows, num_dpus):
    base, extra = divmod(len(rows), num_dpus)
    sizes = [base + (d < extra) for d in range(num_dpus)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return [rows[starts[d] : starts[d + 1]] for d in range(num_dpus)]


def damped(alpha, n):
    keep, k = 32_768 - int(np.round(np.float32(alpha) * np.float32(32_768))), 32_768
    for _ in range(min(n, 255)):
        k = (k * keep + 16_384) >> 15
    return 32_768 - k


def pairwise(values):
    values = list(values)
    while len(values) & (len(values) - 1):
        values.append(np.zeros_like(values[0]))
    while len(values) > 1:
        values = [x + y for x, y in zip(values[0::2], values[1::2], strict=True)]
    return values[0]


def merge(name, tables, base, visits, alpha):
    tables, visits = np.asarray(tables), np.asarray(visits)
    weights = {
        "visits": visits,
        "mean": np.ones_like(visits),
        "visited": (visits > 0).astype(np.int64),
        "damped": np.vectorize(lambda n: damped(alpha, n))(visits),
    }[name]
    start = np.zeros_like(base) if name == "mean" else base
    total = weights.sum(0)
    if tables.dtype == np.float32:
        terms = [np.float32(w) * (q - start) for w, q in zip(weights, tables, strict=True)]
        step = pairwise(terms) * (np.float32(1) / np.maximum(total, 1).astype(np.float32))
        return np.where(total > 0, start + step, start).astype(np.float32)
    out = start.astype(np.int64)
    for index in np.ndindex(base.shape):
        if total[index]:
            column = (slice(None), *index)
            products = zip(weights[column], tables[column], strict=True)
            numerator = sum(int(w) * (int(q) - int(start[index])) for w, q in products)
            out[index] += half_away(numerator, int(total[index]))
    return out.astype(np.int32)


def merge_by_owner(name, tables, base, visits, holds, alpha):
    """As `merge`, of each entry over the lanes that hold it; `holds` [lanes, K, S, A]."""
    out = base.copy()
    for index in np.ndindex(base.shape):
        own = holds[(slice(None), *index)]
        if own.any():
            column = [np.asarray(x)[(own, *index)][:, None] for x in (tables, visits)]
            merged = merge(name, column[0], base[index][None], column[1], alpha)
            out[index] = merged[0] if np.any(column[1]) or name == "mean" else base[index]
    return out


def encode(transitions, nx):
    """Rows (s, a, r, s', discount, a') with encoded rewards; `transitions` has NumPy columns."""
    columns = (transitions.state, transitions.action, transitions.reward)
    columns += (transitions.next_state, transitions.discount, transitions.next_action)
    return [
        (int(s), int(a), nx.encode(r), int(s2), int(d), int(a2))
        for s, a, r, s2, d, a2 in zip(*map(np.asarray, columns), strict=True)
    ]


def coefficients(nx, alpha, gamma, epsilon):
    rates = (nx.rate(alpha), nx.rate(gamma), nx.rate(epsilon))
    return (*rates, int(np.round(np.float32(epsilon) * np.float32(65_536))))


def launch(rule, nx, base, chunks, order, stride, block, rates, seed, passes):
    """Each chunk's table after the given passes from `base` [K, S, A], and its visits."""
    tables, counts = [], []
    for dpu, chunk in enumerate(chunks):
        table = base.copy()
        visits = np.zeros(table.shape, np.int64)
        for p in passes:
            index = order_of(order, stride, len(chunk), stream(seed, p, dpu, 1))
            draws = stream(seed, p, dpu, 2)
            visits += run_pass(rule, nx, table, chunk, index, block, rates, draws)
        tables.append(table)
        counts.append(visits)
    return np.stack(tables), np.stack(counts)


def zeros(rule, nx, num_states, num_actions):
    tables = 2 if rule == "double_q_learning" else 1
    return np.zeros((tables, num_states, num_actions), nx.dtype)


def rotated(rows, lcg):
    """The order RAN of a lane's rows: each run from a random row on, cyclically."""
    entries = [row[:2] for row in rows]
    starts = [k for k, e in enumerate(entries) if k == 0 or e != entries[k - 1]]
    order = []
    for start, end in zip(starts, [*starts, len(rows)][1:], strict=True):
        run = list(range(start, end))
        offset = (lcg.draw() * len(run)) >> 32
        order += run[offset:] + run[:offset]
    return order


def launch_by_owner(rule, nx, base, chunks, lanes, rates, seed, passes, order="SEQ"):
    """Each lane's table after the given passes from `base`, its visits and the entries it holds."""
    tables, counts, holds = [], [], []
    for dpu, chunk in enumerate(chunks):
        for lane, rows in enumerate(chunk_rows(chunk, lanes)):
            table, visits = base.copy(), np.zeros(base.shape, np.int64)
            held = np.zeros(base.shape, bool)
            for s, a, *_ in rows:
                held[:, s, a] = True
            for p in passes:
                number, whole = (dpu * lanes + lane) % U32, max(len(rows), 1)
                index = list(range(len(rows)))
                if order == "RAN":
                    index = rotated(rows, stream(seed, p, number, 1))
                draws = stream(seed, p, number, 2)
                visits += run_pass(rule, nx, table, rows, index, whole, rates, draws, base)
            tables.append(table)
            counts.append(visits)
            holds.append(held)
    return np.stack(tables), np.stack(counts), np.stack(holds)


def train(
    transitions,
    num_states,
    num_actions,
    num_dpus,
    *,
    rule,
    numerics,
    order="SEQ",
    stride=4,
    block=128,
    passes=1,
    period=1,
    merging="visits",
    seed=0,
    alpha=0.1,
    gamma=0.95,
    epsilon=0.1,
    lanes=0,
):
    """The final table [K, S, A]; `transitions` has NumPy columns. With `lanes`, by owner."""
    nx = NUMERICS[numerics]()
    rows = encode(transitions, nx)
    if lanes:
        rows.sort(key=lambda row: row[:2])  # a stable sort
    chunks = chunk_rows(rows, num_dpus)
    rates = coefficients(nx, alpha, gamma, epsilon)
    merged = zeros(rule, nx, num_states, num_actions)
    rate_scale = {"fp32": None, "int32_scaled": 10_000, "int32_pow2": 256}[numerics]
    effective = np.float32(alpha) if rate_scale is None else np.float32(rates[0] / rate_scale)
    for first in range(0, passes, period):
        done = range(first, min(first + period, passes))
        if lanes:
            made = launch_by_owner(rule, nx, merged, chunks, lanes, rates, seed, done, order)
            tables, visits, holds = made
            merged = merge_by_owner(merging, tables, merged, visits, holds, effective)
            continue
        tables, visits = launch(rule, nx, merged, chunks, order, stride, block, rates, seed, done)
        merged = merge(merging, tables, merged, visits, effective)
    return merged
