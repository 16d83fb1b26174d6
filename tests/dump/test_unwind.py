"""Unwind information is right at every instruction: against readelf's reading, a debugger, and a real unwinder."""

import re
from pathlib import Path

import pytest

from asmdnn.dump.elf import relocatable
from asmdnn.dump.gas import assembly
from asmdnn.dump.header import header
from asmdnn.dump.kernel import DumpedKernel, listed
from asmdnn.dump.unwind import Frame, rows
from asmdnn.errors import Unimplemented
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.isa.assembler import Assembler, Line, mem, register, rsp
from asmdnn.isa.levels import ANY_CPU
from tests.dump.tools import need, output

EXECUTOR = ExecutorSpec(arguments=3)
RBX, R12 = register("r64", 3), register("r64", 12)


class EarlyReturn:
    """Saves two registers, returns in the middle, and goes on; a long distance, and pushes besides the prologue's."""

    name = "early_return"
    isa = ANY_CPU

    def __init__(self, moves: int = 100) -> None:
        self.moves = moves

    @property
    def frame(self) -> tuple[str, ...]:
        return ()

    def footprint(self) -> None: ...

    def generate(self, asm: Assembler) -> None:
        late = asm.new_label("late")
        for register_ in (RBX, R12):
            asm.gp.claim(register_, "saved")
        asm.TEST(asm.frame, asm.frame)
        asm.JNZ(late)
        asm.ret()
        asm.bind(late)
        for _ in range(self.moves):
            asm.MOV(R12, 5)
        asm.PUSH(RBX)
        asm.POP(register("r64", 0))
        asm.ret()


def dwarf_rows(readelf: str) -> list[tuple[int, str, dict[str, str]]]:
    """(offset, CFA, place of each saved register) of the FDE in readelf's table."""
    lines = readelf[readelf.index(" FDE ") :].splitlines()[1:]
    head = lines[0].split()[2:]
    found = []
    for line in lines[1:]:
        words = line.split()
        if len(words) == len(head) + 2:
            places = {name: place for name, place in zip(head, words[2:], strict=True) if place != "u"}
            found.append((int(words[0], 16), words[1], places))
    return found


def written(kernel: DumpedKernel, folder: Path) -> Path:
    path = folder / "kernel.o"
    path.write_bytes(relocatable(kernel))
    (folder / "kernel.h").write_text(header(kernel))
    return path


