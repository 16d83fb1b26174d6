"""The proof can fail: wrong kernels of many kinds, each made from a real one, and the rule that catches it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from asmdnn.corpus.conv import blocked, plain
from asmdnn.corpus.families import corpus
from asmdnn.corpus.few_inputs import inputs_of
from asmdnn.corpus.grouped import rows
from asmdnn.generators.contract import KernelSpec, KernelWords, Spec
from asmdnn.generators.dot.conv_shape import DST, SRC
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.dot.row_words import INPUT_OF_SRC, words_in_front
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.functions.postops import ReluOp
from asmdnn.generators.functions.resample_rows import ResampleRowsSpec
from asmdnn.generators.functions.topk_sorted import SortedTopKSpec
from asmdnn.generators.move.gather import GatherSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.scatter import ScatterSpec
from asmdnn.generators.pooling.pixel_words import TILES
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.window import PixelLoop, Taps
from asmdnn.isa.assembler import Assembler, mem, register, rsp
from asmdnn.isa.code import Line
from asmdnn.isa.levels import isa_of
from asmdnn.isa.tiles import palette
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.kernel import Contract, Kernel
from asmdnn.proof.prove import prove
from tests.proof.mutants import Edit, find, jump_to, violation_of, with_bytes, with_code

CONV = {isa: blocked(isa, 3, 2) for isa in ("avx2", "avx512_core")}
TAIL = {isa: plain(isa, 2, 5) for isa in ("avx2", "avx512_core")}
COPY = RowsSpec(isa="avx2", rows=3, row_bytes=52, src_step=64, dst_step=64)
STREAMING = RowsSpec(isa="avx2", rows=3, row_bytes=64, src_step=64, dst_step=64, streaming=True)
LEFT, BETWEEN = Segment(4, 1, 6), Segment(4, 0, 6, times=2, is_counted=True)
ROWS = rows("avx2", LEFT, BETWEEN, padding=1, bands=(Band(2, 0, 3),))
DISTANCE, TIMES, HEIGHT = 1, 4, 6  # words: of dst from row to row, segments between, rows
BAND_BYTES = 32
PIXELS = PoolPixelsSpec(
    isa="avx2", alg="max", loops=(PixelLoop(2, 1600, 160), PixelLoop(5, 64, 32)), window=(Taps(2, 800), Taps(2, 32)),
    elements=8, pixels=2, vectors=1,
)  # fmt: skip
WINDOWS = PoolPixelsSpec(
    isa="avx2", alg="avg", loops=(PixelLoop(1, 0, 32),), window=(Taps(9, 320), Taps(8, 32)), elements=8, pixels=1,
    vectors=1, divisor=72,
)  # fmt: skip
PLANES = inputs_of("avx2", 2, LEFT, BETWEEN, padding=1, bands=(Band(2, 0, 3),))
INPUT = list(words_in_front(PLANES)).index(INPUT_OF_SRC)
GATHER = GatherSpec(isa="avx2", count=1, limit=9, row_bytes=68, src_step=68, dst_step=68, index_step=4)
SCATTER = ScatterSpec(isa="avx2", count=1, limit=9, row_bytes=68, updates_step=68, dst_step=68, index_step=4)
CHOOSE = SortedTopKSpec(isa="avx2", call="choose", k=33, size=64, elements=8)
ADDING = replace(SCATTER, reduction="add")
RBX, RAX, RCX = (register("r64", number) for number in (3, 0, 1))
NOP3 = bytes.fromhex("0f1f00")


def argument(asm: Assembler, index: int) -> None:
    asm.MOV(RAX, mem(asm.frame, 8 * index))


def store_at(index: int, at: int) -> Edit:
    def edit(asm: Assembler) -> None:
        argument(asm, index)
        asm.MOV(mem(RAX, at, size=4), 0)

    return edit


def load_at(index: int, at: int) -> Edit:
    def edit(asm: Assembler) -> None:
        argument(asm, index)
        asm.MOV(register("r32", 1), mem(RAX, at, size=4))

    return edit


def emit(mnemonic: str, *operands: object) -> Edit:
    return lambda asm: getattr(asm, mnemonic)(*operands)


def clobber_on_one_path(asm: Assembler) -> None:
    skip = asm.new_label("skip")
    asm.TEST(RAX, RAX)
    asm.JZ(skip)
    asm.MOV(RBX, 1)
    asm.bind(skip)


def push_in_a_loop(asm: Assembler) -> None:
    asm.MOV(RCX, 3)
    with asm.loop(RCX, "pushes"):
        asm.PUSH(RAX)


def two_pointers(asm: Assembler) -> None:
    argument(asm, SRC)
    asm.ADD(RAX, mem(asm.frame, 8 * DST))
    asm.MOV(mem(RAX, size=4), 0)


def absolute(asm: Assembler) -> None:
    asm.MOV(RAX, 0x10_0000)
    asm.MOV(RCX, mem(RAX))


def number_from_memory(asm: Assembler) -> None:
    argument(asm, SRC)
    asm.MOV(RCX, mem(RAX))
    asm.MOV(RCX, mem(RCX))


def load_mxcsr(asm: Assembler) -> None:
    asm.LDMXCSR(asm.const((0x9FC0).to_bytes(4, "little"), 4, size=4))


WITH_CODE: dict[str, tuple[Spec, Edit, str, str]] = {
    "avx512 in avx2": (CONV["avx2"], emit("VPXORD", *3 * [register("zmm", 0)]), "features", "avx512f"),
    "avx512 in the executor": (
        ExecutorSpec(arguments=2),
        emit("VPXORD", *3 * [register("zmm", 0)]),
        "features",
        "every 64-bit",
    ),
    "rbx clobbered": (CONV["avx2"], emit("MOV", RBX, 0), "callee-saved", "rbx"),
    "r15 clobbered": (CONV["avx512_core"], emit("INC", register("r64", 15)), "callee-saved", "r15"),
    "rbx clobbered on one path": (COPY, clobber_on_one_path, "callee-saved", "rbx"),
    "rsp unbalanced": (CONV["avx2"], emit("SUB", rsp, 16), "stack", "-16 bytes"),
    "pushes in a loop": (COPY, push_in_a_loop, "stack", "not a known distance"),
    "below the red zone": (COPY, emit("MOV", mem(rsp, -136, size=8), RAX), "stack", "beyond the red zone"),
    "the return address": (COPY, emit("MOV", mem(rsp, 0, size=8), RAX), "stack", "return address"),
    "store past the footprint": (COPY, store_at(1, 3 * 64), "footprint", "[192, 196) of argument 1"),
    "store between rows": (COPY, store_at(1, 13 * 4), "footprint", "[52, 56) of argument 1"),
    "store before the start": (CONV["avx2"], store_at(DST, -4), "footprint", "[-4, 0) of argument 3"),
    "store to a source": (COPY, store_at(0, 0), "footprint", "stores through argument 0"),
    "store to weights": (CONV["avx512_core"], store_at(1, 0), "footprint", "stores through argument 1"),
    "store to the tap list": (CONV["avx2"], store_at(4, 0), "footprint", "tap list"),
    "read past the footprint": (COPY, load_at(0, 13 * 4), "footprint", "[52, 56) of argument 0"),
    "read of what is only prefetched": (CONV["avx2"], load_at(5, 0), "footprint", "reads through argument 5"),
    "read after the tap list": (CONV["avx2"], load_at(4, 1 << 20), "footprint", "no word of the list"),
    "std": (CONV["avx2"], emit("STD"), "direction flag", "may be set"),
    "mxcsr": (CONV["avx2"], load_mxcsr, "mxcsr", "MXCSR"),
    "absolute address": (COPY, absolute, "provenance", "is a number"),
    "an address from data": (COPY, number_from_memory, "provenance", "is a number"),
    "two pointers": (CONV["avx2"], two_pointers, "provenance", "mixes pointers"),
    "uninitialised base": (COPY, emit("MOV", RCX, mem(register("r64", 14))), "provenance", "no argument"),
    "store to the frame": (COPY, emit("MOV", mem(register("r64", 7), 8, size=8), RAX), "provenance", "into the frame"),
    "read after the frame": (COPY, load_at(2, 0), "provenance", "2 words"),
    "indirect jump": (COPY, emit("JMP", RAX), "control flow", "indirect jump"),
    "call": (COPY, emit("CALL", RAX), "control flow", "call"),
    "syscall": (COPY, emit("SYSCALL"), "features", "syscall"),
    "far return": (COPY, emit("RETF"), "control flow", "system instruction"),
    "interrupt return": (COPY, emit("IRETQ"), "control flow", "system instruction"),
    "segment register": (COPY, emit("MOV", register("seg", 4), RAX), "control flow", "system instruction"),
    "port": (COPY, emit("IN", register("r8", 0), 64), "control flow", "system instruction"),
    "interrupt": (COPY, emit("INT", 128), "control flow", "system instruction"),
}


@pytest.mark.parametrize("name", WITH_CODE)
def test_more_code(name: str) -> None:
    spec, edit, rule, reason = WITH_CODE[name]
    found = violation_of(with_code(spec, edit))
    assert found is not None
    assert (found.rule, reason in found.reason) == (rule, True), found


def without_one_vzeroupper() -> Kernel:
    return with_bytes(STREAMING, find(STREAMING, "vzeroupper").offset, NOP3)


def other_registers(listed: bool) -> Kernel:
    line = find(CONV["avx2"], "vfmadd231ps")
    return with_bytes(CONV["avx2"], line.offset, line.data[:-1] + bytes((line.data[-1] ^ 8,)), listed=listed)


def longer_loop(spec: Spec, by: int) -> Kernel:
    """A loop's counter, which MOV sets."""
    line = find(spec, "mov rdx, ")
    count = int(line.text.split(", ")[1]) + by
    return with_bytes(spec, line.offset + len(line.data) - 4, count.to_bytes(4, "little"))


