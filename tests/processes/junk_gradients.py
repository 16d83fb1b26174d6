"""Valid calls of gradients of array functions, in which junk is put in the place of every argument."""

from typing import Any

import numpy as np

import asmdnn as dnn
from tests.processes.junk import ENGINE, Call, array

ROWS = np.array([0, 1])


def called() -> dict[str, Call]:
    return {**of_maps(), **of_moves(), **of_places()}


def entry(name: str, **arguments: Any) -> tuple[str, Call]:
    return f"ops.{name}_gradient", (getattr(dnn.ops, f"{name}_gradient"), lambda: {**arguments, "engine": ENGINE})


def of_maps() -> dict[str, Call]:
    rows, images, three = array(2, 3), array(2, 3, 4), array(3)
    window = {"dy": rows, "x": rows}
    return dict((
        entry("eltwise", **window, alg="elu", alpha=0.5, beta=0.0, out=array(2, 3)),
        entry("prelu", **window, weights=three),
        entry("binary", alg="div", dy=rows, a=rows, b=three),
        entry("select", dy=rows, condition=rows > 0, a=rows, b=three),
        entry("batch_norm", dy=images, x=images, scale=three, mean=three, variance=three, epsilon=1e-5),
        entry("reduce", dy=array(2, 1), x=rows, alg="norm_lp_sum", axis=1, keepdims=True, p=3.0, eps=0.5),
        entry("cumsum", dy=rows, axis=1, exclusive=True, reverse=True, out=array(2, 3)),
        entry("weighted_sum", dy=rows, scales=[2.0, 0.5]),
        entry("dropout", dy=rows, mask=np.ones((2, 3), np.uint8), probability=0.25, out=array(2, 3)),
        entry("inner_product_input", dy=rows, w=array(3, 5), out=array(2, 5)),
        entry("inner_product_weight", x=array(2, 5), dy=rows),
        entry("matmul", dy=rows, a=array(2, 4), b=array(4, 3)),
    ))  # fmt: skip


def of_moves() -> dict[str, Call]:
    rows = array(2, 3)
    return dict((
        entry("concat", dy=rows, sizes=[1, 2], axis=1),
        entry("split", dys=[rows, rows], axis=1, out=array(2, 6)),
        entry("slice", dy=rows, image=(4, 4), starts=(0, 1), stops=(4, 4), steps=(2, 1)),
        entry("pad", dy=array(4, 6), widths=((1, 1), (0, 2)), mode="edge"),
        entry("expand", dy=rows, image=(1, 3)),
        entry("adaptive_avg_pool", dy=array(1, 2, 3, 3), image=(1, 2, 5, 7)),
        entry("adaptive_max_pool", dy=array(1, 2, 2, 1), indices=np.ones((1, 2, 2, 1), int), image=(1, 2, 5, 7)),
    ))  # fmt: skip


def of_places() -> dict[str, Call]:
    rows = array(2, 3)
    return dict((
        entry("gather", dy=rows, indices=ROWS, image=(4, 3), axis=0, out=array(4, 3)),
        entry("embedding", dy=rows, indices=ROWS, rows=4, out=array(4, 3)),
        entry("scatter", dy=rows, indices=ROWS, axis=0, reduction="add"),
        entry("topk", dy=rows, indices=np.zeros((2, 3), int), image=(2, 5), axis=1),
    ))  # fmt: skip
