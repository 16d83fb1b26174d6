"""`asmdnn bench --rank`: every candidate is measured, and the choice is held against the best."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.bench import rank
from asmdnn.bench.drivers import driver_names, driver_of
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.timing import Times
from asmdnn.cli.main import main
from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import F32

PROBLEM = "mb1ic16ih9oc24oh9kh3ph1"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls take 4, 3, 2 and again 2, .. microseconds, in the order of the candidates."""

    def taken(calls: Sequence[Callable[[], object]]) -> list[float]:
        for call in calls:
            call()
        return [max(2, 4 - i) * 1e-6 for i in range(len(calls))]

    monkeypatch.setattr(rank, "interleaved", lambda calls, *_, **__: [Times(1.0, micros) for micros in taken(calls)])
    monkeypatch.setattr(rank, "sampled", lambda calls, *_, **__: [[micros] * 6 for micros in taken(calls)])
    monkeypatch.setattr(rank, "NEAR", 2.5)


@pytest.mark.isa("avx2")
def test_regret_of_the_choice(clock: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--rank", "--conv", "--isa=avx2", "--threads=1", PROBLEM]) == 0
    header, row, summary = capsys.readouterr().out.splitlines()
    assert header.split() == ["problem", "chosen", "us", "best", "us", "regret"]
    assert row.endswith("100.0%")
    assert summary == f"regret of 1: median 100.0%, worst 100.0% ({PROBLEM})"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([[4, 4, 4, 4], [2, 2, 2, 2]], (1, 1.0)),
        ([[2, 2, 2, 2], [3, 3, 3, 3]], (0, 0.0)),
        ([[2, 20, 2, 20, 2, 20], [1, 10, 1, 10, 1, 10]], (1, 1.0)),  # a slow phase hits both
        ([[1, 1, 1, 1, 1, 1], [0.5, 2, 0.5, 2, 0.5, 2]], (0, 0.0)),  # the best by one half only had luck
        ([[4], [2]], (1, 1.0)),  # a call so long that there was one round
    ],
)
def test_regret_is_of_pairs_and_judged_by_the_other_half(
    samples: list[list[float]], expected: tuple[int, float]
) -> None:
    assert rank.judged(samples) == expected


def test_of_several_cases_the_best_is_that_on_average() -> None:
    """Each case counts alike, however long its calls take and however many rounds it has."""
    one, other = [[4.0] * 6, [2.0] * 6, [3.0] * 6], [[40.0] * 2, [50.0] * 2, [20.0] * 2]
    best, regret = rank.judged(one, other)
    assert (best, regret) == (2, pytest.approx(1 / 0.625 - 1))


def test_candidates_share_the_memories_of_equal_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()
    case = next(reader.stream(["--conv", "--isa=avx2", "--threads=1", PROBLEM], Path.cwd()))
    assert not isinstance(case, Mistake)
    desc, attr, work = rank.described(case)
    engine, made = dnn.Engine(isa="avx2", threads=1, machine="zen3"), list[dnn.MemoryDesc]()
    plans = list(rank.every_plan(desc, attr, engine))
    from_numpy = dnn.Memory.from_numpy
    monkeypatch.setattr(
        dnn.Memory, "from_numpy", lambda array, tensor: made.append(tensor) or from_numpy(array, tensor)
    )
    assert [*rank.bound(plans, desc, attr, engine, work.data(exact=True).arrays)] == [name for name, _ in plans]
    assert sorted(map(str, made)) == sorted({str(t) for _, plan in plans for t in plan.tensors.values()})


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_candidates_are_plans_and_the_choice_is_the_first(isa: str) -> None:
    tensors = [dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((1, 16, 9, 9), (24, 16, 3, 3), (1, 24, 9, 9))]
    auto = dnn.Algorithm.convolution_auto
    desc = dnn.ConvolutionForward(*tensors, padding_l=(1, 1), padding_r=(1, 1), algorithm=auto)
    engine = dnn.Engine(isa=isa, threads=1, machine="zen3")
    plans = list(rank.every_plan(desc, dnn.Attr(), engine))
    names = [name for name, _ in plans]
    assert len(set(names)) == len(plans) > 10
    assert any(name.startswith("direct") for name in names)
    assert {m for m in ("F(2x2", "F(4x4") if any(m in name for name in names)} == {"F(2x2", "F(4x4"}
    chosen = dnn.primitive_desc(desc, engine=engine).plan
    assert rank.identity(plans[0][1]) == rank.identity(chosen)
    for _, plan in plans:
        plan.check()


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_candidates_of_deconvolutions(isa: str) -> None:
    """Panels of every width, and what takes few output channels."""
    sizes = ((1, 64, 40, 40), (1, 64, 2, 2), (1, 1, 80, 80))
    src, weights, dst = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in sizes)
    engine = dnn.Engine(isa=isa, threads=1, machine="zen3")
    plans = list(rank.every_plan(dnn.DeconvolutionForward(src, weights, dst, strides=(2, 2)), dnn.Attr(), engine))
    assert plans[0][0] == f"few_outputs:{isa}"  # no reorder, which is an implementation of its own
    panels = {int(name.rpartition(" ")[2]) for name, _ in plans if "panels of" in name}
    lanes = {"avx2": 8, "avx512_core": 16}[isa]
    assert panels == {lanes * vectors for vectors in blocks_of(F32, isa)}
    for _, plan in plans:
        plan.check()


