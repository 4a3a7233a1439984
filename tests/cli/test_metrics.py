"""Metrics of a replay server, as Prometheus's own parser reads them."""

import json
import subprocess
import sys
import urllib.request

import numpy as np
import processes
import pytest
from commands import invoke
from optional import needs
from prometheus_client.parser import text_string_to_metric_families

from accel_rl import remote
from accel_rl.cli import metrics

pytestmark = needs("replay server")
SPEC = remote.TableSpec("steps", 4, (remote.Column("x", "f4"),), sampler="uniform")


def scraped(url):
    """Samples by name and labels' values in order."""
    with urllib.request.urlopen(url, timeout=processes.LIMIT) as reply:
        families = text_string_to_metric_families(reply.read().decode())
        return {
            (
                sample.name.removeprefix("accel_rl_replay_"),
                *sorted(sample.labels.values()),
            ): sample.value
            for family in families
            for sample in family.samples
        }


def test_counts_are_what_was_done():
    with remote.ReplayServer() as server, metrics.exported(server, "127.0.0.1:0") as url:
        with remote.ReplayClient(server.address) as client:
            table = client.table(SPEC)
            for _ in range(3):
                table.push([np.zeros(2, np.float32)])
            drawn = [table.sample(seed, 8) for seed in range(5)]
            found = scraped(url)
        assert found["table_inserts_total", "steps"] == 6
        assert found["table_samples_total", "steps"] == 40
        assert found["items", "steps"] == 4
        assert found["open",] == 1
        assert found["request_seconds_count", "push"] == 3
        assert found["request_seconds_bucket", "+Inf", "sample"] == 5
        assert 0 <= found["request_seconds_sum", "sample"] < processes.LIMIT
        # Six pushed into four places: slots 2, 3, 0, 1 from the oldest to the newest.
        ages = np.array([1, 0, 3, 2])
        assert found["table_ages_total", "steps"] == sum(ages[each.slots].sum() for each in drawn)


def test_buckets_grow():
    counts = [0] * 26
    counts[0], counts[3], counts[25] = 2, 3, 4
    (family,) = [metrics._latencies({6: (counts, 1.5)})]
    samples = {s.labels.get("le", s.name): s.value for s in family.samples}
    assert samples["1e-06"] == 2
    assert samples["4e-06"] == 2
    assert samples["8e-06"] == 5
    assert samples["+Inf"] == 9
    assert samples["accel_rl_replay_request_seconds_sum"] == 1.5


def test_the_command_serves_them():
    words = ("-m", "accel_rl", "replay-server", "--metrics", "127.0.0.1:0", "--json")
    with processes.start(*words, stdout=subprocess.PIPE) as process:
        lines = ""
        while "}" not in lines:
            lines += process.stdout.readline()
        where = json.loads(lines)
        assert scraped(where["metrics"])["requests_total",] == 0
        with remote.ReplayClient(where["addresses"][0]) as client:
            client.drain()
        assert process.wait(processes.LIMIT) == 0


@pytest.mark.parametrize("address", ["9000", "localhost:", ":1", "127.0.0.1:99999"])
def test_addresses_that_are_none(address):
    found = invoke("replay-server", "--metrics", address)
    assert found.exit_code == 2
    assert "--metrics must be HOST:PORT" in found.stderr


def test_the_hint_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ValueError, match=r"pip install 'accel-rl\[metrics\]'"):
        metrics.exported(None, "127.0.0.1:0").__enter__()
