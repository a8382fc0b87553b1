"""A service as a user would write it in an afternoon after grpcio's tutorials: a thread pool, one
message per request (or one array streamed in chunks), no message limits, and NumPy.

afternoon_server.py STUBS, where the directory STUBS holds the generated afternoon_pb2*.py."""

from concurrent import futures
import json
import sys

import grpc
import numpy as np

sys.path.insert(0, sys.argv[1])
# pylint: disable=wrong-import-position,import-error
import afternoon_pb2  # noqa: E402
import afternoon_pb2_grpc  # noqa: E402

OPERATIONS = {"sum": np.sum, "max": np.max, "argmin": lambda *a, **k: np.argmin(*a, **k).astype("u4")}


def compute(request, data):
    array = np.frombuffer(data, request.dtype).reshape(request.shape)
    result = OPERATIONS[request.operation](array, axis=request.axis, keepdims=True)
    return afternoon_pb2.ArrayResponse(shape=result.shape, data=result.tobytes())


class Afternoon(afternoon_pb2_grpc.AfternoonServicer):
    def Compute(self, request, context):
        return compute(request, request.data)

    def ComputeStream(self, request_iterator, context):
        first = next(request_iterator)
        return compute(first, first.data + b"".join(r.data for r in request_iterator))


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=10),
                         options=[("grpc.max_receive_message_length", -1),
                                  ("grpc.max_send_message_length", -1)])
    afternoon_pb2_grpc.add_AfternoonServicer_to_server(Afternoon(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(json.dumps({"event": "serving", "address": f"127.0.0.1:{port}"}), file=sys.stderr,
          flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
