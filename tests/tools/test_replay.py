"""tools/replay.py: what counts as a difference, what is shown of it, and both against real revisions."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from tools import replay
from tools.replay_collect import kernel

ROOT = Path(__file__).parents[2]


def made(*instructions: tuple[str, str], pool: str = "") -> dict[str, Any]:
    return {"data": "".join(data for data, _ in instructions) + pool, "listing": [list(i) for i in instructions]}


RET = ("c3", "ret")
OLD = made(("48ffc0", "inc rax"), ("7502", "jnz 0x7 <x>"), ("90", "nop"), RET)
JUMPS_FURTHER = made(("48ffc0", "inc rax"), ("7503", "jnz 0x8 <x>"), ("90", "nop"), ("90", "nop"), RET)
OTHER_ENCODING = made(("48ffc0", "inc rax"), ("0f8502000000", "jnz 0xb <x>"), ("90", "nop"), RET)


def shown(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [line for line in replay.diff("k", old, new, "rev") if not line.startswith("@@")]


def test_a_difference_of_instructions_is_shown_without_addresses() -> None:
    assert shown(OLD, JUMPS_FURTHER) == ["--- k at rev", "+++ k now", " inc rax", " jnz <x>", " nop", "+nop", " ret"]


def test_a_difference_of_encodings_is_shown_with_bytes() -> None:
    lines = shown(OLD, OTHER_ENCODING)
    assert [line[:13].rstrip() for line in lines if line[0] in "+-"][2:] == ["-7502", "+0f8502000000"]


def test_a_difference_of_constants() -> None:
    first, second = (made(RET, pool="cc" * 63 + number) for number in ("0001", "0002"))
    lines = shown(first, second)
    assert [line[0] for line in lines if ".byte" in line and line[0] in "+-"] == ["-", "+"]


@pytest.mark.parametrize(
    ("old", "new", "compared", "differs"),
    [
        ({"a": OLD}, {"a": OLD}, ((), (), (), ()), False),
        ({"a": OLD}, {"a": JUMPS_FURTHER}, (("a",), (), (), ()), True),
        ({"a": OLD}, {"a": OLD, "b": OTHER_ENCODING}, ((), (), ("b",), ()), False),
        ({"a": OLD, "b": OTHER_ENCODING}, {"a": OLD}, ((), ("b",), (), ()), True),
        ({"a": OLD}, {"b": OLD}, ((), (), (), (("a", "b"),)), False),
    ],
)
def test_what_counts(old: Any, new: Any, compared: tuple[Any, ...], differs: bool) -> None:
    found = replay.compare(old, new)
    assert found == replay.Comparison(*compared)
    assert found.differs == differs
    verdict = list(replay.report(found, old, new, "rev"))[-1]
    assert verdict.startswith("none of ") != differs


def test_what_a_tree_generates_is_what_is_compared() -> None:
    spec = ConvertSpec(
        isa="avx2", conversion=Conversion("f32", "s8"), rows=3, columns=5, src_steps=(20, 4), dst_steps=(5, 1)
    )
    found = kernel(spec)
    assert found["data"].startswith("".join(data for data, _ in found["listing"]))
    assert replay.constants(found)
    assert {conv["isa"] for conv in replay.convolutions()} == {"avx2", "avx512_core"}
    assert len(replay.convolutions()) == 40


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no-such-revision"], "replay: 'no-such-revision' is no commit of the repository"),
        (["--output=x"], "replay: '--output=x' is no commit"),
        ([], ""),
        (["a", "b"], ""),
    ],
)
def test_mistakes(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main(words) == replay.IMPOSSIBLE
    output = capsys.readouterr()
    assert output.err.startswith(says)
    assert output.err.count("\n") == bool(says)
    assert output.out.startswith("usage") != bool(says)


def test_a_tree_that_cannot_generate_says_why(tmp_path: Path) -> None:
    (tmp_path / "asmdnn").mkdir()
    (tmp_path / "asmdnn" / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    with pytest.raises(replay.InvalidArguments, match=r"the kernels of x cannot be generated: .*broken on purpose"):
        replay.collect(tmp_path, "x")


@pytest.mark.slow
def test_a_changed_generator_is_found(tmp_path: Path) -> None:
    """Every transpose, and no other kernel, has the instruction that the edit puts there."""
    shutil.copytree(ROOT / "asmdnn", tmp_path / "asmdnn")
    source = tmp_path / "asmdnn" / "generators" / "move" / "transpose.py"
    old, end = source.read_text(), "\n        asm.ret()\n"
    assert old.count(end) == 1
    source.write_text(old.replace(end, "\n        asm.ADD(src, 0)" * 2 + end))
    now, changed = replay.collect(ROOT, "now"), replay.collect(tmp_path, "changed")
    compared = replay.compare(now, changed)
    assert compared.differs
    assert {name.partition("_")[0] for name in compared.changed} == {"transpose"}
    assert not compared.gone + compared.new
    shown = list(replay.report(compared, now, changed, "x"))
    assert sum(line.startswith("+add r") for line in shown) == 2 * len(compared.changed)


@pytest.mark.slow
def test_the_last_commit(capsys: pytest.CaptureFixture[str]) -> None:
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("not a git repository")
    status = replay.main(["HEAD"])
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert (status, verdict.startswith("none of ")) in ((0, True), (1, False))
    assert "kernels differ" in verdict
