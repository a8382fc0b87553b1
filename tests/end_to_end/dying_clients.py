"""dying_clients.py ADDRESS COUNT AT_A_TIME: starts clients and kills them with SIGKILL during an
execution: a third when half of the input is sent, a third when one chunk of the output is read and
the rest is in flight, and a third at a random moment. Prints how many of each died, as JSON.

This process never opens a channel, so that it can fork."""

import json
import os
import random
import signal
import sys
import time

import numpy as np

import api
import arrays

MOMENTS = ("upload", "download", "random")
_ARRAY = np.zeros((256, 4096), np.float32)  # the output of hardmax is as large
_DATA = arrays.data_of(_ARRAY)
# A repeated row: 32 KiB of input, 32 MiB of output, which exceeds all buffers in between.
_ROW = np.zeros(8192, np.float32)
_ROW_REPEATED = np.lib.stride_tricks.as_strided(_ROW, (1024, 8192), (0, 4))
_CHUNK = 256 << 10


def _upload(stream, until):
    stream.begin(1, arrays.hardmax(_ARRAY, [1]))
    for start in range(0, until, _CHUNK):
        stream.send(1, [(0, start, _DATA[start:start + _CHUNK])])


def _client(address, moment, ready):
    stub = api.stub_of(api.connect(address))
    stream = api.Stream(stub)
    if moment == "upload":
        small = np.zeros(1, np.float32)
        _upload(stream, len(_DATA) // 2)
        stream.begin(2, arrays.argmax(small, [0]), [(0, 0, arrays.data_of(small))])
        # Its response shows that everything sent before has arrived.
        assert stream.next_end()[0] == 2
    elif moment == "download":
        stream.begin(1, arrays.hardmax(_ROW_REPEATED, [1]), [(0, 0, arrays.data_of(_ROW))])
        assert next(stream.call).HasField("started")
    else:
        os.write(ready, b".")
        _upload(stream, len(_DATA))
        stream.next_end()
    os.write(ready, b".")
    time.sleep(60)


def _start(address, moment):
    ready, ready_in_child = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _client(address, moment, ready_in_child)
        finally:
            os._exit(1)
    os.close(ready_in_child)
    return pid, ready, moment


def _kill(child):
    pid, ready, moment = child
    # If there is nothing to read, the client ended before it was killed.
    if os.read(ready, 1) != b".":
        raise SystemExit(f"a client that was to die in its {moment} ended before")
    os.close(ready)
    if moment == "random":
        time.sleep(random.uniform(0, 0.05))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status


def main():
    address, count, at_a_time = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    died = dict.fromkeys(MOMENTS, 0)
    children = []
    for index in range(count):
        if len(children) == at_a_time:
            _kill(children.pop(0))
        moment = MOMENTS[index % len(MOMENTS)]
        children.append(_start(address, moment))
        died[moment] += 1
    for child in children:
        _kill(child)
    print(json.dumps(died))


if __name__ == "__main__":
    main()
