"""backtrace(), gdb and chains of frame pointers get from a called C function through generated code to Python."""

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asmdnn import asm
from asmdnn.errors import InvalidArguments
from asmdnn.jit.frames import LIBRARY, announce_frames
from asmdnn.jit.kernels import Fetched, mapped

MOST = 64
libc = ctypes.CDLL(None)


def needs_libgcc() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"there is no {LIBRARY}")


def walking(saved: int, local_bytes: int, target: Any, frame_pointer: bool = False) -> asm.CFunction:
    """A function that uses so many callee-saved registers and bytes of stack, and calls `walk`."""

    @asm.function(
        "int64_t outer(uint64_t *places, int64_t most)",
        reads={"places": "8*most"}, writes={"places": "8*most"}, calls={"walk": target}, frame_pointer=frame_pointer,
    )  # fmt: skip
    def outer(f: Any, places: Any, most: Any) -> None:
        for number in (3, 12, 13, 14, 15)[:saved]:
            f.MOV(asm.register("r64", number), 1)
        if local_bytes:
            f.MOV(f.local(local_bytes).sized(8), 0)
        f.ret(f.call("walk", places, most))

    return outer


def places_of(outer: asm.CFunction) -> list[int]:
    places = np.zeros(MOST, np.uint64)
    count = outer(places, MOST)
    return [int(place) for place in places[:count]]


def inside(outer: asm.CFunction, place: int) -> bool:
    return 0 <= place - outer.address < len(outer.code)


@pytest.mark.parametrize("frame_pointer", [False, True])
@pytest.mark.parametrize(("saved", "local_bytes"), [(0, 0), (1, 0), (2, 0), (5, 0), (0, 64), (3, 4096)])
def test_backtrace(saved: int, local_bytes: int, frame_pointer: bool) -> None:
    """glibc's backtrace() finds the caller, which is outside, and the caller's callers."""
    needs_libgcc()
    outer = walking(saved, local_bytes, ("int32_t(uint64_t *, int32_t)", walk()), frame_pointer)
    places = places_of(outer)
    at = next(i for i, place in enumerate(places) if inside(outer, place))
    assert len(places) - at > 3  # cffi, and Python that called it
    assert not any(inside(outer, place) for place in places[at + 1 :])


def walk() -> int:
    """The address of backtrace()."""
    return ctypes.cast(libc.backtrace, ctypes.c_void_p).value or 0


