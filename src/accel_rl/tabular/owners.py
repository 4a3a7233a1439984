"""Training by owner: each lane of a DPU updates few entries, from rows that belong to them alone.

A log partitioned by owner is sorted by entry. Each DPU has a slice of it, cut into lanes; the rows
of one entry in a lane are a run. During a period all targets come from the table that was broadcast
last, so a row needs one value of the next state, and runs do not depend on each other.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.tabular import random
from accel_rl.tabular.orders import RunPlaces, place_runs
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import TabularRow, from_words
from accel_rl.tabular.rule import Coefficients, TabularRule, learning_first, move_towards
from accel_rl.types import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Runs:
    """Runs of D DPUs, at most R each, in the order of their rows."""

    entry: Array  # [D, R] int32, s * A + a; S * A where there is no run
    rows: Array  # [D, R] int32, 0 where there is no run


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Lanes:
    """Rows of D DPUs in L lanes of at most T rows each."""

    index: Array  # [D, T, L] int32, of the row's value in the value table, without drawn columns
    reward: Array  # [D, T, L] in the numerics' dtype
    first: Array  # [D, T, L] bool, the first row of a run
    valid: Array  # [D, T, L] bool, false for padding
    slot: Array  # [D, T, L] int32, the row's run, of R
    begin: Array  # [D, R] int32, t * L + lane of each run's first row; T * L where there is no run
    last: Array  # [D, R] int32, t * L + lane of each run's last row


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Steps:
    """Rows of lanes, M = D * L of them, in the form that `sweep` reads: a step of all at a time."""

    index: Array  # [T, M] int32
    reward: Array  # [T, M] in the numerics' dtype
    first: Array  # [T, M] bool
    begin: Array  # [D, R] int32, t * M + lane of each run's first row; T * M where there is no run
    last: Array  # [D, R] int32, t * M + lane of each run's last row
    rows: Array  # [D, R] int32
    places: RunPlaces | None  # of rows in their runs, for the order RAN


def columns(rule: TabularRule, num_actions: int) -> int:
    """Return the number of values that a rule may want of one next state, C."""
    widths = {"none": 1, "logged": num_actions, "epsilon_greedy": num_actions + 1, "table": 2}
    if rule.choice is None:
        raise ValueError(f"rule {rule.name!r} needs a choice to train by owner: see build_rule")
    return widths[rule.choice]


def value_table(program: PassProgram, table: Array, c: Coefficients) -> Array:
    """Compute gamma * v of every next state, for all choices of the rule.

    Args:
      program: the pass, static.
      table: [K * S * A] in the numerics' dtype, the table broadcast last.
      c: the rates.

    Returns:
      [(S + 1) * C] in the numerics' dtype. Column c of row s: for "logged", action c; for
      "epsilon_greedy", 0 is the greedy action and 1 + a action a; for "table", the one that learns.
      Row S is 0, for rows that end an episode.
    """
    rule, width = program.rule, columns(program.rule, program.num_actions)
    q = table.reshape(rule.tables, program.num_states, program.num_actions)
    column = jnp.arange(width, dtype=jnp.int32)[None, :]
    drawn = rule.choice == "epsilon_greedy"
    zeros = jnp.zeros((1, width), jnp.int32)
    row = TabularRow(
        entry=zeros,
        next_entry=zeros,
        reward=zeros.astype(table.dtype),
        next_action=jnp.maximum(column - 1, 0) if drawn else column,
        bootstrap=zeros == 0,
        valid=zeros == 0,
        greedy=(column == 0) & drawn,
        second=(column == 1) & (rule.choice == "table"),
    )
    ahead = [[q[k, :, a, None] for a in range(program.num_actions)] for k in range(rule.tables)]
    values = rule.target(learning_first(ahead, row), row, c)
    values = jnp.broadcast_to(values, (program.num_states, width)).reshape(-1)
    # XLA would compute a value again for each row that reads it, in spite of a barrier. It does not
    # fuse a scatter with what reads its result.
    index = jnp.arange(len(values), dtype=jnp.int32)
    return jnp.zeros(len(values) + width, table.dtype).at[index].set(values, unique_indices=True)


def find_runs(program: PassProgram, words: Array, lengths: Array) -> Runs:
    """Find the runs of rows [D, T, 4], of which the first `lengths` [D] are real."""
    first, slot = _run_of_row(program, words, lengths)
    shape = words.shape[0], program.runs
    dpu = jnp.arange(words.shape[0], dtype=jnp.int32)[:, None]
    none = jnp.full(shape, program.size, jnp.int32)
    real = jnp.arange(words.shape[1], dtype=jnp.int32) < lengths[:, None]
    return Runs(
        none.at[dpu, jnp.where(first, slot, program.runs)].set(words[..., 0], mode="drop"),
        jnp.zeros(shape, jnp.int32).at[dpu, slot].add(real.astype(jnp.int32), mode="drop"),
    )


def arrange(program: PassProgram, words: Array, lengths: Array) -> Lanes:
    """Arrange rows [D, T, 4], of which the first `lengths` [D] are real, in lanes."""
    count = program.lanes
    capacity = -(-words.shape[1] // count)
    lane = jnp.arange(count, dtype=jnp.int32)
    short, longer = lengths // count, lengths % count
    size = short[:, None] + (lane < longer[:, None]).astype(jnp.int32)  # [D, L]
    start = short[:, None] * lane + jnp.minimum(lane, longer[:, None])
    step = jnp.arange(capacity, dtype=jnp.int32)[:, None]
    valid = step < size[:, None, :]  # [D, T, L]
    position = jnp.where(valid, start[:, None, :] + step, 0)

    def in_lanes(of_row: Array) -> Array:
        return jnp.take_along_axis(of_row, position.reshape(len(of_row), -1), axis=1).reshape(
            position.shape
        )

    row = from_words(words, program.rule.numerics.dtype)
    state = row.next_entry // np.int32(program.num_actions)
    state = jnp.where(row.bootstrap, state, np.int32(program.num_states))
    index = state * np.int32(columns(program.rule, program.num_actions))
    if program.rule.choice == "logged":
        index = index + row.next_action
    first, slot = _run_of_row(program, words, lengths)
    rows = find_runs(program, words, lengths).rows
    ends = jnp.cumsum(rows, axis=1, dtype=jnp.int32)

    def place(position: Array) -> Array:
        lane, step = _lane_of(jnp.maximum(position, 0), lengths[:, None], count)
        return jnp.minimum(step * count + lane, capacity * count - 1)

    return Lanes(
        index=jnp.where(valid, in_lanes(index), 0),
        reward=in_lanes(row.reward),
        first=in_lanes(first) & valid,
        valid=valid,
        slot=in_lanes(slot),
        begin=jnp.where(rows > 0, place(ends - rows), capacity * count),
        last=place(ends - 1),
    )


def steps_of(program: PassProgram, lanes: Lanes, runs: Runs) -> Steps:
    """Transpose lanes, so that the rows of a step are contiguous."""
    num_dpus, capacity, count = lanes.index.shape
    dpu = jnp.arange(num_dpus, dtype=jnp.int32)[:, None]

    def place(position: Array) -> Array:
        step, lane = position // count, position % count
        return jnp.where(
            step < capacity, (step * num_dpus + dpu) * count + lane, capacity * num_dpus * count
        )

    def transposed(of_row: Array) -> Array:
        return jnp.moveaxis(of_row, 1, 0).reshape(capacity, -1)

    first = transposed(lanes.first)
    return Steps(
        index=transposed(lanes.index),
        reward=transposed(lanes.reward),
        first=first,
        begin=place(lanes.begin),
        last=place(lanes.last),
        rows=runs.rows,
        places=place_runs(first, transposed(lanes.valid)) if program.order.name == "RAN" else None,
    )


def run_starts(program: PassProgram, entry: Array, table: Array) -> Array:
    """Return the values of runs of `entry` [D, R] in `table` [K * S * A], [D, K, R].

    They are 0 where there is no run.
    """
    of_table = table.reshape(program.rule.tables, program.size)
    return jnp.moveaxis(of_table.at[:, entry].get(mode="fill", fill_value=0), 0, 1)


def sweep(
    program: PassProgram,
    steps: Steps,
    runs: Array,
    values: Array,
    c: Coefficients,
    keys: Array,
) -> Array:
    """Run one pass over all lanes.

    Args:
      program: the pass, static.
      steps: from `steps_of`.
      runs: [D, K * R] in the numerics' dtype, each run's value before the pass.
      values: from `value_table`.
      c: the rates.
      keys: uint32 [M], each lane's stream of draws; unused unless the rule draws.

    Returns:
      [D, K * R], each run's value after the pass.
    """
    nx, tables = program.rule.numerics, program.rule.tables
    shape = steps.index.shape
    index, second = steps.index, jnp.zeros(shape, bool)
    if program.rule.random:
        column, second = _draw(program, keys, c, shape)
        index = index + column
    target = nx.add(steps.reward, values.at[index].get(mode="clip"))
    before = jnp.split(runs, tables, axis=1)
    empty = jnp.zeros(shape[0] * shape[1], runs.dtype)
    starts = [empty.at[steps.begin].set(each, mode="drop").reshape(shape) for each in before]

    def step(q: list[Array], row: tuple[Array, ...]) -> tuple[list[Array], list[Array]]:
        aim, first, learns, *own = row
        q = [jnp.where(first, start, x) for start, x in zip(own, q, strict=True)]
        moved = [move_towards(nx, x, aim, c.alpha) for x in q]
        if tables == 2:
            moved = [jnp.where(learns, q[0], moved[0]), jnp.where(learns, moved[1], q[1])]
        return moved, moved

    zeros = [jnp.zeros(shape[1], runs.dtype)] * tables
    # Beyond the end of a lane its values go astray, but nobody reads them.
    _, after = jax.lax.scan(step, zeros, (target, steps.first, second, *starts))
    return jnp.concatenate(
        [each.reshape(-1).at[steps.last].get(mode="clip") for each in after], axis=1
    )


def lane_keys(
    program: PassProgram, dpus: Array, seed: Array, pass_index: Array, stream: int
) -> Array:
    """Return each lane's key of a stream, uint32 [D * L]; `dpus` [D] are global indices."""
    lane = jnp.arange(program.lanes, dtype=jnp.uint32)
    number = dpus[:, None] * np.uint32(program.lanes) + lane
    return random.stream_key(seed, pass_index, number.reshape(-1), stream)


