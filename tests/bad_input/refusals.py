"""Tables of calls that must be refused, and how each row is judged.

A table is a dict from public names, as `package.name` below accel_rl or pim_emu, to rows of a call,
the exact type of its error and a part of the message.
"""

import pytest

NAN, INF = float("nan"), float("inf")


def rows_of(table):
    """The rows as parameters of a test, each with the public name as its id."""
    return [
        pytest.param(*row, id=f"{name}-{number}")
        for name, rows in table.items()
        for number, row in enumerate(rows)
    ]


def check_refused(call, error, says):
    """The call raises exactly that type, and the message has that part."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error, f"a subclass, {type(caught.value)}: {caught.value}"
    assert says in str(caught.value)
