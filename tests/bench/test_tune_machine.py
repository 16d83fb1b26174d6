"""`asmdnn tune --machine`: what gains is kept, taken by engines, said, removed; nothing here depends on a clock."""

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn import environment
from asmdnn.bench import tune_machine
from asmdnn.bench.machine_trials import TRIALS, Trial
from asmdnn.bench.rank import described, identity
from asmdnn.bench.tune_machine import cases_of, chosen_names, judged
from asmdnn.cli.main import main
from asmdnn.planning import own_row
from asmdnn.planning.candidates import CANDIDATES, number_of, with_number
from asmdnn.planning.host import detected
from asmdnn.planning.tuning import DEFAULT, Tuning
from asmdnn.runtime import rates
from asmdnn.runtime.rates import Rates

NUMBER = "moves.streaming_bytes"
WORDS = ["tune", "--machine", "--isa=avx2", f"--only={NUMBER}"]
pytestmark = pytest.mark.isa("avx2")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In a kernel cache of its own, on the machine at hand."""
    monkeypatch.setenv(environment.CACHE_DIR, str(tmp_path / "cache"))
    monkeypatch.setenv(environment.TUNED, "yes")
    for name in (environment.CACHE, environment.MACHINE):
        monkeypatch.delenv(name, raising=False)
    own_row._warn.cache_clear()
    dnn.clear_caches()
    yield tmp_path / "cache" / "tuned" / "machine.json"
    dnn.clear_caches()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of the plan by the class's number, and of all others; one small problem, and no rates are measured."""
    seconds = [2.0, 1.0]

    def sampled(calls: Sequence[Callable[[], object]], *_: Any, **__: Any) -> list[list[float]]:
        for call in calls:
            call()
        return [[seconds[min(i, 1)]] * 6 for i in range(len(calls))]

    monkeypatch.setattr(tune_machine, "sampled", sampled)
    trial = Trial(("--reorder", "--stag=abx", "--dtag=aBx8b", "11x512x20x20"))  # 18 MB come and go
    monkeypatch.setattr(tune_machine, "TRIALS", MappingProxyType({**TRIALS, NUMBER: trial}))
    monkeypatch.setattr(
        rates,
        "measure",
        lambda isa: Rates(
            "a CPU", isa, clock_ghz=3.0, fma_gflops=96.0, l1_gbs=300.0, l2_gbs=150.0, l3_gbs=30.0, dram_gbs=15.0
        ),
    )
    return seconds


def of_class() -> Tuning:
    return detected().tuning_at("avx2")


def taken(isa: str = "avx2") -> Any:
    return number_of(dnn.Engine(isa=isa, threads=1).tuning, NUMBER)


def test_every_candidate_has_a_trial_and_a_type() -> None:
    assert set(CANDIDATES) == set(TRIALS)
    for name, values in CANDIDATES.items():
        assert len({repr(value) for value in values}) == len(values) >= 2
        assert {type(value) for value in values} == {type(number_of(DEFAULT, name))}
        assert [number_of(with_number(DEFAULT, name, value), name) for value in values] == list(values)


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_number_decides_plans_of_its_trial(name: str) -> None:
    """With zmm or with ymm registers, beside the numbers of some class: else nothing would be measured."""

    def answers(machine: str, isa: str) -> Iterator[set[object]]:
        engine = dnn.Engine(isa=isa, machine=machine, threads=TRIALS[name].threads, l2_bytes=1 << 20)
        tunings = [with_number(engine.tuning, name, value) for value in CANDIDATES[name]]
        for case in cases_of(TRIALS[name].words):
            desc, attr, _ = described(case)
            found = [dnn.primitive_desc(desc, attr, replace(engine, tuning=tuning)) for tuning in tunings]
            yield {(pd.threads, *identity(pd.plan)) for pd in found}

    places = product(("zen5", "sapphire_rapids", "zen4", "zen3"), ("avx512_core", "avx2"))
    assert any(len(plans) > 1 for machine, isa in places for plans in answers(machine, isa))