def more_lanes(isa: str) -> Kernel:
    """A tail's mask with one lane more than the footprint has."""
    spec = TAIL[isa]
    if isa == "avx2":  # which stores most tails in pieces, but those of whom registers are short
        spec = next(s for s in corpus() if isinstance(s, ResampleRowsSpec) and (s.isa, s.results) == (isa, 5))
        masks = kernel_of(spec).code.data.find(b"\xff" * 20 + bytes(12))
        return with_bytes(spec, masks + 20, b"\xff" * 4)
    line = find(spec, "mov rax, 31", "mov rcx, 31", "mov rdx, 31", "mov r8, 31")
    return with_bytes(spec, line.offset + len(line.data) - 4, (63).to_bytes(4, "little"))


def wrong_step_in_the_taps() -> Kernel:
    line = find(CONV["avx2"], "add rdx, 16")
    return with_bytes(CONV["avx2"], line.offset + len(line.data) - 1, bytes((24,)))


def other_number(place: int, more: int, spec: KernelSpec = ROWS) -> Kernel:
    """A kernel that is called with another number than its footprint is of."""
    footprint = spec.footprint()
    assert footprint.words is not None
    values = list(footprint.words.values)
    values[place] += more
    other = replace(footprint, words=KernelWords(footprint.words.argument, tuple(values)))
    kernel = kernel_of(spec)
    return Kernel(kernel.name, replace(kernel.contract, footprint=other), kernel.code)


