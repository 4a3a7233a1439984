"""Counters of a replay server as Prometheus reads them: `accel-rl replay-server --metrics`."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accel_rl.remote.wire import Op

PREFIX = "accel_rl_replay_"
# What server counters are of; those that go down again are gauges.
GAUGES = {
    "open": "Connections that are open",
    "sessions": "Sessions, with a connection or without",
    "waiting": "Requests that wait for the limiter, for items or for a snapshot",
}
COUNTERS = {
    "connections": "Connections accepted",
    "requests": "Well-formed requests",
    "malformed": "Frames that were none",
    "unauthenticated": "Wrong proofs of knowing the secret",
    "slow": "Connections ended as they did not read",
    "timed_out": "Connections ended in a handshake, in a frame or idle",
    "turned_away": "Sessions, connections and frames without room",
    "bytes_in": "Bytes received",
    "bytes_out": "Bytes sent",
    "repeated": "Changes answered from memory",
    "snapshots": "Snapshots written",
}
OF_TABLES = {
    "inserts": "Items pushed",
    "samples": "Items sampled",
    "updates": "Priorities set",
    "stale": "Priorities dropped as their item was gone",
    "refused": "Calls refused for what they asked",
    "waited": "Requests that waited for the limiter",
    "capped": "Priorities above the table's max_priority, which count as it",
    "ages": "Items pushed since each sampled item was, summed over samples",
}


class ServerCollector:
    """Collector of prometheus_client over a server's `stats`."""

    def __init__(self, server: Any) -> None:
        """Collect from a `ReplayServer`, at each scrape."""
        self._server = server

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self._server.stats()
        for name, what in GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, what, now[name])
        for name, what in COUNTERS.items():
            yield CounterMetricFamily(PREFIX + name, what, now[name])
        if log := now.get("log"):
            what = "Bytes of the log since the last snapshot"
            yield GaugeMetricFamily(PREFIX + "log_bytes", what, log["bytes"])
            what = "1 while changes are refused, as the log cannot be written"
            yield GaugeMetricFamily(PREFIX + "log_failed", what, float(log["trouble"] != ""))
        tables: Mapping[str, Mapping[str, int]] = now["tables"]
        size = GaugeMetricFamily(PREFIX + "items", "Items held", labels=["table"])
        for table, counts in tables.items():
            size.add_metric([table], counts["size"])
        yield size
        for name, what in OF_TABLES.items():
            family = CounterMetricFamily(PREFIX + "table_" + name, what, labels=["table"])
            for table, counts in tables.items():
                family.add_metric([table], counts[name])
            yield family
        yield _latencies(now["latencies"])


def _latencies(found: Mapping[int, tuple[Iterable[int], float]]) -> Any:
    """Return the histogram of seconds from a request's arrival to its reply, by operation."""
    from prometheus_client.core import HistogramMetricFamily

    what = "From a request's arrival to its reply"
    family = HistogramMetricFamily(PREFIX + "request_seconds", what, labels=["operation"])
    for number, (counts, seconds) in found.items():
        total, buckets = 0, []
        *bounded, last = counts
        for power, count in enumerate(bounded):
            total += count
            buckets.append((repr(2**power / 1e6), total))
        buckets.append(("+Inf", total + last))
        family.add_metric([Op(number).name.lower()], buckets, seconds)
    return family


@contextlib.contextmanager
def exported(server: Any, address: str) -> Iterator[str]:
    """Serve a server's metrics at "HOST:PORT" for the block; yield their URL.

    Raises:
      ValueError: if the address is not HOST:PORT, or prometheus-client is missing.
      OSError: if the address cannot be listened on.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError(f"--metrics must be HOST:PORT, got {address!r}")
    try:
        import prometheus_client
    except ImportError as error:
        raise ValueError("--metrics needs pip install 'accel-rl[metrics]'") from error
    registry = prometheus_client.CollectorRegistry()
    registry.register(ServerCollector(server))
    http, thread = prometheus_client.start_http_server(int(port), host.strip("[]"), registry)
    try:
        yield f"http://{host}:{http.server_port}/metrics"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
