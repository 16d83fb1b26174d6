"""Text and picture: every line and every cell is where the offset formula puts it; files, and why there is none."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.show import draw, layout
from asmdnn.types import bf16, f32

BLOCKED = MemoryDesc((2, 17, 5, 4), f32, "nChw8c")
SVG = "{http://www.w3.org/2000/svg}"


def test_text_of_a_small_tensor() -> None:
    assert layout(MemoryDesc((1, 3, 1, 2), f32, "nChw2c")).splitlines() == [
        "f32 1x3x1x2 nChw2c = aBcd2b",
        "offset(n, c, h, w) = c/2*4 + w*2 + c%2",
        "32 bytes; padded to 1x4x1x2: 2 of 8 elements are padding, which is zero",
        "",
        "  offset   n  h  w |  c  (- is padding)",
        "       0   0  0  0 |  0  1",
        "       2   0  0  1 |  0  1",
        "",
        "       4   0  0  0 |  2  -",
        "       6   0  0  1 |  2  -",
    ]


def test_text_of_strides_with_gaps() -> None:
    assert layout(MemoryDesc((2, 3), f32, strides=(8, 1), offset0=5), "tn").splitlines()[-2:] == [
        "       5   0 |  0  1  2  skip 5",
        "      13   1 |  0  1  2",
    ]


@pytest.mark.parametrize("tag", ["nchw", "nhwc", "chwn", "nChw8c", "nChw16c", "ABcd2b3a"])
def test_lines_agree_with_the_formula(tag: str) -> None:
    desc = MemoryDesc((2, 17, 5, 4), f32, tag)
    lines = layout(desc, "abcd").splitlines()
    head = next(line for line in lines if line.startswith("  offset"))
    fixed, along = head.removeprefix("  offset").split("|")
    dims = ["abcd".index(letter) for letter in fixed.split()]
    rows = 0
    for line in lines[lines.index(head) + 1 :]:
        if "|" in line:
            numbers, cells = line.split("|")
            offset, *indices = map(int, numbers.split())
            index = [0] * 4
            for dim, value in zip(dims, indices, strict=True):
                index[dim] = value
            for i, cell in enumerate(cells.split(" ...")[0].split()):
                index["abcd".index(along.split()[0])] = int(cell) if cell != "-" else 17 + i - 1
                if cell != "-":
                    assert desc.offset(index) == offset + i
            rows += 1
    assert rows >= 12


def test_large_text_is_short_and_says_so() -> None:
    text = layout(MemoryDesc((32, 256, 56, 56), f32, "nChw16c"))
    assert "large: only the beginning and the end are shown" in text
    assert len(text.splitlines()) < 200


def cells_of(desc: MemoryDesc) -> list[tuple[float, float, str]]:
    root = ElementTree.fromstring(draw(desc))
    texts = [(float(t.get("x", "")), float(t.get("y", "")), t.text or "") for t in root.iter(f"{SVG}text")]
    return [text for text in texts if re.fullmatch(r"\d+(,\d+){3}", text[2])]


@pytest.mark.parametrize("tag", ["nhwc", "nChw8c", "AcdB9b2a"])
def test_cells_lie_in_reading_order(tag: str) -> None:
    desc = MemoryDesc((2, 9, 2, 2), f32, tag)
    cells = cells_of(desc)
    assert sorted(text for _, _, text in cells) == sorted(
        ",".join(map(str, (n, c, h, w))) for n in range(2) for c in range(9) for h in range(2) for w in range(2)
    )
    offset_of = {text: desc.offset([int(i) for i in text.split(",")]) for _, _, text in cells}
    by_row: dict[float, list[tuple[float, int]]] = {}
    for x, y, text in cells:
        by_row.setdefault(y, []).append((x, offset_of[text]))
    assert all(row == sorted(row, key=lambda cell: cell[1]) for row in map(sorted, by_row.values()))
    assert len(cells) == 72


def test_padding_is_hatched() -> None:
    boxes = [box.get("fill") for box in ElementTree.fromstring(draw(BLOCKED)).iter(f"{SVG}rect")]
    assert boxes.count("url(#padding)") == 280 + 1  # and one in the legend; the strip does not reach it
    assert "url(#gap)" not in boxes
    assert "url(#gap)" in draw(MemoryDesc((4, 6), f32, strides=(8, 1)))


@pytest.mark.parametrize(
    "desc",
    [
        MemoryDesc((5,), f32, "a"),
        MemoryDesc((1, 1), f32, "ab"),
        MemoryDesc((3, 4), f32, strides=(0, 1)),
        MemoryDesc((32, 40, 3, 3), bf16, "OIhw8i16o2i"),
        MemoryDesc((2,) * 12, f32, "abcdefghijkl"),
        MemoryDesc((1000, 1000), f32, "ba"),
    ],
    ids=str,
)
def test_pictures_are_well_formed_and_of_a_sane_size(desc: MemoryDesc) -> None:
    root = ElementTree.fromstring(draw(desc))
    assert 100 < float(root.get("width", "")) < 2400
    assert 100 < float(root.get("height", "")) < 4000


def test_files(tmp_path: Path) -> None:
    document = draw(BLOCKED, tmp_path / "layout.svg")
    assert (tmp_path / "layout.svg").read_text() == document
    with pytest.raises(InvalidArguments, match=r"layout.gif' is no picture: end it in .svg or .png"):
        draw(BLOCKED, tmp_path / "layout.gif")
    with pytest.raises(InvalidArguments, match="cannot be written: No such file"):
        draw(BLOCKED, tmp_path / "nowhere" / "layout.svg")


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    draw(MemoryDesc((1, 3, 1, 2), f32, "nChw2c"), tmp_path / "layout.png")
    picture = image.open(tmp_path / "layout.png").convert("RGB")
    root = ElementTree.fromstring(draw(MemoryDesc((1, 3, 1, 2), f32, "nChw2c")))
    assert abs(picture.width - float(root.get("width", ""))) <= 1
    assert len(picture.getcolors(1 << 20)) > 10


def test_png_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Unimplemented, match="PNG needs matplotlib"):
        draw(BLOCKED, tmp_path / "layout.png")


def test_pictures_of_the_chapter_are_up_to_date(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "memory-formats.md").read_text()
    commands = re.findall(r"^asmdnn show (\S+) (\S+) --output=(docs/images/memory-\S+)$", text, re.MULTILINE)
    assert sorted(name for _, _, name in commands) == sorted(
        str(path.relative_to(root)) for path in (root / "docs" / "images").glob("memory-*")
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "images").mkdir(parents=True)
    for tag, dims, name in commands:
        assert main(["show", tag, dims, f"--output={name}"]) == 0
        assert (tmp_path / name).read_text() == (root / name).read_text(), f"make it again: asmdnn show {tag} {dims}"
