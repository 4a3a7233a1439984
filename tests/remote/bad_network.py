"""A network that loses, doubles and delays datagrams, between clients and a server's UDP port."""

import heapq
import itertools
import random
import select
import socket
import threading
import time

from accel_rl.remote.links import parse_address


class BadNetwork:
    """Passes datagrams on, in a thread, until the end of its block.

    Attributes:
      address: what clients connect to.
      lost, doubled, delayed: how many were.
      dead: whether nothing is passed on.
    """

    def __init__(self, server, seed, *, lost=0.0, doubled=0.0, delayed=0.0):
        where = parse_address(server)
        self._server = (where.host, where.port)
        self._shares = lost, doubled, delayed
        self._random = random.Random(seed)
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind(("127.0.0.1", 0))
        self._backs = {}  # of each client's address
        self._late = []
        self._order = itertools.count()
        self._stopping = self.dead = False
        self.lost = self.doubled = self.delayed = 0
        self.address = f"udp://127.0.0.1:{self._front.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def move(self):
        """Has clients come from other addresses from now on."""
        for back in [self._backs.pop(client) for client in list(self._backs)]:
            back.close()

    def _run(self):
        while not self._stopping:
            wait = 0.05
            if self._late:
                wait = min(wait, max(self._late[0][0] - time.monotonic(), 0))
            clients = {back: client for client, back in list(self._backs.items())}
            try:
                ready, _, _ = select.select([self._front, *clients], [], [], wait)
            except (OSError, ValueError):  # moved meanwhile
                continue
            for each in ready:
                try:
                    data, client = each.recvfrom(65_536)
                except OSError:
                    continue
                if each is self._front:
                    if client not in self._backs:
                        self._backs[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        self._backs[client].connect(self._server)
                    self._pass(data, client, True)
                else:
                    self._pass(data, clients[each], False)
            while self._late and self._late[0][0] <= time.monotonic():
                self._send(*heapq.heappop(self._late)[2:])

    def _pass(self, data, client, to_server):
        lost, doubled, delayed = self._shares
        twice = self._random.random() < doubled
        self.doubled += twice
        for _ in range(1 + twice):
            if self.dead or self._random.random() < lost:
                self.lost += 1
            elif self._random.random() < delayed:
                self.delayed += 1
                until = time.monotonic() + 0.003 * self._random.random()
                heapq.heappush(self._late, (until, next(self._order), data, client, to_server))
            else:
                self._send(data, client, to_server)

    def _send(self, data, client, to_server):
        try:
            if not to_server:
                self._front.sendto(data, client)
            elif client in self._backs:
                self._backs[client].send(data)
        except OSError:  # nobody is there
            self.lost += 1

    def close(self):
        self._stopping = True
        self._thread.join()
        self.move()
        self._front.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
