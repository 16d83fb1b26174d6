"""The rows of the demo's table."""

from dataclasses import replace

import pytest

import asmdnn as dnn
from asmdnn.bench.post_ops import chain
from asmdnn.isa.vectors import f32_level
from tools import resnet_table
from tools.resnet_table import Layer

ENGINE = dnn.Engine(threads=1)
NETWORK = resnet_table.network(ENGINE, "")


@pytest.fixture(scope="module")
def two_layers() -> list[Layer]:
    """The first layer, and the first with a sum; measured for a moment."""
    cases = [replace(case, settings=replace(case.settings, max_ms=1)) for case in (NETWORK[0], NETWORK[4])]
    return list(resnet_table.run(cases, ENGINE))


def test_the_network_is_resnet_50_with_its_post_ops() -> None:
    assert len(NETWORK) == 53
    assert [case.settings.post_ops for case in NETWORK].count(chain("sum+relu")) == 16
    assert [case.settings.post_ops for case in NETWORK].count(chain("relu")) == 33
    assert sum(case.problem.flops for case in NETWORK) == pytest.approx(
        7.6e9, rel=0.03
    )  # 3.8 G multiply-adds, He et al.
    assert {(case.settings.mode, case.settings.has_bias, case.problem.mb) for case in NETWORK} == {("CP", True, 1)}


def test_a_row_says_what_was_planned_and_measured(two_layers: list[Layer]) -> None:
    first, second = two_layers
    assert first.record.ok
    assert second.record.ok
    assert second.record.reference == "numpy"
    words = resnet_table.row(first).split()
    start = ["1", "conv1", "3x224x224", "->", "64x112x112", "7x7/2", "relu"]
    assert words[:9] == [*start, f"direct:{f32_level(ENGINE.isa)}", str(first.size.tiles)]
    assert words[10:] == [f"{first.record.us:.1f}", f"{first.record.gflops:.1f}", words[12], "-"]
    assert resnet_table.row(second).split()[:7] == [
        "2", "res2a_branch2c", "64x56x56", "->", "256x56x56", "1x1", "sum+relu",
    ]  # fmt: skip
    assert len(resnet_table.row(first)) == len(resnet_table.row(second)) == len(resnet_table.header())


def test_sizes_are_the_plans(two_layers: list[Layer]) -> None:
    for layer in two_layers:
        assert 1 <= layer.size.kernels <= layer.size.tiles
        assert layer.size == resnet_table.plan_size(layer.case, dnn.Engine(isa=ENGINE.isa, threads=1))


def test_the_summary_has_geometric_means_and_the_sum(two_layers: list[Layer]) -> None:
    records = [
        replace(layer.record, us=us, gflops=gflops, peer_us=peer_us, speedup=peer_us / us)
        for layer, us, gflops, peer_us in zip(two_layers, (1000.0, 3000.0), (40.0, 90.0), (2000.0, 1500.0), strict=True)
    ]
    layers = [replace(layer, record=record) for layer, record in zip(two_layers, records, strict=True)]
    text = resnet_table.summary(layers, ENGINE, "")
    assert "2 of 2 layers are right" in text
    assert "60.0 GFLOP/s" in text
    assert "speedup over oneDNN 1.000 (least 0.50)" in text
    assert "4.00 ms" in text
    assert "oneDNN 3.50 ms" in text


def test_without_the_peer_the_summary_says_why(two_layers: list[Layer]) -> None:
    assert "no speedup: it is not installed" in resnet_table.summary(two_layers, ENGINE, "it is not installed")


def test_a_failed_layer_shows_its_reason_and_how_to_repeat_it(two_layers: list[Layer]) -> None:
    failed = replace(two_layers[0], record=replace(two_layers[0].record, ok=False, status="failed", reason="too warm"))
    text = resnet_table.row(failed)
    assert "failed: too warm" in text
    assert "asmdnn bench --conv" in text
    assert "1 of 2 layers are right" in resnet_table.summary([failed, two_layers[1]], ENGINE, "")
