"""Histories of the core's tables against the model, with snapshots that take their place."""

import tempfile
from pathlib import Path

import core_tables
from core_tables import native
from hypothesis import settings
from hypothesis.stateful import rule
from table_machine import COLUMNS, TableMachine


class CoreMachine(TableMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def open(self, config):
        self.table = core_tables.make(config, COLUMNS)

    def push(self, columns, priorities):
        core_tables.call(self.table.push, columns, priorities)

    def sample(self, seed, batch):
        return core_tables.sample(self.table, seed, batch)

    def update(self, slots, generations, priorities):
        return core_tables.call(self.table.update, slots, generations, priorities)

    def stats(self):
        return self.table.stats()

    @rule()
    def restart(self):
        """Goes on with what a snapshot restores."""
        path = str(Path(self.folder.name) / "snapshot")
        snapshot = native.Snapshot(path, [self.table])
        while not snapshot.step(1):
            pass
        snapshot.finish()
        (self.table,) = native.restore(path, 2**30)

    def teardown(self):
        self.folder.cleanup()


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