@pytest.mark.parametrize(("rows", "expected"), [(8, {"tiles"}), (4, {"rows", "tiles", "packing_tiles+tiles"})])
def test_candidates_of_products(rows: int, expected: set[str]) -> None:
    """What other numbers of the tuning would choose; of what is small or packed there is one way."""
    k = 8 if rows == 8 else 512
    a, b, c = (dnn.MemoryDesc(dims, dnn.f32, "ab") for dims in ((rows, k), (k, k), (rows, k)))
    engine = dnn.Engine(isa="avx2", threads=1, machine="zen3")
    plans = list(rank.every_plan(dnn.MatMul(a, b, c), dnn.Attr(), engine))
    names = [name.split(":")[0] for name, _ in plans]
    assert len(set(names)) == len(names) and set(names) >= expected
    assert rank.identity(plans[0][1]) == rank.identity(dnn.primitive_desc(dnn.MatMul(a, b, c), engine=engine).plan)
    for _, plan in plans:
        plan.check()


def test_lower_levels_are_candidates() -> None:
    """By their choices; levels of equal vectors are none, and AVX2 has none below."""
    a, b, c = (dnn.MemoryDesc((64, 64), dnn.f32, "any") for _ in range(3))

    def below(isa: str) -> list[str]:
        engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
        return [name for name, plan in rank.plans_below(dnn.MatMul(a, b, c), dnn.Attr(), engine)]

    assert below("avx2") == below("avx2_vnni") == []
    assert below("avx512_core") == below("avx512_core_amx") == ["tiles:avx2"]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", driver_names())
def test_every_driver_ranks_its_example(clock: None, name: str) -> None:
    """In every direction that it has: some plans write a workspace, of which a problem has no data."""
    driver = driver_of(name)
    *options, problem = [word for word in driver.example.split() if not word.startswith(("--peer", "--mode", "--isa"))]
    directions = ("FWD_I", "FWD_D", "BWD_D", "BWD_W", "BWD_DW") if "dir" in driver.options else ()
    for more in ([], *([f"--dir={direction}"] for direction in directions)):
        words = [f"--{name}", *options, *more, "--isa=avx2", "--threads=1", problem]
        case = next(Reader().stream(words, Path.cwd()))
        assert not isinstance(case, Mistake)
        if not case.settings.unbuilt:
            assert rank.rank(case).regret >= 0


def test_nothing_to_rank() -> None:
    assert main(["bench", "--rank", "--conv"]) == 2


@pytest.mark.parametrize("name", driver_names())
def test_every_driver_has_the_lower_level_as_a_candidate(name: str, tmp_path: Path) -> None:
    """Of the example that its help shows."""
    reader = Reader()
    reader.read([f"--{name}"], tmp_path)
    case = next(reader.stream([f"--{name}", *reader.driver.example.split()], tmp_path))
    assert not isinstance(case, Mistake)
    desc, attr, _ = rank.described(case)
    (found,) = rank.plans_below(desc, attr, dnn.Engine(isa="avx512_core", threads=1))
    implementation, plan = found
    assert implementation.endswith(":avx2")
    assert all(spec.name.endswith("__avx2") for spec in plan.specs)
