"""The C program of docs/ukernel.md prints what the page says; every kernel's header and object can be used from C."""

import re
from pathlib import Path
from typing import Any

import pytest

from asmdnn import ukernel
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.attr import Attr
from tests.dump.tools import need, output

PAGE = Path(__file__).parents[2] / "docs/ukernel.md"


def block(language: str, holds: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (found,) = (text for text in blocks if holds in text)
    return str(found)


@pytest.mark.isa("avx2")
def test_the_c_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("gcc", "sed")
    monkeypatch.chdir(tmp_path)
    exec(block("python", "softmax.h"), {"ukernel": ukernel})
    Path("main.c").write_text(block("c", "int main"))
    assert output("sh", "-ec", block("sh", "gcc")) == block("text", "0.032")


KERNELS: list[Any] = [
    lambda: ukernel.brgemm(5, 9, 6, "s8", "s8", isa="avx512_core_vnni", accumulate=True, attr=Attr(scales={"src": 0})),
    lambda: ukernel.brgemm(5, 9, 6, batch="offset", isa="avx2"),
    lambda: ukernel.brgemm(5, 9, 6, "bf16", "bf16", batch="address", isa="avx512_core_bf16"),
    lambda: ukernel.transform(6, 9, "s8", isa="avx2"),
    lambda: ukernel.transpose(6, 9, "f16", isa="avx2"),
    lambda: ukernel.convert(6, 9, "s32", "u8", isa="avx2"),
    lambda: ukernel.eltwise(6, 9, "tanh", "bf16", isa="avx2"),
    lambda: ukernel.softmax(6, 9, isa="avx512_core"),
]


@pytest.mark.parametrize("make", KERNELS)
def test_objects_headers_and_assembly_of_any_level(make: Any, tmp_path: Path) -> None:
    need("gcc", "nm", "as")
    kernel = make()
    kernel.save(*(tmp_path / f"k.{suffix}" for suffix in ("o", "h", "s", "bin")))
    (tmp_path / "main.c").write_text(f'#include "k.h"\nvoid *const it = (void *){kernel.__name__};\n')
    output("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "main.c", cwd=tmp_path)
    output("as", "k.s", "-o", "again.o", cwd=tmp_path)
    assert f"T {kernel.__name__}\n" in output("nm", "k.o", cwd=tmp_path)
    assert f"U {kernel.__name__}\n" in output("nm", "main.o", cwd=tmp_path)
    assert kernel.prototype.startswith(f"void {kernel.__name__}(")


def test_sizes_in_bytes() -> None:
    kernel = ukernel.brgemm(3, 8, 4, isa="avx2")
    assert [kernel.size_bytes(name, 5) for name in ("a", "b", "dst")] == [5 * 3 * 4 * 4, 5 * 8 * 4 * 4, 3 * 8 * 4]
    assert kernel.size_bytes("a", 0) == 0
    for name, counts in (("c", (1,)), ("batch", (1,)), ("a", ())):
        with pytest.raises(InvalidArguments, match=rf"size_bytes\('{name}'\) with {len(counts)} of 1 integers"):
            kernel.size_bytes(name, *counts)
