"""The same operators on the same data with NumPy and with ONNX Runtime's CPU provider, in process."""

import time

from kernels import ALL, FIRST, LAST, MIDDLE, Group, Row, cross, random_array, selected
from results import Chart, Part, Table, Target, number
from tools import OUTPUT, BenchError, Program, is_enough, ratios, spread

THREADS = 2
LONG_SECONDS = 0.1  # what takes longer does not depend on what is in the caches
OPERATORS = ["sum", "max", "l2", "argmin", "log_sum_exp", "hardmax"]
RANKS = (1, 10, 100, 1000)
GROUPS = [
    Group("FLOAT32", (8192, 8192), cross(OPERATORS, [LAST, FIRST, ALL])
          + [Row("top_k", FIRST, k) for k in RANKS]
          + [Row("top_k", LAST, 100), Row("top_k", LAST, 1000)]),
    Group("FLOAT32", (64, 1024, 1024), cross(OPERATORS, [MIDDLE])
          + [Row("top_k", MIDDLE, 10), Row("top_k", MIDDLE, 100)]),
    Group("FLOAT32", (1024, 50257), [Row("top_k", LAST, k) for k in RANKS]),
    Group("FLOAT32", (64, 1048576), [Row("top_k", LAST, k) for k in RANKS]),
    Group("FLOAT32", (1, 67108864), [Row("top_k", LAST, k) for k in RANKS]),
    # Results of few elements each; short sequences.
    Group("FLOAT32", (4194304, 4), cross(["sum", "argmin", "hardmax"], [LAST])),
    Group("FLOAT32", (4, 4194304), cross(["sum", "argmin", "hardmax"], [FIRST])),
    Group("FLOAT32", (65536, 128), [Row("top_k", LAST, 1), Row("top_k", LAST, 10), Row("top_k", LAST, 64),
                                    Row("top_k", LAST, 128)]),
    Group("FLOAT32", (16384, 512), [Row("top_k", LAST, 100)]),
    Group("FLOAT32", (8192, 1024), [Row("top_k", LAST, 1024)]),
]
MUST_LEAD = ("argmin", "hardmax", "top_k", "log_sum_exp")  # over a first or a middle axis


def must_lead(row, sizes):
    return row.operator in MUST_LEAD and len(row.axes) == 1 and row.axes[0] < len(sizes) - 1


def numpy_call(row, array):
    """Returns a function without arguments that computes the row with NumPy."""
    import numpy as np  # pylint: disable=import-outside-toplevel
    axis = row.axes if len(row.axes) > 1 else row.axes[0]

    def argmin(pick=np.argmin):
        if isinstance(axis, tuple):
            return pick(array.reshape(-1))
        return np.expand_dims(pick(array, axis=axis), axis)

    def log_sum_exp():
        top = array.max(axis=axis, keepdims=True)
        return np.log(np.exp(array - top).sum(axis=axis, keepdims=True)) + top

    def hardmax():
        ones = np.zeros_like(array)
        if isinstance(axis, tuple):
            ones.reshape(-1)[argmin(np.argmax)] = 1
        else:
            np.put_along_axis(ones, argmin(np.argmax), 1, axis)
        return ones

    def top_k():
        size = array.shape[axis]
        order = np.argpartition(array, size - row.k, axis=axis)
        order = np.take(order, np.arange(size - row.k, size), axis=axis)
        values = np.take_along_axis(array, order, axis)
        sorted_order = np.flip(np.argsort(values, axis=axis), axis)
        return np.take_along_axis(values, sorted_order, axis)

    return {
        "sum": lambda: array.sum(axis=axis, keepdims=True),
        "max": lambda: array.max(axis=axis, keepdims=True),
        "l2": lambda: np.sqrt(np.square(array).sum(axis=axis, keepdims=True)),
        "argmin": argmin, "log_sum_exp": log_sum_exp, "hardmax": hardmax, "top_k": top_k,
    }[row.operator]


