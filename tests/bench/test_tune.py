"""`asmdnn tune`: what is measured is kept, found again, said, removed; nothing here depends on a clock."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import environment
from asmdnn.bench import tune
from asmdnn.bench.timing import Times
from asmdnn.cli.main import main
from asmdnn.jit import tuned_folder
from asmdnn.primitives.core import tuned
from asmdnn.primitives.core.implementation import plan_key, plans
from asmdnn.primitives.core.registry import kind_of

WORDS = ["--conv", "--isa=avx2", "--alg=auto", "--dir=FWD_I"]
PROBLEM = "mb1ic16ih9oc24oh9kh3ph1"
pytestmark = pytest.mark.isa("avx2")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A kernel cache of its own, whose tuned plans are taken."""
    monkeypatch.setenv(environment.CACHE_DIR, str(tmp_path / "cache"))
    monkeypatch.setenv(environment.TUNED, "yes")
    monkeypatch.delenv(environment.CACHE, raising=False)
    dnn.clear_caches()
    yield tmp_path / "cache" / "tuned"
    dnn.clear_caches()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Microseconds that the first, second, .. call takes; the last one for all others."""
    micros = [4.0, 3.0, 2.0, 8.0]

    def taken(calls: Sequence[Callable[[], object]]) -> list[float]:
        for call in calls:
            call()
        return [*micros, *[micros[-1]] * len(calls)][: len(calls)]

    monkeypatch.setattr(tune, "interleaved", lambda calls, _: [Times(1.0, each * 1e-6) for each in taken(calls)])
    monkeypatch.setattr(tune, "sampled", lambda calls, *_, **__: [[each * 1e-6] * 6 for each in taken(calls)])
    monkeypatch.setattr(tune, "NEAR", 3.0)
    return micros


def described() -> tuple[dnn.ConvolutionForward, dnn.Engine]:
    """What WORDS and PROBLEM are."""
    tensors = [dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((1, 16, 9, 9), (24, 16, 3, 3), (1, 24, 9, 9))]
    desc = dnn.ConvolutionForward(
        *tensors, padding_l=(1, 1), padding_r=(1, 1), prop_kind=dnn.PropKind.forward_inference,
        algorithm=dnn.Algorithm.convolution_auto,
    )  # fmt: skip
    return desc, dnn.Engine(isa="avx2", threads=1)


def planned(threads: int = 1, attr: dnn.Attr | None = None) -> dnn.PrimitiveDesc:
    desc, _ = described()
    dnn.clear_caches()
    return dnn.primitive_desc(desc, attr or dnn.Attr(), dnn.Engine(isa="avx2", threads=threads))


def test_the_fastest_is_kept_and_found(clock: list[float], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = planned()
    assert main(["tune", *WORDS, "--threads=1", PROBLEM]) == 0
    text = capsys.readouterr().out
    assert "2.00 times as fast as " in text
    assert text.endswith(f"1 of 1 problems tuned, in {directory}\n")
    after = planned()
    assert after.choice is not None
    assert after.choice.default.startswith(before.implementation)
    assert after.plan.specs != before.plan.specs
    assert "  tuned    " in after.explain()
    assert [planned(threads).plan.specs == after.plan.specs for threads in (2, 3)] == [True, True]
    assert planned(attr=dnn.Attr(dnn.Eltwise("relu"))).choice is None
    after.plan.check()
    random = np.random.default_rng(1)
    arrays = {n: random.standard_normal(t.dims).astype(np.float32) for n, t in before.plan.tensors.items()}
    results = []
    for pd in (before, *(planned(threads) for threads in (1, 2))):
        memories = {name: dnn.Memory.from_numpy(arrays[name], tensor) for name, tensor in pd.plan.tensors.items()}
        dnn.Primitive(pd).execute(**memories)
        results.append(memories["dst"].numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-3, atol=1e-3)
    assert np.array_equal(results[1], results[2])


def test_what_is_kept_is_seen_at_once(directory: Path) -> None:
    """By requests whose plan is not made yet: the folder, which was looked for in vain, is there now."""
    before = planned()
    desc, engine = described()
    key = plan_key(kind_of(desc).planners, desc, dnn.Attr(), engine.isa, engine.machine)
    assert not tuned_folder.has_any()
    choice = tuned.Choice("", "another", before.implementation, 2.0, (1,), "")
    tuned.keep(key, engine, before.plan, choice)
    assert directory.is_dir()
    plans.shrink(0)  # not clear_caches, which looks again
    after = dnn.primitive_desc(desc, engine=engine)
    assert after.choice is not None
    assert after.choice.name == "another"


def test_the_folder_is_looked_at_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again for other variables, and after clear_caches: then another process's choices are seen."""
    looks = list[Path]()

    def is_folder(path: Path) -> bool:
        looks.append(path)
        return False

    monkeypatch.setattr(tuned_folder.os.path, "isdir", is_folder)
    engine = dnn.Engine(isa="avx2", threads=1)
    for rows in (1, 2, 3):
        source, weights, dst = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((rows, 8), (8, 8), (rows, 8)))
        dnn.primitive_desc(dnn.MatMul(source, weights, dst), engine=engine)
    assert looks == [directory]
    monkeypatch.setenv(environment.CACHE_DIR, str(directory / "other"))
    tuned_folder.has_any()
    assert looks == [directory, directory / "other" / "tuned"]
    dnn.clear_caches()
    tuned_folder.has_any()
    assert len(looks) == 3


