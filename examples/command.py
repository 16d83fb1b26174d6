"""What every example has at the command line: --help, and one sentence for what is wrong."""

import sys
import wave
from collections.abc import Callable

from asmdnn.errors import AsmdnnError, counted
from examples.models import MissingModel

WRONG = (AsmdnnError, MissingModel, OSError, ValueError, EOFError, wave.Error)


def command(main: Callable[..., object], doc: str | None, most: int | None = 0) -> None:
    """Run an example.  doc: its module's docstring, which is its help; most: how many words it takes, None for any;
    `main` gets them as a list, and nothing if it takes none.

    Ends the process with status 1 and a sentence where a model, a file or a word is not what is needed.
    """
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print((doc or "").strip())
        return
    if unknown := next((word for word in words if word.startswith("-")), None):
        sys.exit(f"{sys.argv[0]}: '{unknown}' is no option; --help says what there is")
    if most is not None and len(words) > most:
        takes = counted(most, "word") if most else "no words"
        sys.exit(f"{sys.argv[0]}: it takes {takes}, not {' '.join(words)}; see --help")
    try:
        main() if most == 0 else main(words)
    except WRONG as error:
        what = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            what = f"{error.filename} cannot be used: {error.strerror}"
        sys.exit(f"{sys.argv[0]}: {' '.join(what.split()) or type(error).__name__}")
