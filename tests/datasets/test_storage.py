"""Files that come back as they were, and files that must be refused."""

import json
import os
import zipfile
import zlib

import jax
import numpy as np
import pytest
from dataset_examples import bits, dataset_of, small

from accel_rl.datasets import DatasetError, load, save


@pytest.fixture
def path(tmp_path):
    save(tmp_path / "data.npz", small())
    return tmp_path / "data.npz"


def rewrite(path, header=None, checksums=True, **change):
    """Replaces columns (None removes one) and header fields, as a careful forger would."""
    with np.load(path) as archive:
        table = dict(archive)
    fields = json.loads(table.pop("header").tobytes())
    table.update(change)
    table = {name: column for name, column in table.items() if column is not None}
    if checksums:
        fields["crc32"] = {name: zlib.crc32(column.tobytes()) for name, column in table.items()}
    fields.update(header or {})
    fields = {name: value for name, value in fields.items() if value is not ...}
    np.savez(path, header=np.frombuffer(json.dumps(fields).encode(), np.uint8), **table)


def assert_refused(path, message):
    for mapped in (False, True):
        with pytest.raises(DatasetError, match=message) as caught:
            load(path, mapped=mapped)
        assert str(caught.value).startswith(f"{path}: ")


def test_round_trip(path):
    assert bits(load(path)) == bits(load(path, mapped=True)) == bits(small())
    assert os.listdir(path.parent) == ["data.npz"]


def test_mapped_columns_stay_in_the_file_that_was_opened(path):
    data = load(path, mapped=True)
    columns = jax.tree.leaves(data)
    assert len(columns) == 7
    assert all(type(column) is np.ndarray and not column.flags.writeable for column in columns)
    save(path, dataset_of([([0, 1], [0, 0], [1.0], True)], 2, 1))
    assert bits(data) == bits(small())
    assert len(load(path, mapped=True)) == 1


def test_columns_behind_other_content_are_mapped(path):
    """A zip file may begin anywhere in a file."""
    path.write_bytes(b"#!/bin/sh" + path.read_bytes())
    assert bits(load(path, mapped=True)) == bits(small())


def test_what_is_not_known_of_a_dataset_round_trips(tmp_path):
    data = dataset_of(
        [([0, 1], [0, 0], [1.0], False)],
        2,
        1,
        environment='a "name" with ünusual signs',
        seed=None,
        dropped=7,
        missing_next_action=1,
        version="0.0.7",
    )
    save(tmp_path / "a", data)
    assert bits(load(tmp_path / "a")) == bits(data)


def test_the_same_data_give_the_same_bytes(path, tmp_path):
    save(tmp_path / "again", small())
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_numpy_alone_reads_it(path):
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert archive["reward"].tolist() == [0.0, -0.5, 1.0, 0.25, 0.0, 2.0]
        assert set(archive) == {"header", *header["crc32"]}
    assert header["format"] == "accel_rl.tabular_dataset"
    assert header["format_version"] == 1
    assert header["rows"] == 6
    assert (header["environment"], header["policy"], header["seed"]) == ("test", "given", 3)
    assert (header["num_states"], header["num_actions"]) == (4, 2)


def test_rewriting_alone_is_not_refused(path):
    rewrite(path)
    assert bits(load(path)) == bits(small())


