"""ATen's resizing, and images that are read at places that are data."""

from typing import Any, Final

import numpy as np

from asmdnn.aten.values import Rewriter, Traced, rule

RESIZINGS: Final = (
    "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec", "_upsample_nearest_exact1d.vec",
    "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec", "upsample_linear1d.vec",
    "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec",
)  # fmt: skip


@rule(*RESIZINGS)
def _upsample(c: Rewriter, x: Traced, size: Any, *rest: Any) -> Any:
    """Half pixels but for the older nearest ones, as torch has them without aligned corners."""
    is_nearest, is_cubic = "nearest" in c.name, "bicubic" in c.name
    aligned = not is_nearest and bool(rest and rest[0])
    is_old = is_nearest and "exact" not in c.name
    given = rest if is_nearest else rest[1:]
    scales = next((part for part in given if part is not None), None)
    options: dict[str, Any] = {"mode": "nearest" if is_nearest else "cubic" if is_cubic else "linear"}
    if is_nearest:
        options["nearest_mode"] = "floor" if is_old else "round_prefer_ceil"
    options["coordinate_transformation_mode"] = "align_corners" if aligned else "asymmetric" if is_old else "half_pixel"
    if scales is not None and not aligned:
        factors = np.array([1, 1, *scales], np.float32)
        return c.apply("Resize", x, None, factors, **options)
    return c.apply("Resize", x, None, None, np.array(c.shape, np.int64), **options)


SAMPLING = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")  # ATen's numbers of modes and paddings


@rule("grid_sampler.default", "grid_sampler_2d.default", "grid_sampler_3d.default")
def _grid_sampler(c: Rewriter, x: Traced, grid: Traced, mode: int, padding: int, align: bool) -> Any:
    modes, paddings = SAMPLING
    options: dict[str, Any] = {"mode": modes[mode], "padding_mode": paddings[padding], "align_corners": int(align)}
    return c.apply("GridSample", x, grid, **options)
