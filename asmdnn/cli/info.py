"""`asmdnn info`: what the library sees of this machine, and what it uses."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from asmdnn import __version__, environment
from asmdnn.cli.unknown import unknown
from asmdnn.errors import AsmdnnError
from asmdnn.isa.cpu import tiles_are_refused
from asmdnn.isa.dot import dot_class, multiplied, run_products
from asmdnn.isa.levels import LEVELS
from asmdnn.isa.tiles import tile_level
from asmdnn.jit.store import default_directory, enabled
from asmdnn.planning.host import detected, effective_isa, executable_isas, host
from asmdnn.runtime import threads
from asmdnn.types import FLOATS, HALF_FLOATS, INTEGERS8, s8, u8

CPU_LIST = Path("/proc/cpuinfo")
CPUINFO_TIMEOUT_S = 3.0  # it takes 1.3 s, most of it for what is not asked here
NAME_WIDTH = 18
NOT_NATIVE = "widened to f32", "exact by words"  # floats, and bytes
RUNS = "sums of the same type if allowed"  # beside the others: accumulation_mode says so
WAYS = ("tiles for many rows", "native", "native for few rows", *NOT_NATIVE, RUNS)


def run(arguments: Sequence[str]) -> int:
    """Print the rows.  Raises InvalidArguments for other words than --json."""
    if list(arguments) in (["-h"], ["--help"]):
        print(
            f"asmdnn info [--json]    {(__doc__ or '').partition(': ')[2]}\n--json prints the rows as one JSON object."
        )
        return 0
    if list(arguments) == ["--json"]:
        print(json.dumps(dict(_rows()), indent=2))
        return 0
    if arguments:
        raise unknown("info", next((word for word in arguments if word != "--json"), arguments[-1]))
    for name, text in _rows():
        print(f"{name:<{NAME_WIDTH}} {text}")
    return 0


def _rows() -> Iterator[tuple[str, str]]:
    yield "asmdnn", __version__
    yield "CPU", cpu_brand()
    machine = host()
    foreign = f", by {environment.shown(environment.MACHINE)}; this CPU is {detected().name}"
    yield "machine", machine.name + foreign * (machine is not detected())
    yield "features", " ".join(sorted(machine.features))
    yield "ISA levels", ", ".join(str(isa) for isa in machine.isas) or "none"
    refused = "; Linux refuses the tile registers of AMX to this process" * tiles_are_refused()
    yield "executable", (", ".join(map(str, executable_isas())) or "none") + refused
    yield "ISA in use", _effective_isa()
    yield "products", _products()
    for isa in LEVELS:
        yield isa.name, products_of(isa.name)
    sizes = machine.caches
    levels = {"L1d": sizes.l1d_bytes, "L2": sizes.l2_bytes, "L3": sizes.l3_bytes}
    yield "caches", ", ".join(f"{name} {size >> 10} KiB" for name, size in levels.items())
    yield "threads", threads.single_thread_reason() or f"{threads.max_threads()}, {threads.runtime_path()}"
    unused = "" if enabled() else f", not in use: {environment.shown(environment.CACHE)}"
    yield "kernel cache", f"{default_directory()}{unused}"


def _effective_isa() -> str:
    cap = environment.text(environment.MAX_CPU_ISA)
    try:
        return f"{effective_isa()}{f', capped by {environment.shown(environment.MAX_CPU_ISA)}' if cap else ''}"
    except AsmdnnError as error:
        return f"none: {error}"


def _products() -> str:
    """The types of products in the level in use."""
    try:
        return products_of(str(effective_isa()))
    except AsmdnnError:
        return "none"


def products_of(isa: str) -> str:
    """The types of src and weights of products, by what a level does with them: of ways beside NOT_NATIVE it has an
    instruction."""
    found: dict[str, list[str]] = {way: [] for way in WAYS}
    for src, weights in (*((x, x) for x in FLOATS), (u8, s8), (s8, s8)):
        types = multiplied(src, weights, isa)
        is_native = types.src == src and dot_class(types, isa).is_native
        is_slow = src in HALF_FLOATS and host().tuning_at(isa).products.bf16_cycles > types.group
        how = ("native for few rows" if is_slow else "native") if is_native else NOT_NATIVE[src in INTEGERS8]
        how = "tiles for many rows" if tile_level(types, isa) else how
        pair = str(src) if src == weights != s8 else f"{src} x {weights}"
        for way in (how, *[RUNS] * (run_products(src, weights, isa) is not None)):
            found[way].append(pair)
    return "; ".join(f"{how}: {', '.join(pairs)}" for how, pairs in found.items() if pairs)


def cpu_brand() -> str:
    """The CPU's name: from Linux, which says it at once, else from py-cpuinfo where it is installed and answers."""
    return brand_of_linux(CPU_LIST) or brand_of_cpuinfo() or "unknown"


def brand_of_linux(path: Path) -> str:
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def brand_of_cpuinfo() -> str:
    """In a process of its own, as it starts others and may hang in them; what it prints is checked like any input."""
    if find_spec("cpuinfo"):
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, AttributeError):
            command = [sys.executable, "-m", "cpuinfo", "--json"]
            output = subprocess.run(command, capture_output=True, timeout=CPUINFO_TIMEOUT_S, check=True).stdout
            return str(json.loads(output).get("brand_raw", "")).strip()
    return ""
