"""Kernels that serve every size of an image: how many there are for many sizes, by what their bytes depend on."""

from collections.abc import Iterable

import asmdnn as dnn
from asmdnn.generators.contract import Spec
from asmdnn.generators.dot.few_inputs import FewInputsSpec
from asmdnn.generators.functions.layer_norm import LayerNormSpec
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.jit.digests import code_text
from asmdnn.primitives.core.description import Description

WIDTHS = (160, 192, 221, 256, 320, 333, 400, 480, 501, 640, 808, 960, 1000, 1280)


def tensor(*dims: int, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def kernels_of(descs: Iterable[Description], family: type[Spec], isa: str) -> tuple[int, int]:
    """Of a family, how many do different things, and of how many the bytes are different."""
    plans = [dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1)).plan for desc in descs]
    specs = [[spec for spec in plan.specs if isinstance(spec, family)] for plan in plans]
    assert all(specs), "another implementation was chosen"
    every = {spec for some in specs for spec in some}
    return len(every), len({code_text(spec) for spec in every})


def test_pooling_of_any_width(planned_isa: str) -> None:
    """Means of 3x2 pixels, four at a time and a rest."""
    tag = "aBcd16b" if planned_isa != "avx2" else "aBcd8b"
    descs = [
        dnn.PoolingForward(
            "avg_exclude_padding", tensor(1, 48, 6, w, tag=tag), tensor(1, 48, 2, w // 2, tag=tag), (3, 2), (3, 2)
        )
        for w in WIDTHS
    ]
    different, kernels = kernels_of(descs, PoolPixelsSpec, planned_isa)
    assert different >= len(WIDTHS)
    assert kernels <= 4


def test_means_of_any_plane(planned_isa: str) -> None:
    tag = "aBcd16b" if planned_isa != "avx2" else "aBcd8b"
    descs = [
        dnn.PoolingForward("avg_exclude_padding", tensor(1, 64, 6, w, tag=tag), tensor(1, 64, 1, 1, tag=tag), (6, w))
        for w in WIDTHS
    ]
    different, kernels = kernels_of(descs, PoolPixelsSpec, planned_isa)
    assert different >= len(WIDTHS)
    assert kernels <= 2  # images of few calls are cut by channels


def test_first_layers_of_any_height(planned_isa: str) -> None:
    """Three planes, whose distance is the height's, too."""
    descs = [
        dnn.ConvolutionForward(
            src=tensor(1, 3, h, 64, tag="abcd"),
            weights=tensor(16, 3, 3, 3),
            dst=tensor(1, 16, h, 64),
            padding_l=(1, 1),
            padding_r=(1, 1),
        )
        for h in range(20, 60, 5)
    ]
    different, kernels = kernels_of(descs, FewInputsSpec, planned_isa)
    assert different > 8
    assert kernels == 1


def test_layer_norms_of_any_number_of_rows(planned_isa: str) -> None:
    """Whole records, eights, what is left, and one row alone."""
    inference = dnn.PropKind.forward_inference
    descs = [dnn.LayerNormForward(inference, tensor(n, 120), tensor(n, 120), epsilon=1e-6) for n in range(1, 200, 3)]
    _, kernels = kernels_of(descs, LayerNormSpec, planned_isa)
    assert kernels <= 10
