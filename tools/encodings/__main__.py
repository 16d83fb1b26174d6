"""See the package."""

import sys
from typing import Final

from tools.encodings.calls import calls_of_everything
from tools.encodings.judges import versions
from tools.encodings.page import PAGE, page
from tools.encodings.record import rows_of, write

_REPETITIONS: Final = 21  # of a form; 20 are wanted


def main() -> int:
    print(*versions().values(), sep="\n")
    rows = rows_of(list(calls_of_everything(1, _REPETITIONS)))
    write(rows)
    PAGE.write_text(page(rows))
    print(f"{len(rows)} codes, {sum(bool(row.name) for row in rows)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
