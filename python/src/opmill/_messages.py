"""What servers answer. Written by generate.py from the contract.

Enumerations are their names in lower case, such as "float32" or "log_sum_exp". A duration that is
absent is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class DeviceInfo:
    """The contract's DeviceInfo."""

    # the adapter's own name
    adapter: str
    kind: str
    driver: str
    # "5.1"; empty for the reference device
    shader_model: str
    # kernels read the request's bytes in place
    unified_memory: bool
    # device memory; 0 where unknown
    memory_bytes: int


@dataclass(frozen=True)
class OperatorSupport:
    """A row of DirectML's tables: what an operator takes from a feature level on."""

    # "argmin", "reduce", "top_k", ...
    operator: str
    # reduce: the functions that share the row
    functions: tuple[str, ...]
    # from this level on, until a newer row
    feature_level: str
    min_rank: int
    max_rank: int
    # of the input, and of outputs of values
    data_types: tuple[str, ...]
    # of outputs of indices
    index_data_types: tuple[str, ...]
    # where the row is narrower than its operator
    condition: str


@dataclass(frozen=True)
class ServerLimits:
    """Every limit in force. What is past one is refused with its number in the sentence."""

    # of one message to the server
    max_message_bytes: int
    # of one chunk of an output
    max_response_chunk_bytes: int
    max_tensor_bytes: int
    # inputs and outputs of all executions under way
    max_bytes_in_flight: int
    # under way on the server
    max_executions: int
    max_executions_per_stream: int
    # ExecuteStream calls open at a time
    max_streams: int
    operator_cache_capacity: int
    # device memory of one operator beyond its tensors
    max_scratch_bytes: int
    # of the server's process; the limits on bytes are parts of it
    memory_limit: int
    # of the executions, those that wait for the device
    max_queued: int
    max_connections: int
    max_calls_per_connection: int
    # of waiting for a caller; none: for ever
    stall_timeout: timedelta
    # of the connections, those from one IP address
    max_connections_per_address: int


@dataclass(frozen=True)
class ServerInfo:
    """The contract's GetServerInfoResponse."""

    # of OpMill, "0.1.0"
    version: str
    device: DeviceInfo
    # the newest one, which holds where a request names none
    feature_level: str
    operators: tuple[OperatorSupport, ...]
    limits: ServerLimits


@dataclass(frozen=True)
class OperatorStatistics:
    """Of executions that have ended. The times are sums over those that ended well."""

    operator: str
    succeeded: int
    # refused ones too
    failed: int
    # by the caller, its deadline or its disappearance
    cancelled: int
    input_bytes: int
    output_bytes: int
    upload: timedelta
    queue: timedelta
    compute: timedelta
    download: timedelta


@dataclass(frozen=True)
class CacheStatistics:
    """The contract's CacheStatistics."""

    hits: int
    misses: int
    # for the compilation of another caller
    waits: int
    evictions: int
    failures: int
    entries: int


@dataclass(frozen=True)
class InFlight:
    """The contract's InFlight."""

    executions: int
    uploading: int
    # waiting for the compiler or the device
    queued: int
    running: int
    streaming: int
    # ExecuteStream calls
    streams: int
    # reserved for inputs and outputs
    bytes: int


@dataclass(frozen=True)
class DeviceStatistics:
    """The contract's DeviceStatistics."""

    runs: int
    submissions: int
    pipelines_created: int
    # of those, not found on disk
    shaders_compiled: int
    # device losses survived
    resets: int
    # by executions, compiled operators and the device's own needs
    buffer_bytes_in_use: int
    # kept for the next executions
    buffer_bytes_pooled: int
    # How long one command list has held the device at most: large executions are cut into
    # several.
    longest_submission: timedelta
    # of the pipelines, those that the device has now
    live_kernels: int


@dataclass(frozen=True)
class Statistics:
    """The contract's GetStatisticsResponse."""

    uptime: timedelta
    # those asked for at least once
    operators: tuple[OperatorStatistics, ...]
    cache: CacheStatistics
    in_flight: InFlight
    device: DeviceStatistics
    # without a readable operator: malformed, or no room
    refused_requests: int


@dataclass(frozen=True)
class TensorDesc:
    """How the bytes of a tensor are to be read: DML_BUFFER_TENSOR_DESC."""

    data_type: str
    # 1 to 8 dimensions, each of at least 1; at most 2^32 - 1 elements in all.
    sizes: tuple[int, ...]
    # In elements, one for each size. None: packed in row-major order. 0 repeats the dimension
    # (inputs only); larger than packed leaves gaps, whose bytes are sent but not read.
    strides: tuple[int, ...]


@dataclass(frozen=True)
class CompiledOperator:
    """The contract's CompileOperatorResponse."""

    # 64 hexadecimal digits, equal for descriptors that ask for the same
    key: str
    outputs: tuple[TensorDesc, ...]
    output_bytes: tuple[int, ...]
    # of all inputs together
    input_bytes: int
    scratch_bytes: int
    was_cached: bool
    # planning, compiling, or waiting for another caller
    compile_duration: timedelta
    each_input_bytes: tuple[int, ...]


@dataclass(frozen=True)
class ExecutionStatistics:
    """The contract's ExecutionStatistics."""

    # from the begin to the last byte of input
    upload: timedelta
    # zero where the operator was in the cache
    compile: timedelta
    # from ready to submitted
    queue: timedelta
    # from submitted to done
    compute: timedelta
    # from done until this message
    download: timedelta
    was_cached: bool
    # executions in the same submission to the device
    batch_size: int


MESSAGES = {
    "opmill.v1.DeviceInfo": DeviceInfo,
    "opmill.v1.OperatorSupport": OperatorSupport,
    "opmill.v1.ServerLimits": ServerLimits,
    "opmill.v1.GetServerInfoResponse": ServerInfo,
    "opmill.v1.OperatorStatistics": OperatorStatistics,
    "opmill.v1.CacheStatistics": CacheStatistics,
    "opmill.v1.InFlight": InFlight,
    "opmill.v1.DeviceStatistics": DeviceStatistics,
    "opmill.v1.GetStatisticsResponse": Statistics,
    "opmill.v1.TensorDesc": TensorDesc,
    "opmill.v1.CompileOperatorResponse": CompiledOperator,
    "opmill.v1.ExecutionStatistics": ExecutionStatistics,
}
