"""How a command ends when the system stops it: one line on stderr at most, and an exit status that says so."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asmdnn.errors import AsmdnnError

USAGE_ERROR = 2  # bad usage or input, and output that cannot be written
INTERRUPTED = 130  # as a shell reports SIGINT


def guarded(command: str, run: Callable[[], int]) -> int:
    """What `run` returns, or the status of what stopped it.

    A reader that has left (`| head`) is no error.
    """
    if sys.stderr is None:  # closed; print(file=None) would write to stdout
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        return refused(command, "stdout is closed: redirect it to a file, or to /dev/null")
    try:
        status = run()
        sys.stdout.flush()
        return status
    except AsmdnnError as error:
        return refused(command, str(error))
    except MemoryError:
        return refused(command, "the system has no more memory: free some, or take a smaller model or problem")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except OSError as error:
        what = repr(error.filename) if error.filename else "the output"
        return refused(command, f"{what} cannot be used ({error.strerror}): name another place, or make room")
    finally:
        drop_unwritten()


def show_warning(usual: Callable[..., None], message: Warning | str, category: type[Warning], *more: Any) -> None:
    """One line of what asmdnn warns of, without a place in its code; the rest as Python does."""
    if issubclass(category, RuntimeWarning):
        with suppress(OSError):
            print(f"asmdnn: {' '.join(str(message).split())}", file=sys.stderr)
    else:
        usual(message, category, *more)


def refused(command: str, why: str) -> int:
    with suppress(OSError):
        print(f"{command}: {' '.join(why.split())}", file=sys.stderr)
    return USAGE_ERROR


def drop_unwritten() -> None:
    """Python flushes stdout and stderr again at exit, and complains; what cannot be written goes nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