def other_word(name: str, more: int, spec: PoolPixelsSpec = PIXELS) -> Kernel:
    return other_number(list(spec.words).index(name), more, spec)


def reads_beside_its_numbers() -> Kernel:
    """The next band is looked for a word further on."""
    line = find(ROWS, f"add r9, {BAND_BYTES}", f"add r8, {BAND_BYTES}")
    return with_bytes(ROWS, line.offset + len(line.data) - 1, bytes((BAND_BYTES + 8,)))


def a_row_too_many(spec: KernelSpec) -> Kernel:
    """An index that is compared with one more than there are rows."""
    line = find(spec, "cmp ")
    return with_bytes(spec, line.offset + len(line.data) - 1, bytes((10,)))


def rows_too_far_apart(spec: KernelSpec) -> Kernel:
    line = find(spec, "imul ")
    return with_bytes(spec, line.offset + len(line.data) - 1, bytes((69,)))


def more_places(mnemonic: str, most: int) -> Kernel:
    """Pairs that wait may go further than there is room."""
    line = find(CHOOSE, mnemonic, last=True)
    return with_bytes(CHOOSE, line.offset + len(line.data) - 1, bytes((most,)))


def whole_claim() -> Kernel:
    """All rows are said to be written, which data decide."""
    kernel = kernel_of(SCATTER)
    assert kernel.contract.footprint is not None
    footprint = replace(kernel.contract.footprint, partial=False)
    return Kernel(kernel.name, replace(kernel.contract, footprint=footprint), kernel.code)


