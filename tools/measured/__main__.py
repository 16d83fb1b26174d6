"""`python -m tools.measured run NAME --title=TEXT [--note=TEXT] [--threads=1,2] [--ms=100]`, then `... pages`.

The first times all problem sets of sets.py beside oneDNN and writes docs/measurements/NAME.json, a set at a time: run
again, it goes on where it stopped, and with `--minutes` it stops by itself.  The second writes docs/measured-NAME.md
for every record.
"""

import argparse
import math
from collections.abc import Sequence

from tools.measured.page import page
from tools.measured.record import FOLDER, MeasuredCpu, measure, started


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the pages."""
    parser = argparse.ArgumentParser(prog="python -m tools.measured", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("name")
    run.add_argument("--title", required=True)
    run.add_argument("--note", default="")
    run.add_argument("--threads", default="1", type=lambda text: tuple(map(int, text.split(","))))
    run.add_argument("--ms", default=100, type=int)
    run.add_argument("--least-us", default=0, type=int, help="leave out what takes the peer less")
    run.add_argument("--minutes", default=math.inf, type=float, help="begin no set after so long")
    commands.add_parser("pages")
    words = parser.parse_args(arguments)
    if words.command == "run":
        FOLDER.mkdir(exist_ok=True)
        known = started(words.title, words.note, words.ms, words.least_us)
        measure(known, words.threads, FOLDER / f"{words.name}.json", words.minutes)
    else:
        for path in sorted(FOLDER.glob("*.json")):
            target = FOLDER.parent / f"measured-{path.stem}.md"
            target.write_text(page(path.stem, MeasuredCpu.read(path)))
            print(f"{target.name} written")


if __name__ == "__main__":
    main()
