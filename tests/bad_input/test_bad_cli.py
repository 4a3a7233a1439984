"""Bad input to the command: one line, exit code 2, and every file as it was.

Further rows: tests/cli/test_bad_input.py, test_training_cli.py, test_compose_cli.py,
test_apex_cli.py.
"""

import os
import shutil
import signal
import subprocess

import processes
import pytest
from optional import needs
from typer.testing import CliRunner

from accel_rl.cli.app import app
from accel_rl.io import run_folder

# A training that is refused before anything is compiled.
DQN = "train dqn CartPole-v1 --out new"
PLAN = "compose plan config.toml --out new environment.name=CartPole-v1"
ROWS = [
    ("nonsense", "No such command 'nonsense'"),
    ("--nonsense", "No such option: --nonsense"),
    ("collect Taxi-v3 --out folder", "folder is a directory"),
    ("collect Taxi-v3 --out text/x.npz", "directory text does not exist"),
    ("collect Taxi-v3 --out junk.npz", "--out: junk.npz exists; --overwrite replaces it"),
    ("collect Taxi-v3 --out x.csv", "--out: x.csv must end in .npz, the format of datasets"),
    ("collect Taxi-v3 --out x.npz --num 1.5", "'--num': Input should be a valid integer"),
    ("collect Taxi-v3 --out x.npz --epsilon nan", "'--epsilon': Input should be less than"),
    ("collect Taxi-v3 --out x.npz --policy text", "text is not a table that accel_rl wrote"),
    ("import junk.npz --out x.npz", "FILE: junk.npz: not an .npz file, or cut short"),
    ("import folder --out x.npz", "FILE: folder: Is a directory"),
    ("train", "say what to train: AGENT ENV, or ENV|DATASET.npz"),
    ("train text", "text: not an .npz file of accel_rl, or damaged"),
    ("train junk.npz", "junk.npz: not an .npz file of accel_rl, or damaged"),
    ("train folder", "no environment with tables is named 'folder'; known: FrozenLake-v1"),
    ("train Taxi-v3 --passes 1.5", "'--passes': Input should be a valid integer"),
    ("train Taxi-v3 --out text", "--out: text cannot be made: "),
    ("train Taxi-v3 --out text/run", "--out: text/run cannot be made: "),
    ("train dqn", "no environment is named: give ENV"),
    (f"{DQN} agent.learning_rate=nan", "agent.learning_rate must be a finite number, got NaN"),
    (f"{DQN} nonsense", "settings are written section.name=value, got 'nonsense'"),
    (f"{DQN} --steps 1.5", "training.steps must be a valid integer, got 1.5"),
    (f"{DQN} --replay x", "no sampler is named 'x'; there are uniform, prioritised"),
    (f"{DQN} --config absent.json", "absent.json: No such file or directory"),
    (f"{DQN} --config text", "text is not a TOML file"),
    (f"{DQN} --config folder", "folder: Is a directory"),
    (f"{DQN} agent.hidden=[0]", "hidden must be at least 1, got 0"),
    (f"{DQN} replay.batch_size=0", "batch_size must be at least 1, got 0"),
    ("train ddpg CartPole-v1 --out new", "ddpg needs a Box action space of floats"),
    ("resume folder", "RUN_DIR: folder is not the folder of a run: no run.json"),
    ("resume text", "RUN_DIR: text is not the folder of a run: no run.json"),
    ("resume broken", "broken/run.json is not a JSON file"),
    ("sweep dqn CartPole-v1 --out new", "a sweep needs a setting with several values"),
    ("sweep dqn CartPole-v1 agent.tau=1, --out new", "values must be comma-separated"),
    ("evaluate text", "text is not a table that accel_rl wrote (absent, no .npz file, or cut"),
    ("evaluate broken", "broken/run.json is not a JSON file"),
    ("evaluate folder --episodes 0", "'--episodes': Input should be greater than or equal to 1"),
    ("plot folder", "folder is not the folder of a run: no run.json"),
    ("plot broken", "broken/run.json is not a JSON file"),
    ("compose plan absent.toml", "absent.toml: No such file or directory"),
    ("compose plan text", "text is not a TOML file"),
    ("compose plan folder", "folder: Is a directory"),
    (f"{PLAN} replay.batch_size=1.5", "batch_size must be a valid integer, got 1.5"),
    (f"{PLAN} replay.batch_size=0", "batch_size must be at least 1, got 0"),
    (f"{PLAN} compose=3", "no setting is named 'compose'"),
    ("compose run text", "text/config.json: Not a directory"),
    ("compose report folder", "folder is not the folder of a run: no plan.json"),
    ("envs show", "Missing argument 'NAME'"),
    ("doctor extra", "unexpected extra argument(s) (extra)"),
    ("demo --out text", "--out: text: File exists"),
    ("demo --out broken", "--out: broken/run.json is not a JSON file"),
    ("envs show FrozenLake-v1 --passenger R", "only Taxi has a passenger, not FrozenLake-v1"),
    ("apex CartPole-v1 --server nowhere", 'address must be "tcp://host:port"'),
    ("apex CartPole-v1 --out text", "text is not a directory"),
    (
        "apex CartPole-v1 --out new agent.learning_rate=nan",
        "agent.learning_rate must be a finite number, got NaN",
    ),
    ("apex CartPole-v1 --out new apex.run=", "settings are written section.name=value"),
    ("replay-server --port 70000", "'--port': Input should be less than or equal to 65535"),
]
OF_SERVER = [
    ("replay-server --secret-file absent", "absent: No such file or directory"),
    ("replay-server --secret-file text", "secret must have 16 bytes or more, got 5"),
    ("replay-server --snapshot text", "text: not a snapshot"),
    ("replay-server --durability log", "durability 'log' takes a snapshot_path"),
    ("replay-server --unix text", "cannot listen on text"),
]