def test_an_invalid_dataset_is_not_written(tmp_path):
    data = dataset_of([([0, 1], [0, 0], [np.nan], True)], 2, 1)
    with pytest.raises(DatasetError, match="row 0 of 1: reward is nan"):
        save(tmp_path / "a", data)
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    old = path.read_bytes()

    def half(file, **columns):
        file.write(old[: len(old) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="disk full"):
        save(path, dataset_of([([0, 1], [0, 0], [1.0], True)], 2, 1))
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == ["data.npz"]


def test_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no.npz")


def test_a_damaged_byte_is_found_or_harmless(path):
    """Every seventh byte, inverted in turn. A few are harmless: dates, permissions, ..."""
    good, truth = path.read_bytes(), bits(small())
    refused = 0
    for position in range(0, len(good), 7):
        damaged = bytearray(good)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        for mapped in (False, True):
            try:
                assert bits(load(path, mapped=mapped)) == truth
            except DatasetError:
                refused += 1
    assert refused > len(good) / 7


def test_a_damaged_value_is_found(path):
    good = path.read_bytes()
    at = good.index(np.float32([0.0, -0.5, 1.0]).tobytes())
    path.write_bytes(good[:at] + b"\x01" + good[at + 1 :])
    assert_refused(path, "or damaged")


def test_a_file_cut_short_is_refused(path):
    good = path.read_bytes()
    for length in range(0, len(good), 101):
        path.write_bytes(good[:length])
        assert_refused(path, "not an .npz file of accel_rl, or damaged")


@pytest.mark.parametrize("content", [b"0 1 0.0 2\n", b"\x93NUMPY", b"PK\x05\x06" + bytes(18)])
def test_another_kind_of_file_is_refused(path, content):
    path.write_bytes(content)
    assert_refused(path, "not an .npz file of accel_rl, .*`accel-rl import`")


def test_a_foreign_npz_is_refused(path):
    np.savez(path, state=np.zeros(3))
    assert_refused(path, r"not an .npz file of accel_rl, .*no item named 'header.npy'")
    np.savez(path, header=np.array("{}"))
    assert_refused(path, r"column header of 8 bytes must be uint8\[N\], got <U2\(\)")
    for content in (b"[]", b"{}", b"{", b"\xff", b"7"):
        np.savez(path, header=np.frombuffer(content, np.uint8))
        assert_refused(path, r"header (must be an object|is not JSON)|header\.format is missing")


def test_pickled_objects_are_never_read(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    rewrite(path, checksums=False, state=np.array([Trap()] * 6, object))
    assert_refused(path, r"column state of .* must be int32\[N\], got object")
    np.savez(path, header=np.array([Trap()], object))
    assert_refused(path, r"column header of .* must be uint8\[N\], got object")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": "other"}, "header.format must be 'accel_rl.tabular_dataset', got \"other\""),
        (
            {"format_version": 2},
            "format version 2 is newer than 1, the newest that this accel_rl reads",
        ),
        ({"format_version": 0}, "header.format_version must be greater than or equal to 1, got 0"),
        ({"format_version": "1"}, 'header.format_version must be a valid integer, got "1"'),
        ({"seed": ...}, "header.seed is missing"),
        ({"num_states": 4.0}, "header.num_states must be a valid integer, got 4.0"),
        ({"policy": None}, "header.policy must be a valid string, got null"),
        ({"rows": 7}, "column state does not match its checksum or number of rows"),
        ({"rows": -7}, "header.rows must be greater than or equal to 1, got -7"),
        ({"num_states": 0}, r"info\.num_states must be from 1 to 2147483648, got 0"),
        ({"num_states": 2**40}, "info.num_states must be from .*, got 1099511627776"),
        ({"num_states": 3}, r"row 2 of 6: next_state is 3, must be in \[0, 3\)"),
        ({"crc32": {}}, "column state does not match its checksum"),
    ],
)
def test_a_wrong_header_is_refused(path, header, message):
    rewrite(path, header)
    assert_refused(path, message)


def test_wrong_columns_are_refused(path):
    good = path.read_bytes()
    for change, message in (
        ({"reward": None}, "no item named 'reward.npy'"),
        ({"action": np.zeros(6, np.int64)}, "column action has|column action of"),
        ({"action": np.zeros(6, ">i4")}, r"column action of 24 bytes must be int32\[N\], got >i4"),
        (
            {"reward": np.zeros(6, np.int32)},
            r"reward of 24 bytes must be float32\[N\], got int32",
        ),
        (
            {"reward": np.zeros(5, np.float32)},
            "column reward does not match its checksum or n",
        ),
        ({"reward": np.zeros((6, 1), np.float32)}, r"must be float32\[N\], got float32\(6, 1\)"),
        ({"reward": np.zeros(10_000, np.float32)}, "column reward has 40128 bytes"),
        ({"reward": np.full(6, np.nan, np.float32)}, "row 0 of 6: reward is nan, must be finite"),
        ({"state": np.full(6, 9, np.int32)}, r"row 0 of 6: state is 9, must be in \[0, 4\)"),
    ):
        path.write_bytes(good)
        rewrite(path, **change)
        assert_refused(path, message)


def test_a_changed_column_under_the_old_checksum_is_refused(path):
    rewrite(path, checksums=False, reward=np.ones(6, np.float32))
    assert_refused(path, "column reward does not match its checksum")


def test_a_compressed_copy_is_read_but_no_bomb(path):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    assert bits(load(path)) == bits(load(path, mapped=True)) == bits(small())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data + bytes(10**7) * (name == "action.npy"))
    assert_refused(path, "column action has 100001.. bytes, must have about 24")


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_columns_that_may_unpack_beyond_their_size_are_refused(packed, path):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", packed) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    assert_refused(path, "column header must be stored or deflated")
