"""tools/replay_plans.py: what counts as a difference, what is shown of it, and a tree whose planner was changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asmdnn.bench.drivers import driver_names
from asmdnn.isa.levels import LEVELS
from tools import replay_plans
from tools.replay_plans_collect import collect, text_of

ROOT = Path(__file__).parents[2]
CONVOLUTION = ["--conv", "mb1ic64ih14oc64oh14kh3ph1"]
PRODUCT = ["--matmul", "32x64:64x48"]
FEW = [CONVOLUTION, PRODUCT, ["--pool", "mb1ic8ih8oh4kh2sh2ph0"]]


def digests(**plans: Any) -> Any:
    """Of problems by name, each with its fields."""
    return {"problems": {name: {"e": name, "f": name} for name in plans}, "plans": plans}


def copied(folder: Path, file: str, edit: Callable[[str], str]) -> Path:
    """This tree with one file changed."""
    shutil.copytree(ROOT / "asmdnn", folder / "asmdnn")
    source = folder / "asmdnn" / file
    old = source.read_text()
    source.write_text(edit(old))
    assert source.read_text() != old
    return folder


def test_a_changed_planner_is_found(tmp_path: Path) -> None:
    """The pooling, whose calls were made to cost a cycle more, and nothing else."""
    tree = copied(tmp_path, "primitives/pooling/calls.py", lambda text: text.replace("[call.cyc", "[1 + call.cyc"))
    old, new = (replay_plans.collect(folder, "a tree", FEW) for folder in (ROOT, tree))
    assert not replay_plans.differences(old, old)
    (found,) = replay_plans.differences(old, new)
    assert found.problem == "--pool mb1ic8ih8oh4kh2sh2ph0"
    assert found.field == "phase 0, cycles"
    assert found.old.startswith("int32[")
    assert found.new != found.old


def test_a_plan_has_all_that_is_run_and_a_refusal_its_reason() -> None:
    engines = {"e": {"isa": "avx2", "machine": "zen3", "threads": 1, "deterministic": "batch"}}
    refused, unknown = (["--conv", word, "mb1ic8ih8oc8oh8kh1ph0"] for word in ("--dir=BWD_WB", "--no-such-option=1"))
    found = collect([(words, ["e"]) for words in [*FEW, refused, unknown]], engines)
    assert list(found["problems"]) == [" ".join(words) for words in [*FEW, refused]]
    plans = [found["plans"][of["e"]] for of in found["problems"].values()]
    assert plans[0]["implementation"] == "direct:avx2"
    assert plans[0]["phase 0, kernels"].startswith("conv_f32_")
    assert plans[0]["phase 0, arguments"].startswith("src, weights, ")
    assert {"phase 0, records", "phase 0, cycles", "tensors src", "constants taps", "outputs"} <= plans[0].keys()
    assert list(plans[3]) == ["implementation"]
    assert "has no plans for deterministic='batch'" in plans[3]["implementation"]


def test_a_planner_that_fails_is_a_difference(tmp_path: Path) -> None:
    """And not the end of the comparison."""
    tree = copied(tmp_path, "primitives/pooling/calls.py", lambda text: text.replace("[call.cyc", "[call.no_such_cyc"))
    old, new = (replay_plans.collect(folder, "a tree", FEW) for folder in (ROOT, tree))
    (found,) = replay_plans.differences(old, new)
    assert found.field == "implementation"
    assert found.old == "rows:avx2"
    assert found.new.startswith("refused: AttributeError: ")


def test_texts_are_short_and_differ_where_values_do() -> None:
    long = "x" * 200
    assert text_of(long) != text_of(long + "y")
    assert len(text_of(long)) < 120
    assert text_of(False) == text_of(()) == ""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}, ("b", "2", "3")),
        ({"a": "1"}, {"a": "1", "c": "4"}, ("c", "absent", "4")),
        ({"a": "1", "b": "2"}, {"a": "1"}, ("b", "2", "absent")),
    ],
)
def test_the_first_field_that_differs(old: dict[str, str], new: dict[str, str], says: tuple[str, str, str]) -> None:
    assert replay_plans.first_difference(old, new) == says


def test_what_is_shown() -> None:
    old = digests(same={"a": "1"}, gone={"a": "1"})
    old["problems"]["p"], old["plans"]["old"] = {"e": "old", "f": "old"}, {"a": "1", "b": "2"}
    new = digests(same={"a": "1"}, added={"a": "1"})
    new["problems"]["p"], new["plans"]["new"] = {"e": "new", "f": "new"}, {"a": "1", "b": "3"}
    found = replay_plans.differences(old, new)
    shown = "\n".join(replay_plans.report(found, old, new, "main"))
    assert shown == "p\n  e and 1 more: b\n    - 2\n    + 3\n1 of 2 problems differ from main; 1 are new, 1 are gone"
    (verdict,) = replay_plans.report([], old, old, "main")
    assert verdict == "none of 3 problems differs from main; 0 are new, 0 are gone"


def test_problems_are_of_every_kind_and_engines_of_every_level() -> None:
    found = replay_plans.problems()
    assert {words[0] for words in found} == {f"--{name}" for name in driver_names()}
    assert not any('"' in word for words in found for word in words)
    assert {engine["isa"] for engine in replay_plans.ENGINES.values()} == {level.name for level in LEVELS}
    every = {name for words in found for name in replay_plans.engines_of(words)}
    assert every == set(replay_plans.ENGINES)


def test_a_digest_is_kept_and_compared_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_plans, "problems", lambda: FEW[:2])
    file = str(tmp_path / "plans")
    assert replay_plans.main(["--save", file]) == 0
    assert replay_plans.main([file]) == 0
    assert capsys.readouterr().out == (
        f"{file}: plans of 2 problems\nnone of 2 problems differs from {file}; 0 are new, 0 are gone\n"
    )
    found = replay_plans.saved(Path(file))
    found["problems"]["--matmul 32x64:64x48"] = dict.fromkeys(replay_plans.engines_of(PRODUCT), "other")
    found["plans"]["other"] = {"implementation": "other"}
    monkeypatch.setattr(replay_plans, "saved", lambda path: json.loads(json.dumps(found)))
    assert replay_plans.main([file]) == replay_plans.DIFFERENT
    assert "--matmul 32x64:64x48\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no-such-revision"], "replay_plans: 'no-such-revision' is no commit of the repository"),
        ([], ""),
        (["a", "b"], ""),
        (["--save"], ""),
        (["--save", "/no/such/folder/x"], "replay_plans: /no/such/folder/x cannot be written: No such file"),
        ([__file__], "replay_plans: "),
    ],
)
def test_mistakes(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_plans, "problems", lambda: FEW[1:2])
    assert replay_plans.main(words) == replay_plans.IMPOSSIBLE
    output = capsys.readouterr()
    assert output.err.startswith(says)
    assert output.err.count("\n") == bool(says)
    assert output.out.startswith("usage") != bool(says)