def unbounded_index() -> Kernel:
    """CMOVS where CMOVAE bounds an index."""
    line = find(GATHER, "cmovae ", "cmovnb ")
    return with_bytes(GATHER, line.offset + 2, b"\x48")


def index_changed_behind_the_comparison() -> Kernel:
    """The comparison is of another register than the one that CMOVAE bounds."""
    line = find(GATHER, "cmp ")
    return with_bytes(GATHER, line.offset + 2, bytes((line.data[2] ^ 1,)))


def fall_off_the_end() -> Kernel:
    spec = TAIL["avx2"]
    return with_bytes(spec, find(spec, "ret", last=True).offset, b"\x90")


def into_an_instruction() -> Kernel:
    return jump_to(COPY, find(COPY, "vmovdqu", last=True).offset + 1, "jnz")


def into_constants() -> Kernel:
    small = blocked("avx2", 1, run=1, post_ops=(ReluOp(0.25),))
    return jump_to(small, kernel_of(small).pool_start, "jnz")


def shifted_store() -> Kernel:
    line = find(CONV["avx2"], "vmovups yword [rax+32]")
    return with_bytes(CONV["avx2"], line.offset + len(line.data) - 1, bytes((36,)))


def mask_load() -> Line:
    listing = kernel_of(TAIL["avx2"]).code.listing
    assert listing is not None
    return next(line for line in listing if "[rip" in line.text)


def store_to_constants() -> Kernel:
    """VMOVUPS ymm, [rip+..] turned into the store of the same operands."""
    line = mask_load()
    at = line.data.index(b"\x10")
    return with_bytes(TAIL["avx2"], line.offset + at, b"\x11")


def beside_the_constants() -> Kernel:
    line = mask_load()
    end = line.offset + len(line.data)
    return with_bytes(TAIL["avx2"], end - 4, (1 << 20).to_bytes(4, "little"))


def absolute_operand() -> Kernel:
    """mov rax, [rdi] and the five bytes after it as mov rax, [0x1000]."""
    assert find(COPY, "mov").offset == 0
    return with_bytes(COPY, 0, bytes.fromhex("488b042500100000") + b"\x90" * 6)


def relative_to_gs() -> Kernel:
    line = find(COPY, "mov rcx, [rdi+8]")
    assert len(line.data) == 4
    return with_bytes(COPY, find(COPY, "mov rax, [rdi]").offset, bytes.fromhex("65488b0f") + NOP3)


def address_of_32_bits() -> Kernel:
    """A source vector from [eax] instead of [rax]: one byte more, so in the place of two instructions."""
    return with_bytes(COPY, find(COPY, "mov rax, [rdi]").offset, bytes.fromhex("67488b0f") + NOP3)


def string_instruction() -> Kernel:
    return with_bytes(COPY, find(COPY, "mov rax, [rdi]").offset, bytes.fromhex("f3a4") + b"\x90" * 5)


