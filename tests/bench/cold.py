"""Starts and first calls, with an empty and with a warm disk cache; memory per stream and per call."""

import contextlib
import shutil

from results import Part, Table, Target, between, bytes_text, number
from tools import OUTPUT, BenchError, Program, opmill_server, server_statistics, spread

# The first one after a start includes the start of the driver.
OPERATORS = {
    "reduce SUM": "reduce{{function:REDUCE_FUNCTION_SUM,{input},axes:[1]}}",
    "argmin": "arg_min{{{input},axes:[1],axis_direction:AXIS_DIRECTION_INCREASING}}",
    "log_sum_exp": "reduce{{function:REDUCE_FUNCTION_LOG_SUM_EXP,{input},axes:[0]}}",
    "hardmax": "hardmax{{{input},axes:[1]}}",
    "top_k": "top_k{{{input},axis:1,k:10,axis_direction:AXIS_DIRECTION_DECREASING}}",
}


def desc(name, rows, columns):
    tensor = f"input{{data_type:DATA_TYPE_FLOAT32,sizes:[{rows},{columns}]}}"
    return OPERATORS[name].format(input=tensor)


def call(client, name, rows, columns):
    return client.ask("transfer", server="opmill", kind="execute", bytes=4 * rows * columns,
                      desc=desc(name, rows, columns))


def starts(part, options, client):
    """Time until SERVING and of the first calls: of a server with empty disk caches, then of the next one."""
    cache = OUTPUT / "cold"
    found = {}
    for _ in range(options.repetitions):
        shutil.rmtree(cache, ignore_errors=True)
        for state in ("empty", "warm"):
            with opmill_server(options, cache / "shaders",
                               MESA_SHADER_CACHE_DIR=str(cache / "driver")) as server:
                def note(what, value, state=state):
                    found.setdefault((what, state), []).append(value)
                note("start to SERVING, ms", server.start_seconds * 1e3)
                client.ask("connect", server="opmill", target=server.address)
                before = server_statistics(server)["device"]
                for name in OPERATORS:
                    note(f"first call of {name}, ms", call(client, name, 64, 1024)["seconds"] * 1e3)
                after = server_statistics(server)["device"]
                note("shaders compiled by these calls",
                     int(after["shaders_compiled"]) - int(before["shaders_compiled"]))
                note("pipelines created by these calls",
                     int(after["pipelines_created"]) - int(before["pipelines_created"]))
                cached = [call(client, "argmin", 64, 1024)["seconds"] * 1e3 for _ in range(20)]
                note("a cached call of argmin, ms", spread(cached)["median"])
                note("memory of the idle server, MiB", server.memory() / 2**20)
    shutil.rmtree(cache, ignore_errors=True)  # a device without a compiler writes none
    table = Table("Starts, with an empty disk cache and with a warm one",
                  ["", "empty", "10%..90%", "warm", "10%..90%"])
    for what in dict.fromkeys(what for what, _ in found):
        values = {state: spread(found[what, state]) for state in ("empty", "warm")}
        table.rows.append([what, number(values["empty"]), between(values["empty"]),
                           number(values["warm"]), between(values["warm"])])
        part.data["starts"][what] = values
    options.show(part, table)
    part.targets.append(Target("warm start to SERVING", 1000,
                               spread(found["start to SERVING, ms", "warm"]), True, " ms"))
    for what in ("shaders compiled", "pipelines created"):
        part.targets.append(Target(f"{what} at request time after a restart", 0,
                                   spread(found[f"{what} by these calls", "warm"]), True))


def shapes(part, options, client, server):
    """The cost of a new shape, when the server has already compiled another shape of the same kind."""
    client.ask("connect", server="opmill", target=server.address)
    table = Table("First call of a known kind with a new shape, beyond a cached call",
                  ["", "first us", "cached us", "beyond us", "10%..90%"])
    for name in OPERATORS:
        for columns in (1000, 1001):
            call(client, name, 8, columns)
        pairs = []
        for i in range(10 if options.tiny else 40):
            first = call(client, name, 8, 1100 + i)["seconds"]
            again = sorted(call(client, name, 8, 1100 + i)["seconds"] for _ in range(3))[1]
            pairs.append((first, again))
        first, cached = ([pair[i] for pair in pairs] for i in (0, 1))
        beyond = spread([a - b for a, b in pairs])
        table.rows.append([name, number(spread(first), 1e6, 0), number(spread(cached), 1e6, 0),
                           number(beyond, 1e6, 0), between(beyond, 1e6, 0)])
        part.data["shapes"][name] = {"beyond_s": beyond, "first_s": spread(first),
                                     "cached_s": spread(cached)}
        milliseconds = {**beyond, **{key: beyond[key] * 1e3 for key in ("median", "low", "high")}}
        part.targets.append(Target(f"a new shape of {name}, beyond a cached call", 1, milliseconds,
                                   True, " ms"))
    options.show(part, table)


def memory(part, options):
    """Resident memory of the server with idle streams, and with executions that wait
    for their input."""
    count = 16 if options.tiny else 512
    table = Table("Memory of the server", ["", "count", "idle server", "with them", "of each",
                                           "reserved by each", "after"],
                  notes=["Tensor memory is reserved at the begin and resident once bytes come.",
                         "How many there may be, --max_streams and --max_executions say."])
    for what, words in (
            ("idle ExecuteStream", {"streams": count}),
            ("execution of 4 KiB in flight", {"streams": 2, "executions": 2 * count,
                                              "desc": desc("argmin", 1, 1024)}),
            ("execution of 1 MiB in flight", {"streams": 1, "executions": count // 4,
                                              "desc": desc("argmin", 256, 1024)})):
        # One client per server: it must end before the server does.
        with opmill_server(options) as server, Program("load_client") as client:
            client.ask("connect", server="opmill", target=server.address)
            call(client, "argmin", 1, 1024)
            idle = server.memory()
            client.ask("hold", server="opmill", **words)
            held = words["streams"] * words.get("executions", 1)
            statistics = wait_for(server, held, "executions" in words)
            full = server.memory()
            client.ask("release")
            wait_for(server, 0, "executions" in words)
            after = server.memory()
        each = (full - idle) / held
        part.data["memory"][what] = {"count": held, "idle_bytes": idle, "held_bytes": full,
                                     "each_bytes": each, "after_bytes": after,
                                     "in_flight": statistics}
        table.rows.append([what, str(held), bytes_text(idle >> 20 << 20),
                           bytes_text(full >> 20 << 20), f"{each / 1024:.1f} KiB",
                           bytes_text(int(statistics["bytes"]) // held),
                           bytes_text(after >> 20 << 20)])
    options.show(part, table)


def wait_for(server, count, executions):
    """Returns the statistics once this many streams or executions are open."""
    field = "executions" if executions else "streams"
    for _ in range(200):
        in_flight = server_statistics(server)["in_flight"]
        if int(in_flight[field]) == count:
            return in_flight
    raise BenchError(f"{count} {field} were to be open: {in_flight}")


def run(options):
    part = Part("cold", data={"starts": {}, "shapes": {}, "memory": {}})
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Program("load_client"))
        starts(part, options, client)
        with opmill_server(options) as server:
            shapes(part, options, client, server)
    memory(part, options)
    return part
