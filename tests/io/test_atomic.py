import os
import signal
import stat
import subprocess
import sys

import pytest

from accel_rl.io import atomic_write


def test_writes_bytes_and_text_and_leaves_nothing_else(tmp_path):
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"\x00\xff")
    with atomic_write(tmp_path / "b.txt", "w") as file:
        file.write("ε\r\né\n")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\xff"
    assert (tmp_path / "b.txt").read_bytes() == "ε\r\né\n".encode()
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "b.txt"]


def test_reader_sees_the_old_content_until_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_failure_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def stopped_halfway():
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_halfway()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_failure_of_the_last_step_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"), atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    program = """
import os, signal, sys
from accel_rl.io import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"x" * 100_000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert [name.startswith(".a.") for name in sorted(os.listdir(tmp_path))] == [True, False]


def test_content_is_on_disk_before_the_name_and_the_name_before_return(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor):
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        calls.append(("fsync", kind, os.fstat(descriptor).st_size if kind == "file" else None))
        fsync(descriptor)

    def record_replace(source, target):
        calls.append(("replace", os.path.dirname(source) == os.path.dirname(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    with atomic_write(tmp_path / "a") as file:
        file.write(b"12345")
    assert calls == [("fsync", "file", 5), ("replace", True), ("fsync", "directory", None)]


def test_keeps_the_mode_of_an_old_file_and_gives_a_new_one_the_usual(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    (tmp_path / "old").write_bytes(b"")
    (tmp_path / "old").chmod(0o640)
    for name in ("old", "new"):
        with atomic_write(tmp_path / name) as file:
            file.write(b"1")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes["old"] == 0o640
    assert modes["new"] == modes["usual"]


def test_follows_a_symbolic_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_write("a") as file:
        file.write(b"1")
    assert (tmp_path / "a").read_bytes() == b"1"


def test_absent_directory(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "no" / "a"):
        pass


def test_imports_only_the_standard_library():
    program = "import sys, accel_rl.io; sys.exit(bool({'jax', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