def test_what_others_say_of_it(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    dnn.clear_caches()
    capsys.readouterr()
    assert main(["explain", "--kernel=none", *WORDS, PROBLEM]) == 0
    chosen = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  chosen")]
    assert len(chosen) == 1
    assert "tuned: " in chosen[0]
    monkeypatch.setenv(environment.VERBOSE, "dispatch")
    planned()
    assert ",tuned: " in capsys.readouterr().out
    monkeypatch.delenv(environment.VERBOSE)
    assert main(["cache", "list"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("tuned"))
    assert f"--conv --dir=FWD_I --alg=auto --isa=avx2 {PROBLEM}" in line


def test_it_can_be_passed_over(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    for name, word in ((environment.TUNED, "no"), (environment.CACHE, "0")):
        with monkeypatch.context() as patch:
            patch.setenv(name, word)
            assert planned().choice is None
    assert planned().choice is not None
    _, engine = described()
    other = dnn.Engine(isa="avx2", threads=1, l2_bytes=2 * engine.l2_bytes)
    assert dnn.primitive_desc(described()[0], engine=other).choice is None


def test_one_choice_for_several_numbers_of_threads(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *WORDS, "--threads=1", PROBLEM, "--threads=2", PROBLEM]) == 0
    text = capsys.readouterr().out
    assert "with 1, 2 threads" in text
    assert "1 of 1 problems tuned" in text


def test_small_gains_are_noise(clock: list[float], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    assert len(list(directory.iterdir())) == 1
    clock[:] = [1.02, 1.0, 1.5]
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    assert capsys.readouterr().out.splitlines()[-2].endswith("stays")
    assert list(directory.iterdir()) == []  # what was kept holds no more


def test_damage_is_ignored_with_one_warning(clock: list[float], directory: Path) -> None:
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    (file,) = directory.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    tuned._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match="is damaged and is ignored: run asmdnn tune") as found:
        assert planned().choice is None
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planned().choice is None


def test_cache_removes_it(
    clock: list[float],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    assert main(["cache", "prune", "1G"]) == 0
    assert len(list(directory.iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr("asmdnn.primitives.core.implementation.plan_digest", lambda: "another version")
        assert main(["cache", "prune", "1G"]) == 0
    assert "kernels and networks, 1 tuned plans, " in capsys.readouterr().out
    main(["tune", *WORDS, "--threads=1", PROBLEM])
    assert main(["cache", "clear"]) == 0
    assert ", 1 tuned plans" in capsys.readouterr().out
    assert planned().choice is None


def test_products_and_others(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """Candidates are the implementations where a kind names no others."""
    assert main(["tune", "--matmul", "--isa=avx2", "--stag=ab", "--wtag=ab", "8x64:64x48"]) == 0
    assert main(["tune", "--eltwise", "--isa=avx2", "--alg=relu", "8x64"]) == 0
    assert "of 1 problems tuned" in capsys.readouterr().out


def test_what_cannot_be_tuned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["tune", "--conv"]) == 2
    assert main(["tune", "--conv", "--isa=avx2", "--dt=f8_e5m2", PROBLEM]) == 0
    assert "0 of 1 problems tuned" in capsys.readouterr().out
    assert main(["tune", "--help"]) == 0
    monkeypatch.setenv(environment.CACHE, "0")
    assert main(["tune", "--conv", PROBLEM]) == 2
    assert "ASMDNN_CACHE=0 leaves no place" in capsys.readouterr().err
