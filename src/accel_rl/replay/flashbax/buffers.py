"""Constructors of trajectory, flat and item buffers, uniform and prioritised.

A flat buffer samples sequences of two steps, an item buffer sequences of one.
"""

from accel_rl.arguments import whole
from accel_rl.replay.flashbax.containers import PrioritisedTrajectoryBuffer, TrajectoryBuffer
from accel_rl.replay.flashbax.trajectory import Form, Sizes, make_prioritised, make_uniform


def make_trajectory_buffer(
    add_batch_size: int,
    sample_batch_size: int,
    sample_sequence_length: int,
    period: int,
    min_length_time_axis: int,
    max_size: int | None = None,
    max_length_time_axis: int | None = None,
) -> TrajectoryBuffer:
    """Make a buffer that samples sequences uniformly.

    Args:
      add_batch_size: sequences added together, B.
      sample_batch_size: sequences in a sample.
      sample_sequence_length: steps of a sampled sequence, L.
      period: steps between the starts of sequences, counted from the oldest stored step.
      min_length_time_axis: steps required to sample.
      max_size: steps stored over all of the batch axis; instead of `max_length_time_axis`.
      max_length_time_axis: steps stored for each element of the batch axis, T.
    """
    length = _length(add_batch_size, max_size, max_length_time_axis)
    sizes = add_batch_size, sample_batch_size, sample_sequence_length, period
    return make_uniform(Form(), Sizes(*sizes, min_length_time_axis, length))


def make_prioritised_trajectory_buffer(
    add_batch_size: int,
    sample_batch_size: int,
    sample_sequence_length: int,
    period: int,
    min_length_time_axis: int,
    max_size: int | None = None,
    max_length_time_axis: int | None = None,
    priority_exponent: float = 0.6,
    device: str = "cpu",
) -> PrioritisedTrajectoryBuffer:
    """Make a buffer that samples sequences in proportion to a power of their priorities.

    Args:
      add_batch_size: sequences added together, B.
      sample_batch_size: sequences in a sample.
      sample_sequence_length: steps of a sampled sequence, L.
      period: steps between the starts of sequences, counted from the first step ever added.
      min_length_time_axis: steps required to sample.
      max_size: steps stored over all of the batch axis.
      max_length_time_axis: T, rounded down to a multiple of the period.
      priority_exponent: in [0, 1].
      device: ignored.
    """
    length = _length(add_batch_size, max_size, max_length_time_axis)
    length -= length % whole("period", period, 1)
    sizes = add_batch_size, sample_batch_size, sample_sequence_length, period
    made = Sizes(*sizes, min_length_time_axis, length)
    return make_prioritised(Form(), made, priority_exponent)


def make_flat_buffer(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool = False,
    add_batch_size: int | None = None,
) -> TrajectoryBuffer:
    """Make a buffer that samples pairs of consecutive steps uniformly.

    Args:
      max_length: steps stored over all of the batch axis.
      min_length: transitions required to sample.
      sample_batch_size: transitions in a sample.
      add_sequences: True if added batches have a time axis.
      add_batch_size: size of the batch axis of added batches; None for batches without one.
    """
    return make_uniform(
        *_flat(max_length, min_length, sample_batch_size, add_sequences, add_batch_size)
    )


def make_prioritised_flat_buffer(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool = False,
    add_batch_size: int | None = None,
    priority_exponent: float = 0.6,
    device: str = "cpu",
) -> PrioritisedTrajectoryBuffer:
    """Make a buffer that samples pairs of consecutive steps by priority.

    Args:
      max_length: steps stored over all of the batch axis.
      min_length: transitions required to sample.
      sample_batch_size: transitions in a sample.
      add_sequences: True if added batches have a time axis.
      add_batch_size: size of the batch axis of added batches; None for batches without one.
      priority_exponent: in [0, 1].
      device: ignored.
    """
    made = _flat(max_length, min_length, sample_batch_size, add_sequences, add_batch_size)
    return make_prioritised(*made, priority_exponent)


def make_item_buffer(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool = False,
    add_batches: bool = False,
) -> TrajectoryBuffer:
    """Make a buffer that samples single items uniformly.

    Args:
      max_length: items stored.
      min_length: items required to sample.
      sample_batch_size: items in a sample.
      add_sequences: True if added batches have a time axis.
      add_batches: True if added batches have a batch axis.
    """
    made = _item(max_length, min_length, sample_batch_size, add_sequences, add_batches)
    return make_uniform(*made)


def make_prioritised_item_buffer(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool = False,
    add_batches: bool = False,
    priority_exponent: float = 0.6,
    device: str = "cpu",
) -> PrioritisedTrajectoryBuffer:
    """Make a buffer that samples single items by priority.

    Args:
      max_length: items stored.
      min_length: items required to sample.
      sample_batch_size: items in a sample.
      add_sequences: True if added batches have a time axis.
      add_batches: True if added batches have a batch axis.
      priority_exponent: in [0, 1].
      device: ignored.
    """
    made = _item(max_length, min_length, sample_batch_size, add_sequences, add_batches)
    return make_prioritised(*made, priority_exponent)


def _length(add_batch_size: int, max_size: int | None, length: int | None) -> int:
    """Return the length of the time axis from the one argument that is given."""
    if (max_size is None) == (length is None):
        raise ValueError(
            f"either max_size or max_length_time_axis must be given, got {max_size} and {length}"
        )
    if length is not None:
        return length
    return whole("max_size", max_size, 1) // whole("add_batch_size", add_batch_size, 1)


def _flat(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool,
    add_batch_size: int | None,
) -> tuple[Form, Sizes]:
    whole("sample_batch_size", sample_batch_size, 1, max_length)
    batch = 1 if add_batch_size is None else whole("add_batch_size", add_batch_size, 1)
    form = Form(add_batch_size is not None, add_sequences, "pairs")
    return form, Sizes(batch, sample_batch_size, 2, 1, min_length // batch + 1, max_length // batch)


def _item(
    max_length: int,
    min_length: int,
    sample_batch_size: int,
    add_sequences: bool,
    add_batches: bool,
) -> tuple[Form, Sizes]:
    whole("sample_batch_size", sample_batch_size, 1, max_length)
    form = Form(add_batches, add_sequences, "items")
    return form, Sizes(1, sample_batch_size, 1, 1, min_length, max_length)
