"""`asmdnn show`: the words of its command line, and one line for every mistake in them."""

from pathlib import Path

import pytest

from asmdnn.cli.main import main
from asmdnn.memory import MemoryDesc
from asmdnn.show import draw, layout
from asmdnn.types import bf16, f32


@pytest.mark.parametrize(
    ("words", "desc", "names"),
    [
        (("nChw8c", "2x17x5x4"), MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), "nchw"),
        (("aBcd8b", "2x17x5x4"), MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), "abcd"),
        (("tnc", "3x2x4", "--dt=bf16"), MemoryDesc((3, 2, 4), bf16, "abc"), "tnc"),
        (("--dt=f32", "8x1", "2x3"), MemoryDesc((2, 3), f32, strides=(8, 1)), "ab"),
        (("hwio", "4x5x3x3"), MemoryDesc((4, 5, 3, 3), f32, "hwio"), "oihw"),
    ],
)
def test_text(words: tuple[str, ...], desc: MemoryDesc, names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", *words]) == 0
    assert capsys.readouterr().out == layout(desc, names) + "\n"


def test_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "layout.svg"
    assert main(["show", "nChw8c", "2x17x5x4", f"--output={target}"]) == 0
    assert capsys.readouterr().out == f"f32 2x17x5x4 nChw8c drawn in {target}\n"
    assert target.read_text() == draw(MemoryDesc((2, 17, 5, 4), f32, "nChw8c"))


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--help"]) == 0
    assert capsys.readouterr().out.startswith("asmdnn show")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "show: expected a format and dims"),
        (("nchw",), "show: expected a format and dims, such as nChw8c 2x17x5x4, not 'nchw'"),
        (("nchw", "2x3x4x5", "6"), "not 'nchw 2x3x4x5 6'"),
        (("nchw", "2,3,4,5"), "show: dims '2,3,4,5': write sizes with x between them"),
        (("nchw", "2x-3x4x5"), "show: dims '2x-3x4x5'"),
        (("nchw", "2x3"), "tag 'nchw' has 4 dims, but dims has 2"),
        (("nchz", "2x3x4x5"), "unknown letter"),
        (("any", "2x3x4"), "nothing to show: it has no layout"),
        (("nchw", "2x0x4x5"), "nothing to show: it has no elements"),
        (("nchw", "9999999999x999999999x9x9"), "the largest tensor"),
        (("8x1", "2x3x4"), "strides (8, 1) has 2 entries"),
        (("nchw", "2x3x4x5", "--dt=f64"), "show: --dt=f64 is no data type"),
        (("nchw", "2x3x4x5", "--color"), "show: no option '--color'"),
        (("nchw", "2x3x4x5", "--output="), "show: --output needs a file"),
        (("nchw", "2x3x4x5", "--output=x.gif"), "'x.gif' is no picture"),
        (("nchw", "2x3x4x5", "--output=/nonexistent/x.svg"), "cannot be written"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", *words]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith("asmdnn: ")
    assert says in output.err