def call_with_odd_stack() -> Kernel:
    spec = ExecutorSpec(arguments=2)
    pushed = find(spec, "sub rsp")
    return with_bytes(spec, pushed.offset, pushed.data[:-1] + bytes((pushed.data[-1] + 8,)))


def dirty_call() -> Kernel:
    """A kernel of the executor's kind that calls with a ymm register in use."""
    asm = Assembler("dirty", listing=True)
    x = asm.vectors(32, 16).take("x")
    asm.VXORPS(x, x, x)
    asm.call(mem(asm.frame, size=8))
    asm.ret()
    return Kernel("dirty", Contract(isa_of("avx2"), None, None, calls=True), asm.finish())


def tiles_left() -> Kernel:
    asm = Assembler("tiles", listing=True)
    asm.LDTILECFG(asm.const(palette([(16, 64)] * 8), 64, size=64))
    asm.ret()
    return Kernel("tiles", Contract(isa_of("avx512_core_amx"), 0, None), asm.finish())


def without_sfence() -> Kernel:
    spec = ExecutorSpec(arguments=2)
    return with_bytes(spec, find(spec, "sfence").offset, NOP3)


WITH_BYTES: dict[str, tuple[Callable[[], Kernel], str, str]] = {
    "one vzeroupper missing": (without_one_vzeroupper, "vzeroupper", "no VZEROUPPER"),
    "no sfence": (without_sfence, "sfence", "no SFENCE"),
    "dirty call": (dirty_call, "vzeroupper", "no VZEROUPPER"),
    "tiles left": (tiles_left, "tiles", "TILERELEASE"),
    "not what is listed": (lambda: other_registers(listed=False), "listing", "other bytes"),
    "a jump into an instruction": (into_an_instruction, "control flow", "middle of an instruction"),
    "a jump outside": (lambda: jump_to(CONV["avx2"], -64, "jz"), "control flow", "outside"),
    "a jump into the constants": (into_constants, "control flow", "constants"),
    "falls off the end": (fall_off_the_end, "control flow", "after the last"),
    "a row too many": (lambda: longer_loop(COPY, 1), "footprint", "[192, 224) of argument 0"),
    "a row too few": (lambda: longer_loop(COPY, -1), "footprint", "not all written"),
    "a tail too wide": (lambda: more_lanes("avx2"), "footprint", "argument 1"),
    "a tail too wide, avx512": (lambda: more_lanes("avx512_core"), "footprint", "argument 3"),
    "a wrong step in the tap list": (wrong_step_in_the_taps, "footprint", "no word of the list"),
    "a number of rows that is one more": (lambda: other_number(HEIGHT, 1), "footprint", "the footprint has"),
    "a number of segments that is one less": (lambda: other_number(TIMES, -1), "footprint", "argument 0"),
    "a distance that is larger": (lambda: other_number(DISTANCE, 64), "footprint", "argument 3"),
    "a distance of inputs that is larger": (lambda: other_number(INPUT, 4, PLANES), "footprint", "argument 0"),
    "a row of pixels too many": (lambda: other_word("times 0", 1), "footprint", "argument"),
    "a tile of pixels too few": (lambda: other_word(TILES, -1), "footprint", "argument"),
    "a row of a window moved": (lambda: other_word("row 1", 4), "footprint", "argument 0"),
    "a step that is longer": (lambda: other_word("dst 0", 32), "footprint", "argument 1"),
    "a window too high": (lambda: other_word("positions 0", 1, WINDOWS), "footprint", "argument 0"),
    "a window too narrow": (lambda: other_word("positions 1", -1, WINDOWS), "footprint", "argument 0"),
    "a number after the last": (reads_beside_its_numbers, "footprint", "argument 4"),
    "a row too many to choose from": (lambda: a_row_too_many(GATHER), "footprint", "argument 0 if an index is 9"),
    "rows too far apart": (lambda: rows_too_far_apart(GATHER), "footprint", "argument 0 if an index is 8"),
    "a row too many to write": (lambda: a_row_too_many(SCATTER), "footprint", "argument 1 if an index is 9"),
    "a row too many to add to": (lambda: a_row_too_many(ADDING), "footprint", "argument 1 if an index is 9"),
    "written rows too far apart": (lambda: rows_too_far_apart(SCATTER), "footprint", "argument 1 if an index is 8"),
    "twice as many places for pairs": (lambda: more_places("and ", 127), "footprint", "argument 2 if an index is 65"),
    "a place too many for the end": (lambda: more_places("cmp ", 66), "footprint", "argument 2 if an index is 65"),
    "rows that data choose are said to be written": (whole_claim, "footprint", "depends on data"),
    "a store moved by 4 bytes": (shifted_store, "footprint", "not all written"),
    "a store to the constants": (store_to_constants, "provenance", "own code"),
    "a load beside the constants": (beside_the_constants, "provenance", "beside its constants"),
    "an absolute operand": (absolute_operand, "provenance", "is a number"),
    "an address relative to gs": (relative_to_gs, "provenance", "gs"),
    "an address of 32 bits": (address_of_32_bits, "provenance", "32 bits"),
    "rep movsb": (string_instruction, "provenance", "string instructions"),
    "a call with rsp not aligned": (call_with_odd_stack, "stack", "16-aligned"),
}


