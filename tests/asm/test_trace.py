"""A trace has every instruction of a call and what it changed; its page holds the same, and needs nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("iced_x86", reason="the emulator decodes with it: pip install iced-x86")

from asmdnn.asm.emulation import EmulationFault
from asmdnn.errors import InvalidArguments, Unimplemented
from examples.asm import base64_text, dot, prefix_sum, saxpy

LEVELS = ("avx2", "avx512_core")


def traced(level: str, n: int = 37) -> Any:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    return dot.dot_of(2).trace(x, y, n, isa=level)


@pytest.mark.parametrize("level", LEVELS)
def test_the_steps_are_those_of_the_emulated_call(level: str) -> None:
    found = traced(level)
    x, y = np.arange(37, dtype=np.float32), np.ones(37, np.float32)
    call = dot.dot_of(2).emulate(x, y, 37, isa=level)
    assert (found.call.result, found.call.instructions, found.call.touched) == (666.0, call.instructions, call.touched)
    assert len(found.steps) == call.instructions
    assert found.listing[found.steps[-1].line].text == "ret"
    assert found.entry["rdx"] == (37).to_bytes(8, "little")
    assert found.pointers == {"x": "rdi", "y": "rsi"}


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_read_is_noted_where_it_is_read(level: str) -> None:
    found = traced(level)
    size = 64 if level == "avx512_core" else 32
    first = next(step for step in found.steps if step.read)
    assert found.listing[first.line].text.startswith("vmovups")
    assert first.read == {"x": ((0, size),)}
    lanes = np.frombuffer(first.changed["v2"], np.float32)
    assert lanes.tolist() == list(range(size // 4))
    everything = {at for step in found.steps for begin, end in step.read.get("y", ()) for at in range(begin, end)}
    assert everything == set(range(4 * 37))


def test_replayed_stores_give_what_the_call_wrote() -> None:
    x, sums = np.arange(21, dtype=np.int32), np.full(21, -1, np.int32)
    found = prefix_sum.prefix.trace(x, sums, 21)
    memory = {name: bytearray(data) for name, (data, _) in found.memory.items()}
    assert memory["sums"] == b"\xff" * 84
    assert found.memory["x"][1] == "i4"
    for step in found.steps:
        for name, pieces in step.stored.items():
            for at, data in pieces:
                memory[name][at : at + len(data)] = data
    assert (np.frombuffer(memory["sums"], np.int32) == np.cumsum(x)).all()
    assert sums.tobytes() == memory["sums"]


def test_flags_and_masks() -> None:
    data, text = np.arange(10, dtype=np.uint8), np.zeros(16, np.uint8)
    found = base64_text.by_bytes.trace(data, 10, text)
    masks = [step.changed[name] for step in found.steps for name in ("k1", "k2") if name in step.changed]
    assert (2**48 - 1).to_bytes(8, "little") in masks
    compared = next(step for step in found.steps if found.listing[step.line].text.startswith("cmp"))
    assert compared.changed["cf"] == b"\x01"  # 10 < 48


def test_the_page(tmp_path: Path) -> None:
    found = traced("avx512_core")
    found.page(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    data = json.loads(re.search(r"const TRACE = (\{.*\});\n", page)[1])  # type: ignore[index]
    assert len(data["steps"]) == len(found.steps)
    assert [line["text"] for line in data["lines"]] == [line.text for line in found.listing]
    fma = next(line for line in data["lines"] if line["text"].startswith("vfmadd"))
    assert "v.fma(a, t" in data["sources"][fma["path"]][fma["number"] - 1]
    assert fma["held"]["v0"] == "acc[0]"
    assert not re.search(r'(src|href)="|url\(|@import|http', page)
    assert page.count("</script>") == 1
    assert "srcdoc" in found._repr_html_()


def test_source_that_ends_a_script(tmp_path: Path) -> None:
    """A line of Python with </script> does not end the page's."""
    found = traced("avx2")
    text = found.listing[0]._replace(text="</script>")
    from dataclasses import replace

    replace(found, listing=(text, *found.listing[1:])).page(tmp_path / "t.html")
    assert (tmp_path / "t.html").read_text().count("</script>") == 1


def test_refusals() -> None:
    x, y = np.ones(9000, np.float32), np.ones(9000, np.float32)
    with pytest.raises(EmulationFault, match="has not returned after 100 instructions"):
        saxpy.saxpy.trace(1.0, x, y, 9000, isa="avx2", most_steps=100)
    with pytest.raises(InvalidArguments, match="saxpy is for avx2, avx512_core"):
        saxpy.saxpy.trace(1.0, x, y, 9000, isa="avx2_vnni")
    from asmdnn import asm

    @asm.function("double root(double x)", calls={"sqrt": "double(double)"})
    def root(f: Any, x: Any) -> None:
        f.ret(f.call("sqrt", x))

    with pytest.raises(Unimplemented, match="trace of 'root': it calls others"):
        root.trace(2.0)
