"""cpprb's prioritised buffer behind a REP socket of pyzmq: a rival's process of `replay_server.py`.

    replay_server_zmq.py CAPACITY ITEM_BYTES

Prints its port, and answers until it is told to stop.
"""

import sys

import numpy as np
import zmq
from replay_server_buffer import Buffer
from replay_server_items import make_items


def main():
    """Serve."""
    items = make_items(int(sys.argv[1]), int(sys.argv[2]))
    buffer = Buffer(items)
    socket = zmq.Context().socket(zmq.REP)
    print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
    while True:
        operation, *parts = (frame.buffer for frame in socket.recv_multipart(copy=False))
        if operation == b"sample":
            socket.send_multipart(buffer.sample(int.from_bytes(parts[0], "little")), copy=False)
            continue
        arrays = [np.frombuffer(part, np.float32) for part in parts]
        if operation == b"push":
            buffer.push(arrays[0], arrays[1:])
        elif operation == b"update":
            buffer.update(np.frombuffer(parts[0], np.int64), arrays[1])
        socket.send(b"")
        if operation == b"stop":
            return


if __name__ == "__main__":
    main()
