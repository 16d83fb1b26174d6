"""binutils and the linker take the object, and see in it what was put there."""

import re
from itertools import islice
from pathlib import Path

import pytest

from asmdnn.corpus.conv import blocked
from asmdnn.corpus.families import corpus
from asmdnn.dump.elf import relocatable
from asmdnn.dump.files import FORMATS, entry, write_kernel
from asmdnn.dump.header import header
from asmdnn.dump.kernel import DumpedKernel, listed
from asmdnn.generators.contract import Spec
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.levels import ANY_CPU
from tests.dump.tools import need, output, sections

WITH_POOL = ConvertSpec(
    isa="avx2", conversion=Conversion("f32", "s8"), rows=3, columns=5, src_steps=(20, 4), dst_steps=(5, 1)
)
AVX512 = blocked("avx512_core", 4, 2, channels=21, bias=True)
SPECS = [WITH_POOL, AVX512, ExecutorSpec(arguments=2)]
named = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


class Odd:
    """A name that is no identifier, nor one word."""

    name = "9 odd*/name-relu0.25__avx2"
    isa = ANY_CPU
    frame = ("nothing",)

    def footprint(self) -> None: ...

    def generate(self, asm: Assembler) -> None:
        asm.ret()


def objects(spec: Spec, folder: Path) -> tuple[DumpedKernel, Path]:
    kernel = listed(spec)
    path = folder / "kernel.o"
    path.write_bytes(relocatable(kernel))
    return kernel, path


def disassembled(text: str) -> list[tuple[int, bytes]]:
    """Offset and bytes of every instruction in objdump's output with --insn-width=15 and --wide."""
    rows = re.findall(r"^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t", text, re.MULTILINE)
    return [(int(offset, 16), bytes.fromhex(data)) for offset, data in rows]


@named
def test_objdump_sees_symbol_and_instructions(spec: Spec, tmp_path: Path) -> None:
    need("objdump")
    kernel, path = objects(spec, tmp_path)
    text = output("objdump", "-d", "--insn-width=15", "-M", "intel", path)
    assert f"0000000000000000 <{kernel.symbol}>:" in text
    assert "(bad)" not in text
    code = text.partition("<constants>:")[0]
    instructions = [(line.offset, line.data) for line in kernel.listing]
    assert disassembled(code)[: len(instructions)] == instructions
    symbols = output("objdump", "-t", path)
    assert re.search(rf"^0+ g +F \.text\t0*{kernel.code_bytes:x} {kernel.symbol}$", symbols, re.MULTILINE)
    pool = len(kernel.data) - kernel.constants_offset
    assert bool(re.search(rf" l +O \.text\t0*{pool:x} constants$", symbols, re.MULTILINE)) == (pool > 0)


@named
def test_sections(spec: Spec, tmp_path: Path) -> None:
    kernel, path = objects(spec, tmp_path)
    found = sections(path.read_bytes())
    assert found[".text"] == (kernel.data, 2 | 4, 64)
    assert found[".note.GNU-stack"].flags == 0
    assert len(found[".rela.eh_frame"].data) == 24


@named
def test_readelf_has_no_complaint(spec: Spec, tmp_path: Path) -> None:
    need("readelf")
    _, path = objects(spec, tmp_path)
    text = output("readelf", "--wide", "--all", path)
    assert "R_X86_64_PC32" in text
    assert "Advanced Micro Devices X86-64" in text


def test_the_raw_file_and_its_command(tmp_path: Path) -> None:
    need("objdump")
    for spec in SPECS:
        kernel = listed(spec)
        described = write_kernel(tmp_path, kernel, list(FORMATS))
        assert (tmp_path / f"{kernel.name}.bin").read_bytes() == kernel.data
        command = [*described["disassemble"].split(), "--insn-width=15"]
        found = disassembled(output(*command, cwd=tmp_path))
        assert found == [(line.offset, line.data) for line in kernel.listing]


def test_the_command_without_a_raw_file() -> None:
    kernel = listed(WITH_POOL)
    assert entry(kernel, {"o": "x.o", "h": "x.h"})["disassemble"] == "objdump -d -M intel x.o"
    assert entry(kernel, {"h": "x.h"})["disassemble"] == ""


@pytest.mark.parametrize(("compiler", "language"), [("gcc", "-std=c99"), ("g++", "-std=c++11")])
def test_headers_compile_together(compiler: str, language: str, tmp_path: Path) -> None:
    """A sample of all families in one file, each included twice."""
    need(compiler)
    specs = [*islice(corpus(), 0, None, 60), *SPECS, Odd()]
    for i, spec in enumerate(specs):
        (tmp_path / f"{i}.h").write_text(header(listed(spec)))
    includes = "".join(f'#include "{i}.h"\n#include "{i}.h"\n' for i in range(len(specs)))
    (tmp_path / "all.c").write_text(f"{includes}int unit_is_not_empty;\n")
    language_of = "c++" if compiler == "g++" else "c"
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
    output(compiler, language, *warnings, "-x", language_of, "-c", "all.c", "-o", "all.o", cwd=tmp_path)


def test_what_a_header_says() -> None:
    text = header(listed(blocked("avx2", 2, 1, 3, bias=True)))
    assert "    /* writes bytes 0 to 63 */\n    void *dst;\n" in text
    assert "    /* reads bytes 0 to 31 */\n    const void *bias;\n" in text
    taps = "reads 1 list of taps, a count and so many tuples of 2 byte offsets"
    assert f"    /* {taps} */\n    const int64_t *taps;\n" in text
    src = "for each tap of list 0 reads 24 of bytes 0 to 43 from the pointer plus the tap's offset"
    assert f"    /* {src} */\n    const void *src;\n" in text
    assert "    /* not accessed, perhaps prefetched */\n    const void *prefetched;\n" in text
    assert "Needs a CPU of level avx2: avx, avx2, bmi1" in text
    assert "dst[p, o] = post_ops(" in text
    assert "    int64_t num_threads;\n" in header(listed(ExecutorSpec(arguments=2)))
    assert "Needs any x86-64 CPU." in header(listed(ExecutorSpec(arguments=2)))


@pytest.mark.parametrize("streaming", [False, True])
def test_who_fences_streaming_stores(streaming: bool) -> None:
    kernel = listed(RowsSpec(isa="avx2", rows=3, row_bytes=64, src_step=64, dst_step=64, streaming=streaming))
    assert any(line.text.startswith("vmovntdq") for line in kernel.listing) == streaming
    assert "sfence" not in {line.text for line in kernel.listing}
    assert ("run SFENCE" in " ".join(header(kernel).split())) == streaming


def test_a_name_that_is_no_identifier(tmp_path: Path) -> None:
    need("objdump")
    kernel, path = objects(Odd(), tmp_path)
    assert kernel.symbol == "_9_odd__name_relu0_25__avx2"
    assert f"<{kernel.symbol}>:" in output("objdump", "-d", path)
    assert f"void {kernel.symbol}(const struct {kernel.symbol}_frame *frame);" in header(kernel)


def test_arguments_are_the_frame_of_the_spec() -> None:
    assert listed(Odd()).arguments == ("nothing",)
    assert listed(ExecutorSpec(arguments=7)).arguments[:2] == ("thread_num", "num_threads")
    assert listed(AVX512).arguments == ("src", "weights", "bias", "dst", "taps", "prefetched")