def contents(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A working directory with files that are not what they should be."""
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "keep").write_text("this")
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04junk")
    (tmp_path / "config.toml").write_text('agent.name = "dqn"\n')
    return tmp_path


@pytest.mark.parametrize(("words", "says"), ROWS, ids=[words for words, _ in ROWS])
def test_refuses(there, words, says):
    check_refused(there, words, says)


@needs("replay server")
@pytest.mark.parametrize(("words", "says"), OF_SERVER, ids=[words for words, _ in OF_SERVER])
def test_a_server_refuses(there, words, says):
    check_refused(there, words, says)


def check_refused(there, words, says):
    before = contents(there)
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: ")
    assert says in line
    assert contents(there) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused_before_the_work(there):
    (there / "folder").chmod(0o500)
    result = CliRunner().invoke(app, ["train", "Taxi-v3", "--out", "folder/run"])
    assert result.exit_code == 2
    assert "folder/run cannot be written to: no permission in" in result.stderr


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no permission to mount a small tmpfs: a full disk is not tested")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(disk):
    out = disk / "lake.npz"
    out.write_bytes(b"of before")
    words = ["collect", "FrozenLake-v1", "--num", "40000", "--out", str(out), "--overwrite"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert result.stderr == f"accel-rl: {out}: No space left on device\n"
    assert contents(disk) == {out: b"of before"}


# Real processes that say when they are in the midst of it, and then take their time.
COLLECTS = """
from accel_rl.datasets import storage

def slowly(file, *arrays, **columns):
    file.write(b"half")
    file.flush()
    begin()

storage.np.savez = slowly
sys.argv = "accel-rl collect FrozenLake-v1 --num 100 --out lake.npz --overwrite".split()
"""
EXPERIMENTS = """
from accel_rl.experiment import swiftrl

swiftrl.explore = lambda *words: begin()
sys.argv = "accel-rl demo --quick --out demo".split()
"""
PROCESS = """
import sys, time

def begin():
    print("began", flush=True)
    while True:
        time.sleep(0.1)

{}
from accel_rl.cli.app import main
main()
"""


@pytest.mark.parametrize(
    ("of", "number", "code", "says"),
    [
        (COLLECTS, signal.SIGINT, 130, "accel-rl: interrupted"),
        (COLLECTS, signal.SIGTERM, 143, "accel-rl: terminated"),
        (EXPERIMENTS, signal.SIGINT, 130, "accel-rl: interrupted"),
    ],
    ids=["collect-SIGINT", "collect-SIGTERM", "demo-SIGINT"],
)
def test_interrupted_in_the_midst(there, of, number, code, says):
    (there / "lake.npz").write_bytes(b"of before")
    (there / "demo").mkdir()
    for name in ("results.json", "details.json", "config.json"):
        (there / "demo" / name).write_text("of before")
    run_folder.begin_run(there / "demo", "demo", "accel-rl demo", [0], {})
    before = contents(there)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with processes.start("-c", PROCESS.format(of), **pipes) as process:
        while process.stdout.readline() != "began\n":
            assert process.poll() is None, process.stderr.read()
        process.send_signal(number)
        _, said = process.communicate(timeout=processes.LIMIT)
    assert process.returncode == code
    assert said.splitlines()[-1] == says
    assert contents(there) == before
