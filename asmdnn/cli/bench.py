"""`asmdnn bench`: check and time problems, here and in a peer library."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from asmdnn.bench import batch_files
from asmdnn.bench.driver import AnyCase, AnyDriver
from asmdnn.bench.drivers import driver_names
from asmdnn.bench.options import Reader
from asmdnn.bench.report import Record, listed, summary
from asmdnn.bench.table import WHOLE, Layout
from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import columns_of, show_help
from asmdnn.errors import InvalidArguments

FAILED = 1
FAILURES = ("failed", "unimplemented")


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 when a problem failed.  Raises AsmdnnError for arguments that cannot be run."""
    reader = Reader()
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        reader.read([word for word in arguments if word.removeprefix("--") in driver_names()], Path.cwd())
        show_help(usage(reader.driver))
        return 0
    reader.read(arguments, Path.cwd())
    if not reader.cases:
        raise InvalidArguments("bench: no problem is given; name one, or a set with --batch=resnet_50")
    with _json_stream(reader.json) as json_stream:
        records = list(_records(reader.cases, json_stream, table=reader.json != "-"))
    if any(record.status != "listed" for record in records):
        print(summary(records), file=sys.stderr if reader.json == "-" else sys.stdout)
    return FAILED if any(record.status in FAILURES for record in records) else 0


def usage(driver: AnyDriver) -> str:
    options = "\n".join(
        f"  --{name}=...{'*' if option.takes_list else '':<{18 - len(name)}} {option.help}"
        for name, option in driver.options.items()
    )
    return f"""asmdnn bench --{driver.name} [OPTION | PROBLEM | --batch=FILE-OR-SET] ...

Options hold for the problems after them; those with * take a list and run every combination:
{options}
  --json=FILE              one JSON object a problem, instead of the table when FILE is -
  --reset                  options that describe a problem back to their defaults
Drivers: {", ".join(f"--{name}" for name in driver_names())}, each with its own --help
Problem sets: {", ".join(batch_files.problem_sets())}
Example: asmdnn bench --{driver.name} {driver.example}
A problem, as benchdnn writes it: {driver.notation}"""


@contextlib.contextmanager
def _json_stream(name: str) -> Iterator[TextIO | None]:
    if name in ("", "-"):
        yield sys.stdout if name else None
        return
    try:
        stream = open(name, "w", encoding="utf-8")  # noqa: SIM115 - closed below, errors of the body are not ours
    except OSError as error:
        raise InvalidArguments(f"--json={name}: {error.strerror}") from None
    with stream:
        yield stream


def _records(cases: Sequence[AnyCase], json_stream: TextIO | None, table: bool) -> Iterator[Record]:
    """Run the cases, and show each when it is done."""
    runs = _runs(cases)
    headed: tuple[str, Layout] | None = None
    with Progress(len(cases), sys.stderr) as progress:
        for done, (case, run_it) in enumerate(zip(cases, runs, strict=True)):
            progress.update(done, case.problem.name or str(case.problem))
            record = run_it()
            progress.clear()
            if json_stream:
                print(record.to_json(), file=json_stream, flush=True)
            if table and record.status == "listed":
                print(case, flush=True)
            elif table:
                layout = Layout.of(columns_of(sys.stdout) or WHOLE)  # asked anew: the terminal may have been resized
                if headed != (case.driver.name, layout):
                    headed = case.driver.name, layout
                    print(layout.header(case.driver))
                print(layout.row(record), flush=True)
            yield record


def _runs(cases: Sequence[AnyCase]) -> list[Callable[[], Record]]:
    """A call for each case; whatever is wrong with its settings is raised now, before the first one has run."""
    if all(case.settings.mode == "L" for case in cases):
        return [partial(listed, case) for case in cases]
    from asmdnn.bench.case import prepare  # not above: a list needs neither numpy nor the library

    return [partial(listed, case) if case.settings.mode == "L" else prepare(case) for case in cases]