@pytest.mark.parametrize("name", WITH_BYTES)
def test_other_bytes(name: str) -> None:
    make, rule, reason = WITH_BYTES[name]
    found = violation_of(make())
    assert found is not None
    assert (found.rule, reason in found.reason) == (rule, True), found


@pytest.mark.parametrize("make", [unbounded_index, index_changed_behind_the_comparison])
def test_an_index_without_a_bound_is_told(make: Callable[[], Kernel]) -> None:
    """Only the argument of its three accesses is proved, where the kernel as it is has bounds."""
    assert (prove(make()), prove(kernel_of(GATHER))) == (3, 0)


def test_a_violation_names_everything() -> None:
    """The kernel, the rule, the reason; offset, bytes, text and source line of the instruction."""
    found = violation_of(with_code(COPY, store_at(1, 192)))
    assert found is not None and found.line is not None
    text = str(found)
    assert text.startswith(f"{COPY.name} breaks the rule 'footprint': it stores bytes [192, 196) of argument 1")
    assert f"{found.line.offset:x}  {found.line.data.hex()}" in text
    assert "mov dword [rax+192], 0" in text
    assert "test_mutants.py:" in text


def test_a_listing_with_a_wrong_operand_or_place() -> None:
    """The bytes are right, the text is not; or a line is missing."""
    kernel = with_bytes(COPY, 0, b"")
    lines = kernel.code.listing
    assert lines is not None
    wrong = (lines[0]._replace(text="mov rcx, [rdi]"), *lines[1:])
    for listing, reason in ((wrong, "listed is 'mov rcx, [rdi]'"), (lines[1:], "not to what is listed")):
        code = replace(kernel.code, lines=partial(tuple, listing))
        found = violation_of(Kernel(kernel.name, kernel.contract, code))
        assert found is not None and found.rule == "listing" and reason in found.reason


def test_what_puts_things_back_is_no_violation() -> None:
    def polite(asm: Assembler) -> None:
        asm.PUSH(RBX)
        asm.MOV(RBX, 7)
        asm.STD()
        asm.CLD()
        asm.STMXCSR(mem(rsp, -8, size=4))
        asm.LDMXCSR(asm.const((0x9FC0).to_bytes(4, "little"), 4, size=4))
        asm.LDMXCSR(mem(rsp, -8, size=4))
        asm.MOV(mem(rsp, -128, size=8), RBX)
        asm.POP(RBX)

    for spec in (*CONV.values(), COPY, STREAMING):
        assert violation_of(with_code(spec, polite)) is None