def expected(kernel: DumpedKernel) -> list[tuple[int, str, dict[str, str]]]:
    """What an unwinder has to know, by interpreting the listing from its start to its end with a stack of its own.

    After a return, the state is that of the first return's beginning: EarlyReturn jumps there from its prologue.
    """
    stack: list[str] = ["ra"]
    at_ret: list[str] = []
    found: list[tuple[int, str, dict[str, str]]] = []
    saved: list[str] = []
    for line in kernel.listing:
        places = {name: f"c-{8 * (i + 1)}" for i, name in enumerate(stack) if name in saved or name == "ra"}
        row = (line.offset, f"rsp+{8 * len(stack)}", places)
        if not found or row[1:] != found[-1][1:]:
            found.append(row)
        words = line.text.replace(",", "").split()
        if words[0] == "push":
            saved += [words[1]] * (line.role == "save")
            stack.append(words[1] if line.role == "save" else "temporary")
        elif words[0] == "pop":
            stack.pop()
        elif words[:2] == ["sub", "rsp"]:
            stack += ["room"] * (int(words[2]) // 8)
        elif words[:2] == ["add", "rsp"]:
            del stack[-(int(words[2]) // 8) :]
        elif words[0] == "ret":
            stack = list(at_ret)
        if line.role == "save" or words[:2] == ["sub", "rsp"]:
            at_ret = list(stack)
    return found


@pytest.mark.parametrize(
    "spec", [EXECUTOR, ExecutorSpec(arguments=8), EarlyReturn(), EarlyReturn(12_000)], ids=lambda s: s.name
)
def test_readelf_reads_the_frames(spec: ExecutorSpec | EarlyReturn, tmp_path: Path) -> None:
    need("readelf")
    kernel = listed(spec)
    table = output("readelf", "--debug-dump=frames-interp", written(kernel, tmp_path))
    assert dwarf_rows(table) == expected(kernel)
    assert f"pc=0000000000000000..{kernel.code_bytes:016x}" in table


def test_gas_directives_say_the_same(tmp_path: Path) -> None:
    need("as", "readelf")
    kernel = listed(EarlyReturn())
    (tmp_path / "in.s").write_text(assembly(kernel))
    output("as", "in.s", "-o", "out.o", cwd=tmp_path)
    frames = output("readelf", "--debug-dump=frames-interp", tmp_path / "out.o")
    assert dwarf_rows(frames) == expected(kernel)


BACKTRACE = r"""
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include "kernel.h"
static int found;
static void kernel(const int64_t *frame) {  /* stands in for a generated kernel, which calls nobody */
    void *callers[16];
    int count = backtrace(callers, 16);
    char **names = backtrace_symbols(callers, count);
    for (int i = 0; i < count; i++) found |= strstr(names[i], "caller_of_executor") ? 1 << i : 0;
}
__attribute__((noinline)) void caller_of_executor(const void *context) {
    executor_3__x86_64((const struct executor_3__x86_64_frame *)context);
    __asm__ volatile("");
}
int main(void) {
    int64_t records[] = {0, 0, 0, 0}, share[] = {0, 0, 0, sizeof records, sizeof records, 0, sizeof records, 0};
    int64_t table[] = {(int64_t)kernel};
    int64_t head[] = {0, 0, 0, 1, 1}, phase[] = {(int64_t)records, (int64_t)share, (int64_t)table, 1, 0x1f80, 0, 0};
    int64_t context[15] = {0};
    memcpy(context, head, sizeof head);
    memcpy(context + 5, phase, sizeof phase);
    caller_of_executor(context);
    printf("%d\n", found);
    return 0;
}
"""


def built(source: str, kernel: DumpedKernel, folder: Path, *options: str) -> Path:
    written(kernel, folder)
    (folder / "main.c").write_text(source)
    output("gcc", "-O1", "-rdynamic", *options, "main.c", "kernel.o", "-o", "main", cwd=folder)
    return folder / "main"


def test_backtrace_passes_through_the_executor(tmp_path: Path) -> None:
    """The kernel is frame 0, the executor 1, so its caller must be frame 2: the unwinder has read our .eh_frame."""
    need("gcc")
    assert output(built(BACKTRACE, listed(EXECUTOR), tmp_path)) == f"{1 << 2}\n"


STEP = """
import gdb
gdb.execute("set pagination off")
gdb.execute("set print demangle off")  # else __ is read as Ada's
gdb.execute("break *executor_3__x86_64")
gdb.execute("run", to_string=True)
saved = ("rbx", "rbp", "r12", "r13", "r14", "r15")
read = lambda frame, name: int(frame.read_register(name)) & (2**64 - 1)
start = read(gdb.newest_frame(), "rip")
cfa = read(gdb.newest_frame(), "rsp") + 8
at_entry = {name: read(gdb.newest_frame(), name) for name in saved}
seen = set()
while gdb.newest_frame().name().startswith("executor_3"):
    caller = gdb.newest_frame().older()
    seen.add(read(gdb.newest_frame(), "rip") - start)
    assert caller.name() == "caller_of_executor", caller.name()
    assert read(caller, "rsp") == cfa
    assert {name: read(caller, name) for name in saved} == at_entry
    gdb.execute("nexti", to_string=True)
print("stepped", sorted(seen))
"""


def test_gdb_unwinds_from_every_instruction(tmp_path: Path) -> None:
    need("gcc", "gdb")
    kernel = listed(EXECUTOR)
    program = built(BACKTRACE, kernel, tmp_path)
    (tmp_path / "step.py").write_text(STEP)
    try:
        text = output("gdb", "-nx", "-batch", "-x", "step.py", program, cwd=tmp_path)
    except AssertionError as error:
        if "ptrace" in str(error) or "Python scripting is not supported" in str(error):
            pytest.skip(f"gdb cannot run a program here: {str(error).splitlines()[-1]}")
        raise
    stepped = set(map(int, re.findall(r"\d+", text[text.index("stepped") :])))
    offsets = {line.offset for line in kernel.listing}
    assert stepped <= offsets
    assert len(stepped) > len(offsets) / 2  # all but what runs with several threads or phases
    assert {line.offset for line in kernel.listing if line.role in ("save", "return")} <= stepped


def line(offset: int, text: str) -> Line:
    return Line(offset, b"\x90", text, "", "")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (("and rsp, -64", "ret"), "only push, pop, and add or sub of a number may move rsp"),
        (("mov rsp, rbp", "ret"), "no unwind information for mov rsp, rbp at 0x0"),
        (("leave", "ret"), "may move rsp"),
        (("jz 0x7 <x>", "ret"), "no instruction starts at 0x7"),
        (("jz 0x2 <x>", "push rax", "ret"), "on another path the stack differs at 0x2"),
    ],
)
def test_what_cannot_be_followed_is_refused(texts: tuple[str, ...], says: str) -> None:
    with pytest.raises(Unimplemented, match=re.escape(says)):
        rows([line(i, text) for i, text in enumerate(texts)])


def test_a_register_dropped_from_the_stack_is_no_longer_there() -> None:
    texts = ("push rbx", "cmp rsp, 5", "mov rbx, [rsp]", "add rsp, 8", "ret")
    assert [row.frame for row in rows([line(i, text) for i, text in enumerate(texts)])] == [
        Frame(8), Frame(16, (("rbx", 16),)), Frame(8),
    ]  # fmt: skip


def test_memory_after_the_pool_is_not_code() -> None:
    """The range ends with the last instruction, not with the constants."""

    class WithConstant:
        name = "with_constant"

        def generate(self, asm: Assembler) -> None:
            asm.MOV(register("r64", 0), asm.const(bytes(8), 8))
            asm.MOV(mem(rsp, -8), register("r64", 0))
            asm.ret()

    kernel = listed(WithConstant())
    assert kernel.code_bytes < kernel.constants_offset == 64
    assert rows(kernel.listing) == [(0, Frame())]
