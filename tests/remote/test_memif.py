"""The server over DPDK's memif: the same answers as over TCP, from a process of its own."""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import dpdk_servers
import numpy as np
import pytest
import traces
from hypothesis import settings
from processes import LIMIT
from test_server_machine import ServerMachine

from accel_rl import remote
from accel_rl.remote.module import native


@pytest.fixture(autouse=True, scope="module")
def dpdk():
    dpdk_servers.require_dpdk()


@pytest.fixture
def server(tmp_path):
    """A process that serves two interfaces of memif, and TCP."""
    with remote.ReplayServerProcess(
        **dpdk_servers.memif(tmp_path / "socket", 2) | {"host": "127.0.0.1"}
    ) as running:
        assert running.addresses[1:] == [f"memif:{tmp_path}/socket?id={each}" for each in (0, 1)]
        yield running


def addressed(frame, token):
    """A frame of the trace, of another session, as datagrams carry it: their checksum is gone."""
    frame = bytearray(frame)
    frame[8:16] = token if any(frame[8:16]) else bytes(8)
    frame[6] &= ~2
    frame[36:40] = bytes(4)
    return bytes(frame)


def test_golden_trace(server):
    path = server.addresses[1].removeprefix("memif:").partition("?")[0]
    link = native().open_memif(path, timeout_us=10_000_000)
    token, room = bytes(8), bytearray(1 << 16)
    for (what, request), (_, reply) in zip(
        traces.frames(), traces.read("session.hex"), strict=True
    ):
        count = link.exchange([addressed(request, token)], room, 10_000_000)
        token = token if any(token) else bytes(room[8:16])
        assert room[:count] == addressed(reply, token), what
        link.set_frame_bytes(1 << 20)


def test_main_thread_keeps_its_cores(server, connect):
    before = os.sched_getaffinity(0)
    connect(server.addresses[1], timeout=20.0)
    assert os.sched_getaffinity(0) == before
    threads = os.listdir(f"/proc/{server.process.pid}/task")
    assert all(os.sched_getaffinity(int(each)) == before for each in threads)


def test_same_batches_as_tcp(server, connect):
    tcp, first, second = (connect(each, timeout=20.0) for each in server.addresses)
    spec = remote.TableSpec("steps", 1000, [remote.Column("frame", "u1", (500,))])
    random = np.random.default_rng(7)
    items = random.integers(0, 256, (800, 500), np.uint8)
    first.table(spec).push({"frame": items[:500]}, random.random(500, np.float32))
    second.table(spec).push({"frame": items[500:]}, random.random(300, np.float32))
    drawn = [each.table(spec).sample(11, 600) for each in (tcp, first, second)]
    np.testing.assert_array_equal(drawn[0].columns["frame"], items[drawn[0].slots])
    for other in drawn[1:]:
        np.testing.assert_array_equal(other.slots, drawn[0].slots)
        np.testing.assert_array_equal(other.probabilities, drawn[0].probabilities)
        np.testing.assert_array_equal(other.columns["frame"], drawn[0].columns["frame"])


def test_server_that_was_killed(server, connect, tmp_path):
    client = connect(server.addresses[1], timeout=20.0, reconnect=0.0)
    client.ping(b"there")
    server.process.kill()
    server.process.wait()  # on another core it answers for a while
    began = time.monotonic()
    with pytest.raises(remote.ConnectionLost):
        client.ping(b"gone")
    assert time.monotonic() - began < 15.0  # it did not wait for its timeout
    with pytest.raises(remote.ConnectionLost, match="nobody has the memif socket"):
        remote.ReplayClient(server.addresses[1])
    # Another one takes its socket over.
    with remote.ReplayServerProcess(**dpdk_servers.memif(tmp_path / "socket")) as again:
        assert connect(again.address, timeout=20.0).ping(b"back") == b"back"