def test_backtrace_in_a_called_c_function(tmp_path: Path) -> None:
    needs_libgcc()
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "walk.c").write_text("""
        #include <execinfo.h>
        #include <stdint.h>
        static __attribute__((noinline)) int deep(void **places, int most, int n) {
            return n ? deep(places, most, n - 1) + 0 * most : backtrace(places, most);
        }
        int32_t walk(uint64_t *places, int32_t most) { volatile int n = deep((void **)places, most, 5); return n; }
    """)
    subprocess.run([gcc, "-O1", "-shared", "-fPIC", "walk.c", "-o", "walk.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "walk.so"))
    found = ctypes.cast(library.walk, ctypes.c_void_p).value
    outer = walking(4, 200, ("int32_t(uint64_t *, int32_t)", found))
    places = places_of(outer)
    at = next(i for i, place in enumerate(places) if inside(outer, place))
    assert at >= 1
    assert len(places) - at > 3


def test_what_leaves_rsp_alone_says_nothing() -> None:
    @asm.function("int64_t one(void)")
    def one(f: Any) -> None:
        f.ret(1)

    (loaded,) = mapped([Fetched("one", one.code, "generated")])
    assert not announce_frames(one.code, loaded.address, loaded.keep_alive)


def test_frames_go_with_the_memory() -> None:
    """Thousands of functions come and go; a walk afterwards meets none of their sections."""
    needs_libgcc()
    for _ in range(300):
        assert walking(2, 0, ("int32_t(uint64_t *, int32_t)", walk())).address
    gc.collect()
    assert len(places_of(walking(1, 0, ("int32_t(uint64_t *, int32_t)", walk())))) > 3


def test_the_chain_of_frame_pointers() -> None:
    """rbp points to the caller's rbp, with the return address above it: what perf --call-graph fp reads."""

    @asm.function("uint64_t chain(uint64_t *found)", writes={"found": "24"}, reads={"found": "24"}, frame_pointer=True)
    def chain(f: Any, found: Any) -> None:
        for number in (12, 15):
            f.MOV(asm.register("r64", number), 7)
        f.MOV(f.local(32).sized(8), 0)
        f.ret(1)

    text = [line.text for line in chain.listing]
    assert text[:5] == ["push rbp", "push r12", "push r15", "sub rsp, 32", "lea rbp, [rsp+48]"]
    assert text[-5:] == ["add rsp, 32", "pop r15", "pop r12", "pop rbp", "ret"]
    chain.prove()
    assert chain(np.zeros(3, np.uint64)) == 1


def test_rbp_is_not_for_the_body() -> None:
    @asm.function("int64_t f(void)", frame_pointer=True)
    def f(f: Any) -> None:
        assert asm.register("r64", 5) not in f.gp.take("all that there are", 14)
        f.MOV(asm.register("r32", 5), 1)
        f.ret(1)

    with pytest.raises(InvalidArguments, match="MOV names ebp, the frame pointer of 'f'"):
        f()


def test_gdb_gets_through(tmp_path: Path) -> None:
    """Without symbols gdb follows frame pointers."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    program = tmp_path / "program.py"
    program.write_text("""
import ctypes, os, signal
from asmdnn import asm
abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value

@asm.function("int64_t outer(void)", calls={"abort": ("void(void)", abort)}, frame_pointer=True)
def outer(f):
    f.call("abort")
    f.ret(1)

print(hex(outer.address), len(outer.code), flush=True)
outer()
""")
    words = [gdb, "-q", "-batch", "-ex", "run", "-ex", "bt", "--args", sys.executable, str(program)]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=root, check=False)
    start = next((line for line in done.stdout.splitlines() if line.startswith("0x")), None)
    if start is None:
        pytest.skip("gdb cannot run a program here")
    address, size = int(start.split()[0], 16), int(start.split()[1])
    frames = [line for line in done.stdout.splitlines() if line.startswith("#")]
    places = [int(line.split()[1], 16) if " in " in line else 0 for line in frames]
    at = [i for i, place in enumerate(places) if address <= place < address + size]
    assert at, done.stdout
    assert len(frames) - at[0] > 3, done.stdout


def test_perf_names_and_gets_through(tmp_path: Path) -> None:
    """perf record --call-graph fp: from a C function to the generated one by its name, and on to its caller."""
    perf, gcc = shutil.which("perf"), shutil.which("gcc")
    if perf is None or gcc is None:
        pytest.skip("perf or gcc is not installed")
    (tmp_path / "burn.c").write_text(
        "long burn(long n) { volatile long s = 0; for (long i = 0; i < n; i++) s += i; return s; }"
    )
    options = ["-O1", "-fno-omit-frame-pointer", "-shared", "-fPIC"]
    subprocess.run([gcc, *options, "burn.c", "-o", "burn.so"], cwd=tmp_path, check=True)
    (tmp_path / "program.py").write_text("""
import ctypes
from asmdnn import asm
burn = ctypes.cast(ctypes.CDLL("./burn.so").burn, ctypes.c_void_p).value

@asm.function("int64_t seen_by_perf(int64_t n)", calls={"burn": ("int64_t(int64_t)", burn)}, frame_pointer=True)
def seen_by_perf(f, n):
    f.ret(f.call("burn", n))

seen_by_perf.raw(200_000_000)
""")
    record = [perf, "record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "fp", "-o", "perf.data"]
    environment = {**os.environ, "ASMDNN_JIT_PROFILE": "perf_map", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [*record, sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if not (tmp_path / "perf.data").exists():
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[:100]}")
    script = subprocess.run([perf, "script", "-i", "perf.data", "-F", "ip,sym"], cwd=tmp_path, capture_output=True,
                            text=True, check=True).stdout  # fmt: skip
    samples = [[line.split()[-1] for line in part.splitlines() if line.strip()] for part in script.split("\n\n")]
    stacks = [sample for sample in samples if "burn" in sample]
    through = [stack for stack in stacks if stack[:2] == ["burn", "seen_by_perf"] and len(stack) > 2]
    assert len(through) > len(stacks) / 2 > 10, script[:2000]
