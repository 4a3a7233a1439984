"""`accel-rl import`: the same log from each kind of file, and what is refused."""

import numpy as np
import pytest
from commands import as_json, invoke, succeed

from accel_rl import datasets

# Two episodes: 0 1 3 terminates, 4 0 2 is cut.
LOG = {
    "state": [0, 1, 4, 0],
    "action": [1, 2, 1, 0],
    "reward": [0.5, 10.0, -1.0, 0.0],
    "next_state": [1, 3, 0, 2],
    "done": [0, 1, 0, 0],
}
CSV = "state,action,reward,next_state,done\n0,1,0.5,1,0\n1,2,10,3,1\n4,1,-1,0,0\n0,0,0,2,0\n"
BLANKS = "0 1 0.5 1\n1 2 10 3\n\n4 1 -1 0 # another\n0 0 0 2\n"
COLUMNS = ("state", "action", "reward", "next_state", "discount", "next_action")


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path):
    transitions = datasets.load(path).transitions
    return [tuple(np.asarray(getattr(transitions, name)).tolist()) for name in COLUMNS]


EXPECTED = [(0, 1, 4), (1, 2, 1), (0.5, 10.0, -1.0), (1, 3, 0), (1.0, 0.0, 1.0), (2, 0, 0)]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (CSV, ()),
        ("\ufeff" + CSV.replace(",", ";").replace("\n", "\r\n\r\n"), ()),
        ("# " + CSV, ()),
        (CSV.replace(",", "  ").replace("0\n", "0 \n"), ()),
        (
            CSV.replace("done", "Truncated").replace(",1\n", ",TRUE\n"),
            ("--terminated", "Truncated"),
        ),
        (CSV.replace("state,", "s,", 1), ("--state", "s", "--num-states", 5)),
        (BLANKS, ("--episode-end", "terminated")),
    ],
)
def test_text_in_its_kinds(there, content, options):
    (there / "own.csv").write_bytes(content.encode())
    figures = as_json("import", "own.csv", "--out", "own.npz", *options)
    assert rows("own.npz") == EXPECTED
    counts = ("transitions", "episodes", "terminated", "dropped", "num_states", "num_actions")
    assert [figures[name] for name in counts] == [3, 2, 1, 1, 5, 3]
    info = datasets.load("own.npz").info
    assert (info.environment, info.policy) == ("own", "unknown, imported from own.csv")


def test_arrays_all_rows_and_what_is_said(there):
    np.savez(there / "plain.npz", **LOG)
    result = invoke("import", "plain.npz", "--out", "own.npz", "--all-rows")
    assert result.exit_code == 0
    assert "own.npz: 4 transitions in 2 episodes, 1 of them terminated; 5 states" in result.stdout
    assert "column done is taken for terminated" in result.stderr
    np.savez(there / "plain.npz", **LOG, next_action=[2, 0, 0, 1])
    text = succeed("import", "plain.npz", "--out", "own.npz", "--overwrite")
    assert "left out" not in text
    assert rows("own.npz")[5] == (2, 0, 0, 1)


def test_which_columns_say_what_ended(there):
    def terminated(*words, **columns):
        np.savez(there / "plain.npz", **LOG | columns)
        out = as_json(
            "import", "plain.npz", "--out", "own.npz", "--all-rows", "--overwrite", *words
        )
        discount = datasets.load("own.npz").transitions.discount
        assert out["terminated"] == np.sum(np.asarray(discount) == 0)
        return np.flatnonzero(np.asarray(discount) == 0).tolist()

    assert terminated() == [1]
    assert terminated(done=[0, 1, 0, 1], truncated=[0, 1, 0, 0]) == [3]  # done means any end
    assert terminated(terminated=[0, 0, 0, 1], discount=[0.9] * 4) == [3]
    assert terminated(discount=[0.9] * 4) == [1]
    assert terminated("--discount", "discount", discount=[1, 0, 1, 0]) == [1, 3]
    assert terminated("--truncated", "done") == []


