"""NASM makes the same bytes of a kernel's file, and of every instruction that there is."""

import re
from itertools import islice
from pathlib import Path

import pytest

from asmdnn import asm
from asmdnn.corpus.families import corpus
from asmdnn.dump.kernel import listed
from asmdnn.dump.nasm import assembly_of_nasm, nasm_jump, nasm_spelling
from asmdnn.generators.probes.peak import PeakSpec
from examples.asm import base64_text, crc32, fft16, interpreter, memory, saxpy, sha256, sort16, utf8
from tests.dump.test_gas import encodings
from tests.dump.tools import need, output, sections

SAMPLE = 160  # every such kernel of the corpus, in the fast set


@pytest.fixture(autouse=True)
def _nasm() -> None:
    need("nasm")


def text_section(source: str, folder: Path) -> bytes:
    (folder / "in.nasm").write_text(source)
    output("nasm", "-f", "elf64", "-w-number-overflow", "-o", "out.o", "in.nasm", cwd=folder)
    return sections((folder / "out.o").read_bytes())[".text"].data


def test_a_sample_of_the_corpus(tmp_path: Path) -> None:
    kernels = [listed(spec) for spec in islice(corpus(), 3, None, SAMPLE)]
    assert {kernel.isa for kernel in kernels} >= {"avx2", "avx512_core"}
    assert [k.name for k in kernels if text_section(assembly_of_nasm(k), tmp_path) != k.data] == []


def test_padding_in_front_of_a_loop(tmp_path: Path) -> None:
    """Is one long nop or more, which a listing calls nop as it does the short one."""
    kernel = listed(PeakSpec(isa="avx512_core"))
    assert text_section(assembly_of_nasm(kernel), tmp_path) == kernel.data


def test_the_gallery(tmp_path: Path) -> None:
    modules = (base64_text, crc32, fft16, interpreter, memory, saxpy, sha256, sort16, utf8)
    functions = {name: x for module in modules for name, x in vars(module).items() if isinstance(x, asm.CFunction)}
    assert len(functions) > len(modules)
    for name, function in functions.items():
        function.save(tmp_path / "f.nasm", tmp_path / "f.bin")
        text = (tmp_path / "f.nasm").read_text()
        assert text_section(text, tmp_path) == (tmp_path / "f.bin").read_bytes(), name
        assert f"global {function.prototype.partition('(')[0].split()[-1].lstrip('*')}:function" in text


def test_a_program_that_calls_it(tmp_path: Path) -> None:
    need("gcc")

    @asm.function("int64_t twice(int64_t x)")
    def twice(f: asm.FunctionBuilder, x: asm.Register) -> None:
        f.ADD(x, x)
        f.ret(x)

    twice.save(tmp_path / "twice.nasm", tmp_path / "twice.h")
    (tmp_path / "main.c").write_text('#include "twice.h"\nint main(void) { return (int)twice(21); }\n')
    output("nasm", "-f", "elf64", "twice.nasm", cwd=tmp_path)
    output("gcc", "main.c", "twice.o", "-o", "main", cwd=tmp_path)
    assert output("sh", "-c", "./main; echo $?", cwd=tmp_path) == "42\n"


def check(instructions: list[tuple[str, bytes]], folder: Path) -> int:
    """Assemble them all, each behind a mark; how many are bytes instead."""
    spelled = [(text, data, words) for text, data in instructions if (words := nasm_spelling(text, data))]
    lines = [f"i{i}: {re.sub(r'rel .constants', 'rel i0', words)}" for i, (_, _, words) in enumerate(spelled)]
    code, at = text_section("\n".join(["bits 64", "default rel", *lines, ""]), folder), 0
    for text, data, words in spelled:
        made = code[at : at + len(data)]
        at += len(data)
        if "[rip" not in text:
            assert made == data, f"{text} is {data.hex()}, NASM makes {made.hex()} of {words}"
    assert at == len(code)
    return len(instructions) - len(spelled)


def test_random_operands_of_every_form(tmp_path: Path) -> None:
    """Some are bytes: MMX, XOP, FMA4, r12 as an index alone, useless lengths, and few forms that NASM lacks."""
    found = encodings(seed=7, of_a_form=1)
    assert check(found, tmp_path) < len(found) / 8


@pytest.mark.slow
def test_many_random_operands(tmp_path: Path) -> None:
    for seed in range(8):
        check(encodings(seed, of_a_form=8), tmp_path)


def test_jumps() -> None:
    assert nasm_jump("jne", ".x", bytes(2)) == "jne short .x"
    assert nasm_jump("jmp", ".x", bytes(5)) == "jmp near .x"
    assert nasm_jump("loop", ".x", bytes(2)) == "loop .x"
