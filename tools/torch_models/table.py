"""A record as the table of docs/torch.md."""

from statistics import geometric_mean
from typing import Any, Final

HEAD: Final = (
    "| model | eager | inductor | torch.compile | from_torch | over eager | over inductor |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)
FIRST_HEAD: Final = (
    "| own CPU seconds, first call | compile, cold | warm | from_torch, cold | warm | a later call |\n"
    "|---|---:|---:|---:|---:|---:|"
)
STATES: Final = ("compile cold", "compile warm", "from_torch cold", "from_torch warm")


def table(record: dict[str, Any], threads: int = 1) -> str:
    """Milliseconds by each way, how many times as long torch takes, as torch.compile and by from_torch; first calls."""
    rows, eager, inductor = [HEAD], [], []
    for name, entry in record.items():
        ms = entry.get(f"{threads} threads", {}).get("ms")
        if ms is None:
            continue
        over = [ms["eager"] / ms[way] for way in ("compile", "from_torch")]
        beside = [ms["inductor"] / ms[way] for way in ("compile", "from_torch")]
        eager.append(over)
        inductor.append(beside)
        times = " | ".join(f"{ms[way]:.3g}" for way in ("eager", "inductor", "compile", "from_torch"))
        rows.append(f"| {name} | {times} | {shown(over)} | {shown(beside)} |")
    if eager:
        means = [[geometric_mean(column) for column in zip(*ratios, strict=True)] for ratios in (eager, inductor)]
        rows.append(f"| geometric mean | | | | | {shown(means[0])} | {shown(means[1])} |")
    firsts = [FIRST_HEAD]
    for name, entry in record.items():
        if "first" in entry:
            seconds = [entry["first"][s]["own"] for s in STATES] + [entry["first"][STATES[1]]["again"]]
            firsts.append(f"| {name} | {' | '.join(f'{x:.2f}' for x in seconds)} |")
    return "\n".join([*rows, "", *firsts])


def shown(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)