@pytest.mark.long  # waits
def test_client_that_was_killed(server, connect):
    program = (
        "import sys, time\nfrom accel_rl import remote\n"
        "client = remote.ReplayClient(sys.argv[1], timeout=20.0)\n"
        "print(client.ping(b'up').decode(), flush=True)\n"
        "while True: client.ping(bytes(20_000))\n"
    )
    for _ in range(2):  # the second takes the first one's interface
        with subprocess.Popen(
            [sys.executable, "-c", program, server.addresses[1]], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "up\n"
            process.kill()
    assert connect(server.addresses[1], timeout=20.0).ping(b"here") == b"here"


def test_client_that_goes_early(server, connect, tmp_path):
    """Those who do not wait for the greeting, or say nothing, or nonsense, do not harm others."""
    client = connect(server.addresses[1], timeout=20.0)
    path = str(tmp_path / "socket")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(path + ".dpdk").st_mode & 0o777 == 0o700
    for each in range(200):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as early:
            early.settimeout(10.0)
            early.connect(path)
            if each % 4 == 1:
                early.send(bytes(128))
            if each % 4 == 2:
                assert len(early.recv(256)) == 128
            if each % 4 == 3:
                assert len(early.recv(256)) == 128
                early.send(bytes(300))
                assert early.recv(256) == b""
        assert client.ping(b"here") == b"here"
    client.close()
    assert connect(server.addresses[2], timeout=20.0).ping(b"new") == b"new"


@pytest.mark.long  # waits
def test_client_that_vanished_waiting(server, connect):
    """What is sent to one that was killed is given up at once."""
    program = (
        "import sys\nfrom accel_rl import remote\n"
        "client = remote.ReplayClient(sys.argv[1], timeout=20.0)\n"
        "spec = remote.TableSpec('steps', 100, [remote.Column('frame', 'u1', (9000,))])\n"
        "print('up', flush=True)\n"
        "client.table(spec).sample(1, 64, timeout=20.0)\n"
    )
    tcp = connect(server.addresses[0], timeout=10.0)
    spec = remote.TableSpec("steps", 100, [remote.Column("frame", "u1", (9000,))])
    table = tcp.table(spec)
    with subprocess.Popen(
        [sys.executable, "-c", program, server.addresses[1]], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "up\n"
        time.sleep(0.2)
        process.kill()
    time.sleep(0.2)
    frames = np.zeros((100, 9000), np.uint8)
    table.push({"frame": frames})  # raises after its timeout
    tcp.ping(b"others")


CHURN = """
import sys, threading
from accel_rl import remote
def churn(address):
    for each in range(15):
        with remote.ReplayClient(address, timeout=20.0) as client:
            assert client.ping(b"up") == b"up"
threads = [threading.Thread(target=churn, args=(each,)) for each in sys.argv[1:]]
for each in threads: each.start()
for each in threads: each.join()
print("done")
"""


@pytest.mark.long  # starts processes
def test_links_that_come_and_go_at_once(server):
    ran = subprocess.run(
        [sys.executable, "-c", CHURN, *server.addresses[1:]],
        capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr, ran.returncode) == ("done\n", "", 0)


FORKED = """
import os, sys, warnings
from accel_rl import remote
from accel_rl.remote.module import native
path = sys.argv[1].removeprefix("memif:").partition("?")[0]
link = native().open_memif(path, timeout_us=20_000_000)
warnings.simplefilter("ignore")  # of threads: what is tried here
child = os.fork()
if child == 0:
    try:
        native().open_memif(path, 1, 1_000_000)
    except ConnectionRefusedError as error:
        print(error, flush=True)
    del link
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_child_of_fork_is_refused(server):
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, server.addresses[1]],
        capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert "DPDK was started before fork()" in ran.stdout, ran
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_command(connect, tmp_path):
    arguments = " ".join(dpdk_servers.memif(tmp_path / "socket")["dpdk"])
    command = "import sys; from accel_rl.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "replay-server", "--json", "--host", "none",
         "--idle", "yield", "--dpdk", arguments],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        address = f"memif:{tmp_path}/socket?id=0"
        printed = ""
        while not printed.endswith("}\n") and (line := process.stdout.readline()):
            printed += line
        assert json.loads(printed) == {"addresses": [address]}
        assert connect(address, timeout=20.0).ping(b"up") == b"up"
        process.terminate()


FOLDERS = Path(__file__).parents[:2]
UNPRIVILEGED = """
import os, sys, tempfile
import dpdk_servers
from accel_rl import remote
from accel_rl.remote.module import native
assert not native().describe_dpdk()["why"]  # loads what this user may not be able to read
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
with tempfile.TemporaryDirectory() as folder:
    with remote.ReplayServer(**dpdk_servers.memif(folder + "/socket")) as server:
        with remote.ReplayClient(server.address, timeout=20.0) as client:
            print(client.ping(b"up").decode(), os.getuid() != 0)
"""


def test_without_privileges():
    ran = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED], capture_output=True, text=True, timeout=LIMIT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, FOLDERS))}, cwd="/",
    )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("up True\n", 0), ran.stderr


C_CLIENT = r"""
#include <stdio.h>
#include <string.h>
#include "accel_rl_memif.h"

static accel_rl_memif_status ask(accel_rl_memif *client, uint8_t op, uint64_t token,
                                 uint64_t number, const uint8_t **reply, size_t *count) {
  uint8_t frame[64] = {'A', 'R', 'L', 'R', 1};
  frame[5] = op, frame[24] = frame[25] = 0xFF, frame[30] = 1, frame[32] = sizeof frame;
  memcpy(frame + 8, &token, sizeof token), memcpy(frame + 16, &number, sizeof number);
  return accel_rl_memif_request(client, frame, sizeof frame, 10000000, reply, count);
}

int main(int count, char **arguments) {
  char why[256];
  const uint8_t *reply;
  size_t bytes;
  uint64_t token;
  accel_rl_memif_status status;
  (void)count;
  accel_rl_memif *client =
      accel_rl_memif_connect(arguments[1], 1, 10000000, &status, why, sizeof why);
  if (!client) return printf("%d %s\n", status, why), 1;
  if (ask(client, 1, 0, 1, &reply, &bytes) != ACCEL_RL_MEMIF_OK) return 2;
  memcpy(&token, reply + 8, sizeof token);
  if (ask(client, 13, token, 2, &reply, &bytes) != ACCEL_RL_MEMIF_OK || bytes != 64) return 3;
  printf("operation %d\n", reply[5]);
  accel_rl_memif_close(client);
  return 0;
}
"""


def test_library_for_c(server, tmp_path):
    folder = Path(native().__file__).parent
    (tmp_path / "client.c").write_text(C_CLIENT)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    built = subprocess.run(
        [compiler, tmp_path / "client.c", "-o", tmp_path / "client", f"-I{folder / 'include'}",
         f"-L{folder}", "-laccel_rl_dpdk", f"-Wl,-rpath,{folder}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [tmp_path / "client", tmp_path / "socket"], capture_output=True, text=True, timeout=LIMIT
    )
    assert (ran.stdout, ran.returncode) == ("operation 13\n", 0), ran.stderr


NULL = ["--vdev=net_null0"]
PLAIN = ["--vdev=net_memif0,role=server,id=0"]


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (NULL, {}, "must have a secret"),
        (PLAIN, {}, "socket-abstract=no"),
        (["--vdev=net_memif0,id=0"], {}, "role=server is missing"),
        ([], {}, "no port"),
        (["--vdev=net_nonsense0"], {}, "net_nonsense0"),
        (NULL, {"in_network": True, "secret": bytes(16)}, "takes two ports of DPDK, got 1"),
        (NULL, {"dpdk_address": "::1", "secret": bytes(16)}, "IPv4"),
        (NULL, {"dpdk_address": "::ffff:10.9.0.2", "secret": bytes(16)}, "IPv4 or IPv6"),
        (NULL, {"dpdk_address": "ff02::1", "secret": bytes(16)}, "one host's"),
        (NULL, {"dpdk_address": "server", "secret": bytes(16)}, "in numbers"),
        (NULL, {"dpdk_port": 0, "secret": bytes(16)}, "dpdk_port"),
        (NULL, {"dpdk_mtu": 1279, "secret": bytes(16)}, "dpdk_mtu"),
        (NULL, {"dpdk_mtu": 9001, "secret": bytes(16)}, "dpdk_mtu"),
        (NULL, {"idle": "block", "secret": bytes(16)}, "idle"),
        (["-m", "128"], {"secret": bytes(16)}, "once and for all"),
    ],
)
def test_refusals(serve, arguments, more, message):
    arguments = {"host": None, "dpdk": dpdk_servers.ENVIRONMENT + arguments, "idle": "yield"} | more
    with pytest.raises(ValueError, match=message):
        serve(**arguments)


def test_bad_addresses(connect, tmp_path):
    with pytest.raises(ValueError, match="memif knows id from 0 to 252"):
        connect(f"memif:{tmp_path}/socket?id=253")
    with pytest.raises(remote.ConnectionLost, match="comma"):
        connect(f"memif:{tmp_path}/a,b")


class MemifMachine(ServerMachine):
    def listening(self, path):
        return dpdk_servers.memif(path / "socket")


TestMachine = pytest.mark.slow(MemifMachine.TestCase)
TestMachine.settings = settings(max_examples=5, stateful_step_count=20, deadline=None)
