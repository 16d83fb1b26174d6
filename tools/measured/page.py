"""The page of a record: docs/measured-NAME.md of docs/measurements/NAME.json."""

from tools.measured.record import BEHIND, MeasuredCpu, Row


def page(name: str, cpu: MeasuredCpu) -> str:
    """The text of the page, which is made anew whenever the record is: nothing in it is written by hand."""
    counts = sorted({row.threads for row in cpu.rows})
    return "\n".join(
        [
            f"# Measured: {cpu.title}",
            "",
            f"Class `{cpu.machine}`, level `{cpu.isa}`, {cpu.peer}, {cpu.date}, commit {cpu.commit}. {cpu.note}",
            "",
            "Each number says how many times as fast as oneDNN: the geometric mean of a set's medians, and in brackets",
            f"the lowest. Both libraries took turns in one process, {cpu.ms} ms a problem. *Kernels* leaves out what",
            "oneDNN computes by its reference code.",
            *_left_out(cpu),
            "",
            *_table(cpu, counts),
            "",
            *_behind(cpu),
            "## Again",
            "",
            "One row, and the whole page on a machine of your own:",
            "",
            "```sh",
            f"asmdnn bench {_command(cpu.rows[0], cpu.ms)}",
            "```",
            "",
            "```text",
            f'python -m tools.measured run {name} --title="..." --threads={",".join(map(str, counts))} --ms={cpu.ms}'
            + f" --least-us={cpu.least_us}" * bool(cpu.least_us),
            "python -m tools.measured pages",
            "```",
            "",
        ]
    )


def _left_out(cpu: MeasuredCpu) -> list[str]:
    if not cpu.least_us:
        return []
    return [
        f"What takes oneDNN less than {cpu.least_us} us is left out: a call of this build, which runs by SYCL, costs",
        "it 20 to 30 us beside its kernel.",
    ]


def _command(row: Row, ms: int) -> str:
    driver, *words = row.words.split()
    return " ".join([driver, f"--mode=P --peer=onednn --threads={row.threads} --max-ms-per-prb={ms}", *words])


def _table(cpu: MeasuredCpu, counts: list[int]) -> list[str]:
    heads = [f"{count} thread{'s' * (count > 1)}" for count in counts]
    lines = [f"| set | problems | {' | '.join(heads)} | kernels |", f"|---|---:|{'---:|' * (len(counts) + 1)}"]
    for first in (row for row in cpu.rows if row.threads == counts[0]):
        same = {row.threads: row for row in cpu.rows if row.title == first.title}
        cells = [f"{same[n].mean:.2f} ({same[n].least:.2f})" if n in same else "" for n in counts]
        count, mean = first.against_kernels
        of = f" of {count}" if count else ""
        kernels = "" if count == first.problems else "none" if mean is None else f"{mean:.2f}{of}"
        lines.append(f"| [{first.title}]({first.page}.md) | {first.problems} | {' | '.join(cells)} | {kernels} |")
    return lines


def _behind(cpu: MeasuredCpu) -> list[str]:
    rows = [row for row in cpu.rows if row.behind]
    if not rows:
        return []
    lines = [
        "## What is slower",
        "",
        f"Problems below {BEHIND} of oneDNN's speed, of {sum(row.problems for row in cpu.rows)}:",
        "",
        "| set | threads | problem | times as fast |",
        "|---|---:|---|---:|",
    ]
    for row in rows:
        lines += [f"| {row.title} | {row.threads} | `{title}` | {ratio:.2f} |" for title, ratio in row.behind]
    return [*lines, ""]
