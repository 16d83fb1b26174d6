"""The specs of LRN's gradient of pixels: tails, blocks, windows, several pixels at a time, types, powers."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.lrn_channels import F32_KINDS, LrnChannelsSpec


def pixels(isa: str) -> Iterator[LrnChannelsSpec]:
    lanes = LANES[isa]

    def spec(channels: int, pixels: int, blocks: int = 1, beta: float = 0.75, **more: Any) -> LrnChannelsSpec:
        shape = {"pixels": pixels, "blocks": blocks, "block": channels, "pixel_step": channels + 1, "isa": isa}
        fields = {"block_step": 7 * (channels + 1) * (blocks > 1), "window": (-2, 3), "factor": 0.25, "beta": beta}
        return LrnChannelsSpec(**{**shape, **fields, **more})

    yield spec(3, 19)
    yield spec(lanes, 3, blocks=3)
    yield spec(2 * lanes, 2, blocks=2, window=(-3, 1))
    yield spec(5 * lanes + 3, 5, window=(-lanes - 1, lanes + 2))
    yield spec(lanes + 1, 2, beta=0.5)
    yield spec(lanes + 2, 2, beta=0.6, window=(0, 1))
    for kind in ("bf16", "f16"):
        yield spec(2 * lanes + 3, 3, kinds=(kind, kind, kind, "f32"))
    yield spec(lanes, 3, blocks=2, kinds=("f32", "bf16", "f32", "f32"))


def narrow(isa: str) -> Iterator[LrnChannelsSpec]:
    return (spec for spec in pixels(isa) if spec.kinds != F32_KINDS)


FAMILIES = {**of_levels("lrn", channels=pixels), "lrn-rounded": rounded(narrow)}
