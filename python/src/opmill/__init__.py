"""A client of OpMill: DirectML's operators on NumPy arrays, computed by servers.

    import opmill
    c = opmill.connect("127.0.0.1:50051")
    c.argmax(x, axis=1)
    c.reduce(x, "log_sum_exp", axis=(0, 2), keepdims=True)
    values, indices = c.top_k(x, 5)

opmill.aio is the same for asyncio, opmill.dask for arrays of Dask.
"""

from . import aio
from ._channel import Tls
from ._execution import Execution
from ._index import Found, Index
from ._messages import (CompiledOperator, ExecutionStatistics, ExplainedNode, ExplainedStep,
                        Explanation, ServerInfo, Statistics)
from ._models import ModelInfo, ModelTensor, ServedModel
from ._operators import AxisDirection, ReduceFunction, TopK
from ._resident import ResidentTensor
from ._shared_memory import shared_empty
from .client import Client, Model, connect
from .errors import (Cancelled, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument,
                     NotFound, OpMillError, PermissionDenied, ResourceExhausted, Unauthenticated,
                     Unavailable, Unimplemented)

__version__ = "0.1.0"

__all__ = [
    "AxisDirection", "Cancelled", "Client", "CompiledOperator", "DeadlineExceeded", "Execution",
    "ExecutionStatistics", "ExplainedNode", "ExplainedStep", "Explanation", "FailedPrecondition",
    "Found", "Index", "Internal", "InvalidArgument", "Model", "ModelInfo", "ModelTensor", "NotFound", "OpMillError",
    "PermissionDenied", "ReduceFunction", "ResidentTensor", "ResourceExhausted", "ServedModel",
    "ServerInfo", "Statistics", "Tls", "TopK", "Unauthenticated",
    "Unavailable", "Unimplemented", "aio", "connect", "shared_empty",
]