def test_an_environments_tables_tell_ends_in_text(there):
    # FrozenLake 4x4: right from 14 is the goal; down from 0 and right from 4 falls into the hole.
    (there / "log.txt").write_text("14 2 1 15\n0 1 0 4\n4 2 0 5\n0 0 0 0\n")
    words = ("import", "log.txt", "--out", "lake.npz", "--all-rows", "--env", "FrozenLake-v1")
    assert as_json(*words)["terminated"] == 2
    info = datasets.load("lake.npz").info
    assert (info.environment, info.num_states, info.num_actions) == ("FrozenLake-v1", 16, 4)


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (CSV.replace("10,3", "ten,3"), (), "own.csv: line 3 (row 1): reward is 'ten', must be a n"),
        (CSV.replace("10,3", "nan,3"), (), "own.csv: line 3 (row 1): reward is nan, must be finit"),
        (CSV.replace("4,1", "-4,1"), (), "line 4 (row 2): state is -4, must be a whole number in"),
        (CSV, ("--num-states", 4), "line 4 (row 2): state is 4, must be a whole number in [0, 4)"),
        (CSV.replace("2,0\n", "2\n"), (), "own.csv: line 5: 4 fields, the header has 5"),
        (CSV.replace("reward", "gain"), (), "no column 'reward', it has 'state, action, gain, nex"),
        (CSV.replace("done", "end"), (), "nothing says where episodes end: name a column by --ter"),
        (CSV, ("--truncated", "cut"), "no column 'cut', it has 'state, action, reward, next_state"),
        (CSV.partition("\n")[2], (), "line 1: no header; the first line must name the columns"),
        (CSV.partition("\n")[0], (), "own.csv: no rows below the header"),
        ("", (), "own.csv: no rows below the header"),
        (BLANKS, (), "nothing says where episodes end"),
        (BLANKS.replace("4 1", "4.5 1"), ("--episode-end", "truncated"), "line 4 (row 2): state i"),
        (BLANKS.replace("4 1", "4"), ("--episode-end", "truncated"), "line 4: 3 fields, must be 4"),
        ("0 0 1 2\n3 0 1 1\n", ("--episode-end", "truncated"), "none of the 2 rows has a known ne"),
        ("PK\x03\x04", (), "no column 'state'"),
        ("PAR1\x15\x00", (), "own.csv: not text, nor an .npz file: write its columns as CSV"),
    ],
)  # fmt: skip
def test_faults_are_a_line_and_no_file(there, content, options, says):
    (there / "own.csv").write_text(content)
    result = invoke("import", "own.csv", "--out", "own.npz", *options)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: Invalid value for FILE: own.csv: ")
    assert says in line
    assert [path.name for path in there.iterdir()] == ["own.csv"]


def test_what_train_cannot_read_leads_here(there):
    (there / "own.csv").write_text(CSV)
    np.savez(there / "plain.npz", **LOG)
    for name in ("own.csv", "plain.npz"):
        result = invoke("train", name)
        assert result.exit_code == 2
        assert f"{name}: " in result.stderr
        assert "`accel-rl import`, or datasets.from_arrays, takes a log" in result.stderr
    succeed("import", "own.csv", "--out", "own.npz")
    result = invoke("train", "own.npz")
    assert result.exit_code == 2
    assert "--dpus: 2,000 DPUs, the default, are more than the 3 transitions" in result.stderr
    assert "own.npz; give --dpus from 1 to 3" in result.stderr
    for words, says in (
        (("own.csv", "--out", "own.npz"), "own.npz exists; --overwrite replaces it"),
        (("own.csv", "--out", "own.txt"), "own.txt must end in .npz"),
        (("own.npz", "--out", "x.npz"), "own.npz: a dataset that accel_rl wrote: train takes it"),
        (("absent.csv", "--out", "x.npz"), "absent.csv: No such file"),
        (("own.csv", "--out", "x.npz", "--env", "None-v1"), "--env"),
    ):
        result = invoke("import", *words)
        assert result.exit_code == 2
        assert says in result.stderr
