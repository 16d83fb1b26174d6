"""Products of few steps of depth whose dst no cache holds: streaming stores, wherever dst starts."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.outer import OuterSpec
from asmdnn.planning.tuning import DEFAULT
from tests.primitives.matmul_case import MatmulCase, check, make_data, planned, run
from tests.support.tuning import with_numbers

C = MatmulCase
STREAMED = [
    C((40, 3), (3, 256)),
    C((40, 3), (3, 256), ("col", "any", "off"), "n"),
    C((7, 16), (16, 2064), ("row", "row", "row"), "m"),
    C((3, 40, 2), (3, 2, 288), ("row", "row", "row"), "1"),
]


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dst is too large for them."""

    def engine(case: MatmulCase, isa: str, threads: int = 1) -> dnn.Engine:
        real = large(case, isa, threads)
        return replace(real, tuning=with_numbers(real.tuning, "products", streaming_bytes=1))

    large = MatmulCase.engine
    monkeypatch.setattr(MatmulCase, "engine", engine)


def streams(pd: dnn.PrimitiveDesc) -> bool:
    return all(spec.streaming for spec in pd.plan.specs if isinstance(spec, OuterSpec))


@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_streaming_stores(isa: str, small_caches: None, case: MatmulCase) -> None:
    pd = check(case, isa)
    assert "outer" in pd.implementation and streams(pd)


def test_every_thread_count_gives_the_same_bytes(isa: str, small_caches: None) -> None:
    case = C((700, 5), (5, 512))
    alone = planned(case, isa)
    data = make_data(alone, integers=False)
    wanted = run(dnn.Primitive(alone), data).tobytes()
    pd = dnn.primitive_desc(case.desc(), case.attr(), case.engine(isa, 2))
    assert pd.plan.parts(pd.threads) == 2 and streams(pd)
    assert run(dnn.Primitive(pd), data).tobytes() == wanted


def test_rows_that_are_not_aligned_are_not_streamed(isa: str, small_caches: None) -> None:
    assert not streams(check(C((40, 3), (3, 257)), isa))
    assert not streams(check(C((40, 3), (3, 256), ("row", "row", "gap")), isa))


@pytest.mark.parametrize(("rows", "streamed"), [(1000, False), (4096, True)])
def test_only_a_large_dst_is_streamed(planned_isa: str, rows: int, streamed: bool) -> None:
    pd = planned(C((rows, 1), (1, 2048)), planned_isa)
    assert streams(pd) == streamed
    written = np.dtype(np.float32).itemsize * rows * 2048
    assert (written > DEFAULT.products.streaming_bytes) == streamed


def test_deep_products_are_tiles(planned_isa: str) -> None:
    assert "outer" not in planned(C((40, 9), (9, 256)), planned_isa).implementation


def test_small_matrices_of_a_batch_share_calls(planned_isa: str) -> None:
    assert "outer" not in planned(C((50, 2, 4), (50, 4, 130)), planned_isa).implementation