def visit_counts(program: PassProgram, steps: Steps, c: Coefficients, keys: Array) -> Array:
    """Count the updates of each run in one pass, uint32 [D, K * R]; arguments as for `sweep`."""
    counts = steps.rows.astype(jnp.uint32)
    if program.rule.tables == 1:
        return counts
    second = jnp.zeros(steps.index.shape, bool)
    if program.rule.random:
        second = _draw(program, keys, c, steps.index.shape)[1]
    learned = second.astype(jnp.uint32)
    until = jnp.cumsum(learned, axis=0, dtype=jnp.uint32).reshape(-1)
    before = (until - learned.reshape(-1)).at[steps.begin].get(mode="clip")
    of_second = jnp.where(counts > 0, until.at[steps.last].get(mode="clip") - before, np.uint32(0))
    return jnp.concatenate([counts - of_second, of_second], axis=1)


def _run_of_row(program: PassProgram, words: Array, lengths: Array) -> tuple[Array, Array]:
    """Return which rows [D, T] begin a run, and the run of each, of R."""
    position = jnp.arange(words.shape[1], dtype=jnp.int32)
    _, step = _lane_of(position, lengths[:, None], program.lanes)
    entry = words[..., 0]
    changed = entry != jnp.roll(entry, 1, axis=1)
    first = ((step == 0) | changed) & (position < lengths[:, None])
    return first, jnp.cumsum(first, axis=1, dtype=jnp.int32) - 1


def _lane_of(position: Array, length: Array, lanes: int) -> tuple[Array, Array]:
    """Return the lane of a row of a DPU, and its place there; the first lanes are longer by one."""
    short, longer = length // lanes, length % lanes
    boundary = longer * (short + 1)
    late = position - boundary
    width = jnp.maximum(short, 1)
    early = position < boundary
    lane = jnp.where(early, position // (short + 1), longer + late // width)
    return lane, jnp.where(early, position % (short + 1), late % width)


def _draw(
    program: PassProgram, keys: Array, c: Coefficients, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Make the choices of rows [T, M]: column of the value table, and whether table 1 learns."""
    capacity, count = shape
    draws = random.lcg_draws(keys, 2 * capacity).reshape(count, capacity, 2)
    empty = jnp.zeros(shape, jnp.int32)
    no = empty != 0
    row = TabularRow(empty, empty, empty, empty, no, no, no, no)
    row = program.rule.resolve(row, draws.transpose(2, 1, 0), c, program.size, program.num_actions)
    if program.rule.choice == "table":
        return row.second.astype(jnp.int32), row.second
    return jnp.where(row.greedy, 0, 1 + row.next_action), no