def test_what_gains_is_kept_and_taken(clock: list[float], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = dnn.Engine(isa="avx2", threads=1)
    assert main(WORDS) == 0
    text = capsys.readouterr().out
    assert f"1 of 1 numbers differ from those of {detected().name}, in {file}\n" in text
    assert "2.00   2.00        1" in text
    assert taken() in CANDIDATES[NUMBER]
    assert taken() != number_of(before.tuning, NUMBER)
    assert dnn.Engine(isa="avx2", threads=1).tuning == with_number(of_class(), NUMBER, taken())
    source, dst = (dnn.MemoryDesc((11, 512, 20, 20), dnn.f32, tag) for tag in ("abcd", "aBcd8b"))
    engines = before, dnn.Engine(isa="avx2", threads=1)
    plans = [dnn.primitive_desc(dnn.Reorder(source, dst), engine=engine).plan for engine in engines]
    assert plans[0].specs != plans[1].specs
    plans[1].check()
    assert main(["cache", "list"]) == 0
    assert f"avx2 on this CPU: {NUMBER} {taken()}" in capsys.readouterr().out


def test_whom_it_does_not_concern(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Other levels, engines of a class by name, other machines, and who says so."""
    own = number_of(of_class(), NUMBER)
    main(WORDS)
    assert taken() != own
    assert taken("avx512_core") == number_of(detected().tuning_at("avx512_core"), NUMBER)
    assert dnn.Engine(isa="avx2", machine=detected().name, threads=1).tuning == of_class()
    for name, value in ((environment.TUNED, "no"), (environment.CACHE, "0"), (environment.MACHINE, detected().name)):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert taken() == own
    assert taken() != own


def test_small_gains_and_losses_are_not_kept(
    clock: list[float], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(WORDS)
    assert "numbers" in file.read_text()
    clock[:] = [1.02, 1.0]
    main(WORDS)
    assert "0 of 1 numbers differ" in capsys.readouterr().out
    assert taken() == number_of(of_class(), NUMBER)


def test_other_numbers_stay(clock: list[float], file: Path) -> None:
    own_row.keep("avx2", {"moves.page_bytes": CANDIDATES["moves.page_bytes"][0]})
    main(WORDS)
    assert set(own_row.kept("avx2")) == {"moves.page_bytes", NUMBER}


def test_judged() -> None:
    """Gains count where plans differ; a loss anywhere is one too many; the best by luck is judged by other rounds."""
    same, half, slow, lucky = [1.0] * 6, [1.2] * 6, [0.9] * 6, [1.5, 1.0] * 3
    assert judged([[same, half], [half, same]], 2)[1:] == pytest.approx((1.2, 1.2))
    assert judged([[half], [slow]], 1) == (None, 1.0, 1.0)
    assert judged([[lucky]], 1) == (None, 1.0, 1.0)
    assert judged([[same]], 1) == (None, 1.0, 1.0)
    assert judged([[slow, half]], 2)[0] == 1
    assert judged([], 3) == (None, 1.0, 1.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row | {"numbers": {NUMBER: 3}},
        lambda row: row | {"numbers": {"moves.nothing": 1}},
        lambda row: row | {"numbers": {NUMBER: {}}},
        lambda row: row | {"numbers": []},
        lambda row: {},
        lambda row: 7,
    ],
)
def test_nonsense_is_ignored_with_one_warning(clock: list[float], file: Path, change: Callable[[Any], Any]) -> None:
    main(WORDS)
    table = json.loads(file.read_text())
    ((cpu, levels),) = table.items()
    file.write_text(json.dumps({cpu: {level: change(row) for level, row in levels.items()}}))
    dnn.clear_caches()
    with pytest.warns(RuntimeWarning, match="makes no sense and is ignored: run asmdnn tune --machine") as found:
        assert taken() == number_of(of_class(), NUMBER)
    assert len(found) == 1


@pytest.mark.parametrize("text", ["", "[", "[]", "7", "[" * 100_000])
def test_damage_is_ignored(clock: list[float], file: Path, text: str) -> None:
    main(WORDS)
    file.write_text(text)
    dnn.clear_caches()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert taken() == number_of(of_class(), NUMBER)
    main(WORDS)
    assert taken() != number_of(of_class(), NUMBER)


def test_a_row_of_other_sources_is_not_found(clock: list[float], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main(WORDS)
    monkeypatch.setattr(own_row, "sources", lambda: "another version")
    dnn.clear_caches()
    assert taken() == number_of(of_class(), NUMBER)


def test_it_is_removed(clock: list[float], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(WORDS)
    assert main(["cache", "clear"]) == 0
    assert ", the numbers of this machine" in capsys.readouterr().out
    assert not file.exists()
    assert taken() == number_of(of_class(), NUMBER)


def test_json(clock: list[float], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["class"] == detected().name
    assert found["file"] == str(file)
    (number,) = found["numbers"]
    assert number | {"value": 0} == {
        "name": NUMBER, "default": number_of(of_class(), NUMBER), "value": 0, "gain": 2.0, "least": 2.0, "problems": 1
    }  # fmt: skip
    assert number["value"] == taken()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only=moves.nothing"], "'moves.nothing' is no number that is measured"),
        (["--only=moves,"], "'' is no number that is measured"),
        (["--max-ms-per-prb=0"], "expected a number of milliseconds"),
        (["--max-ms-per-prb=soon"], "expected a number of milliseconds"),
        (["--isa=pentium"], "pentium"),
        (["--batch=resnet_50"], "tune: no option '--batch=resnet_50'"),
        (["--json=file"], "no option '--json=file'"),
    ],
)
def test_words_that_mean_nothing(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--machine", *words]) == 2
    assert message in capsys.readouterr().err


def test_where_nothing_can_be_kept(
    clock: list[float], file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environment.MACHINE, "haswell")
    assert main(WORDS) == 2
    assert "tune --machine measures this CPU, not haswell: unset ASMDNN_MACHINE" in capsys.readouterr().err
    monkeypatch.delenv(environment.MACHINE)
    file.parent.parent.write_text("no folder")
    assert main(WORDS) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_names() -> None:
    assert chosen_names("") == tuple(CANDIDATES)
    assert set(chosen_names("moves,topk.narrow_elements")) == {
        name for name in CANDIDATES if name.startswith(("moves.", "topk.narrow_elements"))
    }
