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
    # device memory; 0 if unknown
    memory_bytes: int


@dataclass(frozen=True)
class OperatorSupport:
    """A row of DirectML's tables: what an operator supports from a feature level on."""

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
    # a restriction of the row, if any
    condition: str


@dataclass(frozen=True)
class CallerLimits:
    """Of one caller: the holder of a token or certificate, else an address. 0: no limit."""

    # in progress
    executions: int
    # inputs and outputs of these executions
    bytes: int
    # executions that begin, per second
    rate: float


@dataclass(frozen=True)
class ServerLimits:
    """All limits in effect. A request beyond one is refused with a message that names the
    limit."""

    # of one message to the server
    max_message_bytes: int
    # of one chunk of an output
    max_response_chunk_bytes: int
    max_tensor_bytes: int
    # inputs and outputs of all executions in progress
    max_bytes_in_flight: int
    # in progress on the server
    max_executions: int
    max_executions_per_stream: int
    # open ExecuteStream calls
    max_streams: int
    operator_cache_capacity: int
    # memory of one operator in addition to its tensors
    max_scratch_bytes: int
    # of the server process; includes the limits on bytes
    memory_limit: int
    # executions that wait for the device
    max_queued: int
    max_connections: int
    max_calls_per_connection: int
    # for waiting for a caller; absent: no limit
    stall_timeout: timedelta
    # connections from one IP address
    max_connections_per_address: int
    # registered by name; Open Inference Protocol
    max_shared_memory_regions: int
    # of an ONNX model in memory, with external data
    max_model_bytes: int
    # constants of a model for one set of input sizes
    max_model_constant_bytes: int
    # memory of all models
    max_total_model_bytes: int
    # of these, those that callers have sent
    max_inline_model_bytes: int
    # 0: none is accepted
    max_inline_models: int
    # of all tensors that stay; 0: none is accepted
    max_resident_tensor_bytes: int
    # of a token or certificate; 0: no limit
    max_resident_tensor_bytes_per_owner: int
    # From the file to the compiled program, for one set of input sizes; absent: no limit.
    max_model_compile_time: timedelta
    # of each caller; absent: only its fair share
    caller_limits: CallerLimits


@dataclass(frozen=True)
class ServerInfo:
    """The contract's GetServerInfoResponse."""

    # of OpMill, "0.1.0"
    version: str
    device: DeviceInfo
    # the newest one, the default of requests
    feature_level: str
    operators: tuple[OperatorSupport, ...]
    limits: ServerLimits
    # The device that answers while `device` is lost, and computes small executions; unset where
    # there is none.
    standby: DeviceInfo
    # now: `device` is lost, and the server answers with its standby
    on_standby: bool
    # Execute accepts tensors in shared memory. A caller that does not share the server's names of
    # segments (another machine, container or user) gets an error for the field `key`.
    shared_memory: bool


@dataclass(frozen=True)
class OperatorStatistics:
    """Executions that have ended. The times are sums over successful ones."""

    operator: str
    succeeded: int
    # including refused ones
    failed: int
    # by the caller, its deadline or its disconnection
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
    # pipelines whose bytecode was not on disk
    shaders_compiled: int
    # device losses that the server recovered from
    resets: int
    # by executions, compiled operators and the device itself
    buffer_bytes_in_use: int
    # kept for reuse
    buffer_bytes_pooled: int
    # The longest time that one command list has occupied the device. Large executions are split.
    longest_submission: timedelta
    # pipelines that the device has now
    live_kernels: int
    # Runs that the standby computed: because they are small, because the device was lost, or
    # because it had no memory for them. They are included in `runs`.
    small_runs: int
    standby_runs: int
    no_memory_runs: int


@dataclass(frozen=True)
class CallerStatistics:
    """Executions by caller. The times are sums over successful ones."""

    # The name of the token or certificate; "address" for all callers without one, "other" for the
    # names beyond the first 64.
    caller: str
    succeeded: int
    # including refused ones
    failed: int
    cancelled: int
    # that the device has read and written for it, weighted by computation
    work_bytes: int
    queue: timedelta
    compute: timedelta


@dataclass(frozen=True)
class ModelStatistics:
    """Executions of a model by all protocols. The times are sums over successful ones. They
    count as operators too: those of an ONNX model as "model"."""

    model: str
    version: str
    succeeded: int
    # including refused ones and cancelled ones
    failed: int
    upload: timedelta
    # including the compilation
    queue: timedelta
    compute: timedelta
    download: timedelta


@dataclass(frozen=True)
class InlineModelStatistics:
    """The models that callers have sent."""

    # kept
    models: int
    # that they take, including those that are dropped but still in use
    bytes: int
    # files read
    reads: int
    # models dropped to make room for others
    evictions: int


@dataclass(frozen=True)
class ResidentStatistics:
    """The tensors that stay on the server, of all callers."""

    tensors: int
    # with those of earlier states that executions still read
    bytes: int
    # whose lease has ended
    expired: int
    # with the device
    lost: int


@dataclass(frozen=True)
class Statistics:
    """The contract's GetStatisticsResponse."""

    uptime: timedelta
    # those used at least once
    operators: tuple[OperatorStatistics, ...]
    cache: CacheStatistics
    in_flight: InFlight
    device: DeviceStatistics
    # without a valid descriptor, or without room for a stream
    refused_requests: int
    # those that have had an execution
    callers: tuple[CallerStatistics, ...]
    # Those used at least once, of the repository and of files that callers have sent, which are
    # named by the first digits of their SHA-256.
    models: tuple[ModelStatistics, ...]
    inline_models: InlineModelStatistics
    resident: ResidentStatistics
    # that all models take: their graphs, and the constants of programs
    model_bytes: int


