"""Workers in simulated time, against closed forms worked out by hand."""

import pytest

from accel_rl.compose.simulate import Get, Put, Tokens, Work, WorkerSpan, simulate


def alone(step, other):
    return 1.0


def steps(*actions):
    yield from actions


def ends(spans, worker):
    return [span.end for span in spans if span.worker == worker]


def test_workers_that_share_nothing_take_their_own_time():
    spans = simulate(
        {"a": steps(Work("x", 2.0), Work("y", 1.0)), "b": steps(Work("z", 2.5))}, {}, alone
    )
    assert WorkerSpan("a", "x", 0.0, 2.0) in spans
    assert ends(spans, "a") == [2.0, 3.0]
    assert ends(spans, "b") == [2.5]


def test_steps_slow_each_other_only_while_both_run():
    # a does half of its 2 s while b does its 1 s at half speed; then a goes on alone.
    spans = simulate(
        {"a": steps(Work("x", 2.0)), "b": steps(Work("y", 1.0))},
        {},
        lambda step, other: {"x": 2.0, "y": 2.0}[step],
    )
    assert ends(spans, "b") == [pytest.approx(2.0)]
    assert ends(spans, "a") == [pytest.approx(3.0)]


def test_slowdowns_of_several_multiply():
    three = {name: steps(Work(name, 1.0)) for name in "abc"}
    spans = simulate(three, {}, lambda step, other: 1.5)
    assert [span.end for span in spans] == pytest.approx([1.5**2] * 3)


def test_a_consumer_waits_and_a_full_queue_holds_the_producer():
    def produce():
        for _ in range(4):
            yield Work("make", 1.0)
            yield Put("q")

    def consume():
        for _ in range(4):
            yield Get("q")
            yield Work("use", 3.0)

    spans = simulate({"p": produce(), "c": consume()}, {"q": Tokens(0, 1)}, alone)
    assert ends(spans, "c") == [4.0, 7.0, 10.0, 13.0]
    # One may lie in the queue: the fourth is made when the second was taken, at 4 s.
    assert ends(spans, "p") == [1.0, 2.0, 3.0, 5.0]


def test_who_waited_goes_on_after_the_handoff():
    spans = simulate(
        {"p": steps(Work("make", 1.0), Put("q")), "c": steps(Get("q"), Work("use", 1.0))},
        {"q": Tokens()},
        alone,
        handoff=0.25,
    )
    assert [(span.step, span.end) for span in spans] == [
        ("make", 1.0),
        ("handoff", 1.25),
        ("use", 2.25),
    ]


def test_workers_that_wait_for_one_another_are_an_error():
    both = {"a": steps(Get("q"), Put("r")), "b": steps(Get("r"), Put("q"))}
    with pytest.raises(RuntimeError, match="wait for one another"):
        simulate(both, {"q": Tokens(), "r": Tokens()}, alone)