def onnx_call(row, array):
    """The same with an ONNX model of one node."""
    import numpy as np  # pylint: disable=import-outside-toplevel
    import onnx  # pylint: disable=import-outside-toplevel
    import onnxruntime as ort  # pylint: disable=import-outside-toplevel
    helper, kinds = onnx.helper, onnx.TensorProto
    flat = len(row.axes) > 1 and row.operator in ("argmin", "hardmax")
    data = array.reshape(1, -1) if flat else array  # these take one axis only
    axis = 1 if flat else row.axes[0]
    constants, inputs, outputs, attributes = [], ["x"], ["y"], {}
    if row.operator == "top_k":
        constants = [helper.make_tensor("k", kinds.INT64, [1], [row.k])]
        inputs, outputs, attributes = ["x", "k"], ["y", "i"], {"axis": axis}
    elif row.operator in ("argmin", "hardmax"):
        attributes = {"axis": axis}
    else:
        constants = [helper.make_tensor("a", kinds.INT64, [len(row.axes)], row.axes)]
        inputs = ["x", "a"]
    name = {"sum": "ReduceSum", "max": "ReduceMax", "l2": "ReduceL2", "argmin": "ArgMin",
            "log_sum_exp": "ReduceLogSumExp", "hardmax": "Hardmax", "top_k": "TopK"}[row.operator]
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    types = {"y": kinds.INT64 if row.operator == "argmin" else element, "i": kinds.INT64}
    graph = helper.make_graph(
        [helper.make_node(name, inputs, outputs, **attributes)], "row",
        [helper.make_tensor_value_info("x", element, data.shape)],
        [helper.make_tensor_value_info(output, types[output], None) for output in outputs],
        constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    # Otherwise its threads would still spin while the others are measured.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    return lambda: np.asarray(session.run(["y"], {"x": data})[0]).reshape(
        array.shape if row.operator == "hardmax" else -1)


def difference(row, one, other):
    """Returns a note if sums differ by more than rounding explains. Other results must be equal."""
    import numpy as np  # pylint: disable=import-outside-toplevel
    one, other = np.ravel(one), np.ravel(other)
    if row.operator in ("max", "argmin", "hardmax", "top_k"):
        if not np.array_equal(one, other):
            raise BenchError(f"NumPy and ONNX Runtime disagree about {row.name}.")
        return None
    off = np.max(np.abs(one - other)) / np.max(np.abs(one))
    return f"{row.name}: NumPy and ONNX Runtime differ by {off:.1e}." if off > 1e-4 else None


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measure(bench, row, array, repetitions):
    number_of_row = bench.ask("row", **row.words())["row"]
    bench.ask("check", row=number_of_row)
    calls = {"NumPy": numpy_call(row, array), "ONNX Runtime": onnx_call(row, array)}
    note = difference(row, calls["NumPy"](), calls["ONNX Runtime"]())
    measurements = {
        "OpMill": lambda: bench.ask("run", row=number_of_row)["wall_s"],
        **{name: lambda call=call: timed(call) for name, call in calls.items()}}
    seconds = {name: [] for name in measurements}
    for _ in range(repetitions):
        for name, measurement in measurements.items():
            if not is_enough(seconds[name], repetitions):
                # What ran before has filled the caches with its own copy of the data.
                if not seconds[name] or seconds[name][-1] < LONG_SECONDS:
                    measurement()
                seconds[name].append(measurement())
    return seconds, note


def run(options):
    part = Part("peers", data={"rows": []})
    if not options.has_peers:
        part.data["skipped"] = "NumPy and ONNX Runtime could not be installed."
        print(f"\npeers: not measured. {part.data['skipped']}")
        return part
    file = OUTPUT / "input.bin"
    with Program("kernel_bench", "--commands", f"--device={options.device}") as bench:
        for group in selected(GROUPS, options):
            array = random_array(group)
            array.tofile(file)
            bench.ask("input", type=group.type, sizes=",".join(map(str, group.sizes)), file=file)
            table = Table(f"{group.name}: the same data, {THREADS} threads each but NumPy's one",
                          ["", "OpMill ms", "ONNX Runtime ms", "NumPy ms", "ONNX Runtime /", "NumPy /",
                           "", ""])
            for row in group.rows:
                seconds, note = measure(bench, row, array, options.repetitions)
                add(part, table, group, row, seconds)
                table.notes += [note] if note else []
            options.show(part, table)
    file.unlink(missing_ok=True)
    part.charts.append(Chart("Times faster than ONNX Runtime", "bars", "x", {
        f"{row['group']} {row['name']}": (row["onnx_runtime"]["median"],
                                          1 if row["must_lead"] else None)
        for row in part.data["rows"]}))
    return part


def add(part, table, group, row, seconds):
    ours = seconds["OpMill"]
    onnx, numpy = (ratios(seconds[name], ours) for name in ("ONNX Runtime", "NumPy"))
    leads = must_lead(row, group.sizes)
    target = Target(f"{group.name} {row.name}: speed / ONNX Runtime", 1, onnx)
    if leads:
        part.targets.append(target)
    table.rows.append([row.name, *(number(spread(seconds[name]), 1e3)
                                   for name in ("OpMill", "ONNX Runtime", "NumPy")),
                       number(onnx), number(numpy), target.sentence if leads else "",
                       target.verdict if leads else "ahead" if target.met else "behind"])
    part.data["rows"].append({
        "group": group.name, "name": row.name, "must_lead": leads, "onnx_runtime": onnx,
        "numpy": numpy, "seconds": {name: spread(values) for name, values in seconds.items()}})