@dataclass(frozen=True)
class TensorDesc:
    """The layout of a tensor's bytes: DML_BUFFER_TENSOR_DESC."""

    data_type: str
    # 1 to 8 dimensions, each of at least 1; at most 2^32 - 1 elements in all.
    sizes: tuple[int, ...]
    # In elements, one per size. Empty: packed in row-major order. A stride of 0 repeats the
    # dimension (inputs only). Strides larger than packed leave gaps, whose bytes are sent but not
    # read.
    strides: tuple[int, ...]


@dataclass(frozen=True)
class ModelTensor:
    """What a model takes or gives."""

    name: str
    data_type: str
    # BOOL: elements of UINT8 that are 0 or 1
    is_bool: bool
    # -1: any
    sizes: tuple[int, ...]
    # an input on whose elements sizes or branches depend
    needs_value: bool


@dataclass(frozen=True)
class CompiledOperator:
    """The contract's CompileOperatorResponse."""

    # 64 hexadecimal digits, equal for equivalent descriptors; empty for a model
    key: str
    outputs: tuple[TensorDesc, ...]
    output_bytes: tuple[int, ...]
    # of all inputs together
    input_bytes: int
    scratch_bytes: int
    was_cached: bool
    # planning, compiling, or waiting for another caller
    compile_duration: timedelta
    # those with a `value` have 0
    each_input_bytes: tuple[int, ...]
    model_version: str
    # as in ExecutionStarted
    model_outputs: tuple[ModelTensor, ...]


@dataclass(frozen=True)
class ExecutionStatistics:
    """The contract's ExecutionStatistics."""

    # from the begin to the last byte of input
    upload: timedelta
    # zero if the operator was in the cache
    compile: timedelta
    # from ready to submitted
    queue: timedelta
    # From submitted to done. For an input that is computed as it arrives, a part of upload.
    compute: timedelta
    # from done to this message
    download: timedelta
    was_cached: bool
    # executions in the same submission to the device
    batch_size: int
    # The tensors that resident_outputs have written, as they are then.
    generations: tuple[int, ...]
    rows: tuple[int, ...]
    capacity_rows: tuple[int, ...]


@dataclass(frozen=True)
class ExplainedNode:
    """The contract's ExplainedNode."""

    # at most its first 256 bytes
    name: str
    # ONNX's
    operator: str
    fate: str
    # that compute it
    steps: tuple[int, ...]


@dataclass(frozen=True)
class ExplainedStep:
    """The contract's ExplainedStep."""

    # the operators that it joins, with the sizes of their tensors
    text: str
    # positions in `nodes` of those that it computes
    nodes: tuple[int, ...]
    # with constants, each tensor once
    read_bytes: int
    written_bytes: int
    # Parts that follow each other, and how many tasks (cpu device) or groups (Direct3D 12) each
    # has. Empty if nothing is left to do, as for a join whose inputs are written in their places.
    phases: tuple[int, ...]
    # Of the execution; absent without one, and on a Direct3D 12 device whose clock cannot be
    # read, so that only `statistics` has a time.
    duration: timedelta
    # Positions in `steps` of those whose results it reads.
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Explanation:
    """The contract's ExplainModelResponse."""

    # of an ONNX file, without its constants
    nodes: tuple[ExplainedNode, ...]
    # What the device does, in its order. Their numbers are their positions here.
    steps: tuple[ExplainedStep, ...]
    # If every operator that the nodes need were a step of its own: their number, and the bytes
    # that they would read and write.
    unfused_steps: int
    unfused_bytes: int
    # of intermediates and scratch, which share memory
    arena_bytes: int
    # the most of these that is needed at the same time: a bound for the arena
    live_bytes: int
    # zero if it was in the cache
    compile_duration: timedelta
    was_cached: bool
    # Of the execution. Threads among which the device has divided each step; 0 on a Direct3D 12
    # device. Steps have durations if the device can measure them.
    threads: int
    statistics: ExecutionStatistics
    model_version: str


MESSAGES = {
    "opmill.v1.DeviceInfo": DeviceInfo,
    "opmill.v1.OperatorSupport": OperatorSupport,
    "opmill.v1.CallerLimits": CallerLimits,
    "opmill.v1.ServerLimits": ServerLimits,
    "opmill.v1.GetServerInfoResponse": ServerInfo,
    "opmill.v1.OperatorStatistics": OperatorStatistics,
    "opmill.v1.CacheStatistics": CacheStatistics,
    "opmill.v1.InFlight": InFlight,
    "opmill.v1.DeviceStatistics": DeviceStatistics,
    "opmill.v1.CallerStatistics": CallerStatistics,
    "opmill.v1.ModelStatistics": ModelStatistics,
    "opmill.v1.InlineModelStatistics": InlineModelStatistics,
    "opmill.v1.ResidentStatistics": ResidentStatistics,
    "opmill.v1.GetStatisticsResponse": Statistics,
    "opmill.v1.TensorDesc": TensorDesc,
    "opmill.v1.ModelTensor": ModelTensor,
    "opmill.v1.CompileOperatorResponse": CompiledOperator,
    "opmill.v1.ExecutionStatistics": ExecutionStatistics,
    "opmill.v1.ExplainedNode": ExplainedNode,
    "opmill.v1.ExplainedStep": ExplainedStep,
    "opmill.v1.ExplainModelResponse": Explanation,
}
