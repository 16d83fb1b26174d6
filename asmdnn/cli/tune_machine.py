"""`asmdnn tune --machine`: what of the class's numbers this CPU contradicts, shown while it is measured, and kept."""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from asmdnn.cli.progress import Progress
from asmdnn.cli.unknown import unknown
from asmdnn.errors import InvalidArguments, Unimplemented

DEFAULT_MS = 1000
HEAD = f"{'number':34} {'of the class':>16} {'best here':>16} {'times as fast':>13} {'least':>6} {'problems':>8}"


def run(arguments: Sequence[str]) -> int:
    """The exit status.  Raises AsmdnnError for words that mean nothing, and levels that cannot be executed."""
    options = _options(arguments)
    from asmdnn.bench.tune_machine import chosen_names, measured  # not above: other words need neither numpy nor plans
    from asmdnn.cli.info import cpu_brand
    from asmdnn.isa.vectors import f32_level
    from asmdnn.planning import own_row
    from asmdnn.planning.host import detected, host, require_executable
    from asmdnn.primitives.core.engine import Engine
    from asmdnn.runtime.rates import rates

    names, machine = chosen_names(options["only"]), host()
    if machine is not detected():
        raise InvalidArguments(f"tune --machine measures this CPU, not {machine.name}: unset ASMDNN_MACHINE")
    engine = Engine(isa=options["isa"], threads=1)
    require_executable(engine.isa)
    as_json, own = "json" in options, machine.tuning_at(engine.isa)
    before = {name: value for name, value in own_row.kept(engine.isa).items() if name not in names}
    found = []
    with Progress(len(names) + 1, sys.stderr) as progress:
        progress.update(0, "clock, caches, memory")
        ceilings = rates(engine.isa, again=True)
        if not as_json:
            progress.clear()
            roofs = ", ".join(f"{name} {gbs:.0f}" for name, gbs in ceilings.roofs)
            print(f"{cpu_brand()}: class {machine.name}, {f32_level(engine.isa)}, {ceilings.clock_ghz:.2f} GHz, "
                  f"{ceilings.fma_gflops:.0f} GFLOP/s; GB/s read: {roofs}")  # fmt: skip
            if ceilings.disturbance:
                print(f"The machine is not idle: {ceilings.disturbance}.", file=sys.stderr)
            print(HEAD, flush=True)
        for finding in measured(names, engine, own, options["ms"] * 1e-3, lambda n, what: progress.update(n + 1, what)):
            found.append(finding)
            if not as_json:
                progress.clear()
                print(_line(finding), flush=True)
    others = {finding.name: finding.value for finding in found if finding.is_other}
    try:
        own_row.keep(engine.isa, before | others)
    except OSError as error:
        raise Unimplemented(f"tune --machine: {own_row.path()} cannot be written ({error.strerror})") from None
    if as_json:
        print(json.dumps(_listed(found, machine.name, f32_level(engine.isa), ceilings), indent=1))
    else:
        print(f"{len(others)} of {len(found)} numbers differ from those of {machine.name}, in {own_row.path()}")
    return 0


def _line(finding: Any) -> str:
    stays = "stays" if finding.problems else "not measured"
    here = _shown(finding.value) if finding.is_other else stays
    gain = f"{finding.gain:13.2f} {finding.least:6.2f}" if finding.is_other else f"{'':13} {'':6}"
    return f"{finding.name:34} {_shown(finding.default):>16} {here:>16} {gain} {finding.problems:8}".rstrip()


def _shown(value: Any) -> str:
    """Bytes as MiB, what is never reached as such, and the rest as Python writes it."""
    if hasattr(value, "spread"):
        return f"{value.spread}/{value.quarter}/{value.whole}"
    if type(value) is int and value >= 1 << 30:
        return "never"
    return f"{value >> 20} MiB" if type(value) is int and value >= 1 << 20 else str(value)


def _listed(found: Sequence[Any], machine: str, level: str, ceilings: Any) -> dict[str, Any]:
    """What was found, for programs."""
    from dataclasses import asdict

    from asmdnn.planning.own_row import as_json, path

    numbers = [asdict(each) | {"default": as_json(each.default), "value": as_json(each.value)} for each in found]
    return {"class": machine, "isa": level, "rates": asdict(ceilings), "numbers": numbers, "file": str(path())}


def _options(arguments: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"isa": "", "only": "", "ms": DEFAULT_MS}
    for word in arguments:
        name, _, value = word.partition("=")
        if word == "--json":
            found["json"] = True
        elif name in ("--isa", "--only") and value:
            found[name.removeprefix("--")] = value
        elif name == "--max-ms-per-prb":
            found["ms"] = 0
            with suppress(ValueError):
                found["ms"] = int(value)
            if not 1 <= found["ms"] <= 1_000_000:
                raise InvalidArguments(f"tune: {word}: expected a number of milliseconds, 1 to 1000000")
        elif word != "--machine":
            raise unknown("tune", word)
    return found
