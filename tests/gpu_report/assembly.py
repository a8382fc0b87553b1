"""The code of a kernel that reads most of its input, from the assembly of RADV (AMD) or NVK (NVIDIA)."""

import dataclasses
import re

_AMD_BYTES = {"x": 4, "xy": 8, "xyz": 12, "xyzw": 16, "b32": 4, "b64": 8, "b96": 12, "b128": 16,
              "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_AMD_LOAD = re.compile(r"(?:buffer|global)_load_(?:format_)?(?:d16_)?(\w+)")
_NVIDIA_TYPED = re.compile(r"(?:tld|suld)[\w.]*?\.([rgba]+)\b")
_WAIT = re.compile(r"s_waitcnt.*vmcnt\((\d+)\)")
_STORES = ("sust", "st.global", "buffer_store", "global_store")
_SHARED_ATOMIC = re.compile(r"atom\.\S*\.shared|ds_(?:add|append)")
_MULTIPLY_ADD = re.compile(r"v_(?:pk_|dual_)?(?:fma|mac|mad)[a-z]*_(?:mix_)?f(?:16|32)|ffma|hfma")
_BARRIERS = ("s_barrier", "bar.sync")
_NO_WORK = ("s_delay", "s_nop", "s_waitcnt", "s_clause", "nop")


@dataclasses.dataclass
class HotCode:
    """What loads the most bytes from memory: one iteration of a loop, without those within it, or all code outside of
    loops."""
    loads: int
    load_bytes: int
    bytes_in_flight: int  # that a lane waits for at once
    instructions: int
    divisions: int  # in a loop; those outside happen once
    barriers: int
    in_loop: bool
    straight: int  # instructions outside of loops
    step: int  # instructions of the smallest loop with a barrier: a step of a join or a sort
    result: int  # of the smallest loop that stores to memory
    comparison: int  # of a loop in one that adds to groupshared memory: candidates that ranks compare
    leaders: int  # of the innermost loop with the most loads from groupshared memory
    scan: int  # of the innermost loop with the most groupshared atomics, or that loads the most
    insertion: int  # of the longest innermost loop
    multiply_adds: float  # share of the instructions of the innermost loop that has the most


def hot_code(assembly):
    """Returns the hot code, or None if nothing loads from memory."""
    is_nvidia = assembly.startswith("block")
    blocks, edges = (_nvidia_blocks if is_nvidia else _amd_blocks)(assembly)
    loops = _loops(edges)
    within = {begin: [loops[other] for other in loops if other != begin and other in body]
              for begin, body in loops.items()}
    inner = [loops[begin] for begin in loops if not within[begin]]
    own = [loops[begin].difference(*within[begin]) for begin in loops]
    outside = set(range(len(blocks))).difference(*loops.values())

    def lines_of(body):
        return [line for at in sorted(body) for line in blocks[at]]

    codes = [lines_of(body) for body in [*inner, outside]]
    body = max([*map(lines_of, own), codes[-1]], key=lambda lines: sum(map(_loaded, lines)))
    if not any(map(_loaded, body)):
        return None

    def count(*starts):
        return sum(line.startswith(starts) for line in body)

    def smallest_loop_with(starts):
        return min((_work(lines) for lines in map(lines_of, loops.values())
                    if any(line.startswith(starts) for line in lines)), default=0)

    def is_comparison(inner_body):
        around = [body for body in loops.values() if inner_body < body]
        rest = lines_of(min(around, key=len) - inner_body) if around else []
        return (any(map(_SHARED_ATOMIC.search, rest)) and
                not any(line.startswith(_BARRIERS) for line in rest))

    load_bytes = sum(map(_loaded, body))
    return HotCode(
        loads=sum(_loaded(line) > 0 for line in body), load_bytes=load_bytes,
        # The text does not show NVIDIA's scoreboards: all loads of an iteration may be in flight.
        bytes_in_flight=load_bytes if is_nvidia else _in_flight(body),
        instructions=_work(body),
        divisions=0 if body is codes[-1] else count("v_rcp", "mufu.rcp"),
        barriers=count(*_BARRIERS),
        in_loop=body is not codes[-1], straight=_work(codes[-1]),
        step=smallest_loop_with(_BARRIERS), result=smallest_loop_with(_STORES),
        comparison=max((_work(lines_of(body)) for body in inner if is_comparison(body)), default=0),
        scan=_work(max(codes[:-1], key=_counted, default=[])),
        leaders=_work(max(codes[:-1], key=_shared_loads, default=[])),
        insertion=max(map(_work, codes[:-1]), default=0),
        multiply_adds=max(map(_multiply_adds, codes[:-1]), default=(0, 0.0))[1])


def _multiply_adds(lines):
    """Their number and share. The two parts of a dual instruction count as two."""
    parts = [part.strip() for line in lines if _work([line]) for part in line.split("::")]
    number = sum(bool(_MULTIPLY_ADD.match(part)) for part in parts)
    return number, round(number / max(1, len(parts)), 3)


def _work(lines):
    return sum(not line.startswith(_NO_WORK) for line in lines)


def _counted(lines):
    return sum(bool(_SHARED_ATOMIC.search(line)) for line in lines), sum(map(_loaded, lines))


def _shared_loads(lines):
    return sum(line.startswith(("ld.shared", "ds_load", "ds_read")) for line in lines)


def _nvidia_blocks(assembly):
    """Basic blocks as lists of instructions, and the edges between them."""
    blocks, edges = [], []
    for line in assembly.splitlines():
        if line.startswith("block"):
            blocks.append([])
        elif line.startswith("} ->"):
            edges += [(len(blocks) - 1, int(to)) for to in re.findall(r"\d+", line)]
        elif line.strip() and blocks:
            blocks[-1].append(re.sub(r"\s*//.*", "", line).split("=", 1)[-1].strip())
    return blocks, edges


def _amd_blocks(assembly):
    places, blocks = {}, []
    for line in assembly.splitlines():
        line = re.sub(r"\s*(;|//).*", "", line).strip()
        if line.endswith(":") or not blocks:
            places[line.removesuffix(":")] = len(blocks)
            blocks.append([])
        if line and not line.endswith(":"):
            blocks[-1].append(line)
    edges = []
    for at, body in enumerate(blocks):
        targets = (re.match(r"s_c?branch\w* (BB\d+)", line) for line in body)
        edges += [(at, places[target[1]]) for target in targets if target and target[1] in places]
        if at + 1 < len(blocks) and not (body and body[-1].startswith("s_branch")):
            edges.append((at, at + 1))
    return blocks, edges


def _loops(edges):
    """For the first block of each loop, all blocks that can reach its backward branches."""
    bodies = {}
    for end, begin in edges:
        if begin > end:
            continue
        body, waiting = bodies.setdefault(begin, {begin}), [end]
        while waiting:
            at = waiting.pop()
            if at not in body:
                body.add(at)
                waiting += [source for source, target in edges if target == at]
    return bodies


def _loaded(line):
    """The bytes that one lane loads from memory with this instruction."""
    if match := _AMD_LOAD.match(line):
        return _AMD_BYTES.get(match[1], 4)
    if match := _NVIDIA_TYPED.match(line):
        return 4 * len(match[1])
    if line.startswith("ld.global"):
        return _AMD_BYTES.get(line.split(" ")[0].split(".")[-1], 4)
    return 0


def _in_flight(body):
    """The most bytes in flight, over two iterations, because a load may be awaited in the next one."""
    most, waiting = 0, []
    for line in body * 2:
        if loaded := _loaded(line):
            waiting.append(loaded)
            most = max(most, sum(waiting))
        if wait := _WAIT.match(line):
            waiting = waiting[max(0, len(waiting) - int(wait[1])):]
    return most
