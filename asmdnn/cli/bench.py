"""`asmdnn bench`: check and time problems, here and in a peer library."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from asmdnn.bench import batch_files
from asmdnn.bench.driver import AnyCase, AnyDriver
from asmdnn.bench.drivers import driver_names
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.report import Record, listed, unread
from asmdnn.bench.table import WHOLE, TableLayout
from asmdnn.bench.tally import Tally
from asmdnn.cli.progress import Progress
from asmdnn.cli.terminal import columns_of, show_help
from asmdnn.errors import InvalidArguments
from asmdnn.records import replace
from asmdnn.runtime.other_work import OtherWork

FAILED = 1


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 when a problem failed, was refused, or could not be read.

    Raises AsmdnnError for arguments that cannot be run.
    """
    if any(word.partition("=")[0] == "--network" for word in arguments):
        from asmdnn.cli.bench_network import run_network  # not above: problems need no networks

        return run_network(arguments)
    reader = Reader()
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        reader.read([word for word in arguments if word.removeprefix("--") in driver_names()], Path.cwd())
        show_help(usage(reader.driver))
        return 0
    total = reader.count(arguments, Path.cwd())  # and with it all mistakes on the command line
    if not total:
        raise InvalidArguments("bench: no problem is given; name one, or a set with --batch=resnet_50")
    if reader.ranks:
        from asmdnn.bench import rank  # not above: most runs rank nothing

        with Progress(total, sys.stderr) as progress:
            return rank.run(arguments, progress.update, progress.clear)
    tally = Tally()
    others = OtherWork()
    with _json_stream(reader.json) as json_stream:
        for record in _records(arguments, total, json_stream, table=reader.json != "-"):
            tally.add(record)
    if not tally.is_list:
        print(tally.text(reader.shows_failures), file=sys.stderr if reader.json == "-" else sys.stdout)
    if tally.has_times:
        others.warn(sys.stderr)
    return FAILED if tally.has_failed else 0


def usage(driver: AnyDriver) -> str:
    options = "\n".join(
        f"  --{name}=...{'*' if option.takes_list else '':<{18 - len(name)}} {option.help}"
        for name, option in driver.options.items()
    )
    return f"""asmdnn bench --{driver.name} [OPTION | PROBLEM | --batch=FILE-OR-SET] ...

Options hold for the problems after them; those with * take a list and run every combination:
{options}
  --json=FILE              one JSON object a problem, instead of the table when FILE is -
  --rank                   what is chosen for each problem, against the fastest of all that it is chosen from
  --network                a model instead: asmdnn bench --network --help
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


def _records(arguments: Sequence[str], total: int, json_stream: TextIO | None, table: bool) -> Iterator[Record]:
    """Read and run one case after the other, and show each when it is done."""
    headed: tuple[str, TableLayout] | None = None
    with Progress(total, sys.stderr) as progress:
        for driver, record in _run_all(arguments, progress):
            progress.clear()
            if json_stream:
                print(record.to_json(), file=json_stream, flush=True)
            if table and record.status == "listed":
                print(record.args)
            elif table:
                layout = TableLayout.of(columns_of(sys.stdout) or WHOLE)  # the terminal may have been resized
                if driver is not None and headed != (driver.name, layout):
                    headed = driver.name, layout
                    print(layout.header(driver))
                print(layout.row(record), flush=True)
            yield record


def _run_all(arguments: Sequence[str], progress: Progress) -> Iterator[tuple[AnyDriver | None, Record]]:
    reader = Reader()
    for done, found in enumerate(reader.stream(arguments, Path.cwd())):
        if isinstance(found, Mistake):
            yield None, unread(found.where, found.reason, found.is_skipped)
        elif done >= found.settings.start:
            progress.update(done, found.problem.name or str(found.problem))
            for _ in range(found.settings.repeats):
                yield found.driver, _result(found, reader.where)


def _result(case: AnyCase, where: str) -> Record:
    """What is no problem of the primitive is skipped in a file, and raises InvalidArguments on the command line."""
    if case.settings.mode == "L":
        return listed(case)
    from asmdnn.bench.case import prepare  # not above: a list needs neither numpy nor the library

    if case.settings.verbose:
        print(f"run: {case}", file=sys.stderr, flush=True)
    try:
        record = prepare(case)()
    except InvalidArguments as error:
        if not where:
            raise
        return replace(listed(case), status="skipped", reason=" ".join(str(error).split()))
    return replace(record, ok=False) if record.status == "unimplemented" and not where else record
