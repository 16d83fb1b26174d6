"""ASMDNN_JIT_PROFILE: tells profilers and debuggers where the kernels of this process are.

    perf_map   /tmp/perf-PID.map            names for `perf report`
    jitdump    JITDUMPDIR/jit-PID.dump      code, names and unwind information for `perf inject --jit` (default: /tmp)
    gdb        JITDUMPDIR/asmdnn-PID.elf    names and unwind information for gdb's `add-symbol-file`

Read whenever kernels are mapped; nothing is written unless it is asked for.  Announced kernels stay mapped until the
process ends: none of these files can take a name back, and another kernel at the same address would go by it.  A
fork()ed child writes files of its own.
"""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Final

from asmdnn import environment
from asmdnn.errors import reason_of
from asmdnn.files import replace_file, temporary_directory
from asmdnn.forking import importing
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from asmdnn.records import dataclass, field

WORDS: Final = ("perf_map", "jitdump", "gdb")

Add = Callable[[str, int, bytes], None]


@dataclass(slots=True)
class _Session:
    """What has been announced in this process, and the files that are open for it."""

    forked: bool = False
    kernels: dict[int, tuple[str, int]] = field(default_factory=dict)  # by address: name and size
    memories: list[ExecutableMemory] = field(default_factory=list)
    writers: dict[str, Add] = field(default_factory=dict)
    symbols: list[tuple[str, int, bytes]] = field(default_factory=list)  # of the file for gdb
    lock: threading.Lock = field(default_factory=threading.Lock)


_session: _Session | None = None


def wanted() -> frozenset[str]:
    """The words of the variable, read now."""
    return environment.words(environment.JIT_PROFILE, WORDS)


def tail(names: frozenset[str], code: bytes) -> bytes:
    """What has to be mapped after a kernel for those who are asked for."""
    if "jitdump" not in names:
        return b""
    with importing():
        from asmdnn.jit import jitdump

    return jitdump.tail(code)


def announce(names: frozenset[str], kernels: Sequence[tuple[str, int, int]], memory: ExecutableMemory) -> None:
    """Write (name, address, bytes) of new kernels to what `names` asks for.  A file that cannot be written costs one
    warning, and work goes on without it."""
    session = _current()
    with session.lock:
        session.memories.append(memory)
        session.kernels |= {address: (name, size) for name, address, size in kernels}
        _write(session, names, [address for _, address, _ in kernels])


def directory() -> str:
    """Where jitdump and gdb files go."""
    return str(environment.path("JITDUMPDIR") or temporary_directory())


def symbol_path() -> str:
    return os.path.join(directory(), f"asmdnn-{os.getpid()}.elf")


def _current() -> _Session:
    global _session
    if _session is None:
        os.register_at_fork(after_in_child=_start_again)
        _session = _Session()
    return _session


def _start_again() -> None:
    """In a fork()ed child: the kernels are there, the files are the parent's."""
    global _session
    if _session is None:  # forked in the moment between the registration and the first session
        return
    _session = _Session(True, _session.kernels, _session.memories)
    _write(_session, wanted(), list(_session.kernels))


def _write(session: _Session, names: frozenset[str], addresses: Sequence[int]) -> None:
    for word in sorted(names):
        try:
            new = word not in session.writers
            if new:
                session.writers[word] = _open(word, session)
            add = session.writers[word]
            for address in session.kernels if new else addresses:
                name, size = session.kernels[address]
                add(name, address, bytes(ffi.buffer(ffi.cast("char *", address), size)))
            if word == "gdb" and add is not _ignore:
                _write_symbols(session)
        except OSError as error:
            session.writers[word] = _ignore
            warnings.warn(
                f"{environment.JIT_PROFILE}={word}: its file cannot be written ({reason_of(error)}), so kernels have "
                "no names there: set JITDUMPDIR to a directory that you can write to, or leave the word out.",
                RuntimeWarning,
                stacklevel=5,
            )


def _open(word: str, session: _Session) -> Add:
    if word == "perf_map":
        with importing():  # here and below: only who asks for them needs these
            from asmdnn.jit import perf_map

        add_name = perf_map.writer(session.forked)
        return lambda name, address, code: add_name(name, address, len(code))
    if word == "jitdump":
        with importing():
            from asmdnn.jit.jitdump import Jitdump

        return Jitdump(directory()).write
    return lambda name, address, code: session.symbols.append((name, address, code))


def _write_symbols(session: _Session) -> None:
    """gdb reads the whole file at once, so it is written anew, in one step."""
    with importing():
        from asmdnn.jit.symbol_file import KernelSymbol, symbol_file

    replace_file(symbol_path(), symbol_file([KernelSymbol(*symbol) for symbol in session.symbols]), mode=0o600)


def _ignore(name: str, address: int, code: bytes) -> None:
    """In the place of a file that cannot be written."""
