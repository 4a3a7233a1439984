"""Tables of the native core in this process, and what tests need of them."""

from optional import require
from table_model import Drawn, Refused

from accel_rl.remote import module

require("replay server")
native = module.native()

NAMES = {status: name for name, status in native.STATUSES.items()}


def make(config, columns, name="table"):
    """A table as a config of the model says."""
    return native.Table(
        name=name,
        capacity=config.capacity,
        columns=columns,
        sampler=config.sampler,
        priority_exponent=config.exponent,
        min_size=config.min_size,
        ratio=config.ratio,
        groups=config.groups,
        csp_ratio=config.csp_ratio,
        max_priority=config.max_priority,
    )


def status_of(error):
    """The name of the status that a native error carries."""
    return NAMES[error.args[1]]


def call(function, *arguments):
    """What the function returns; its errors as the model's."""
    try:
        return function(*arguments)
    except native.Error as error:
        raise Refused(status_of(error)) from error


def sample(table, seed, batch):
    """A sample in arrays of its own, as the model gives it."""
    arrays = native.Batch(table, batch)
    call(table.sample, seed, arrays)
    return Drawn(
        arrays.slots,
        arrays.generations,
        arrays.probabilities,
        list(arrays.columns.values()),
        arrays.size,
        arrays.total,
    )
