"""C programs, built by gcc from dumped objects and headers, get the numbers that loops in C get."""

from pathlib import Path

import pytest

from asmdnn.corpus.conv import RELU, SUM, blocked
from asmdnn.dump.files import FORMATS, write_kernel
from asmdnn.dump.kernel import listed
from asmdnn.generators.contract import Spec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.transpose import TransposeSpec
from tests.dump.tools import need, output

pytestmark = pytest.mark.isa("avx2")

# Every value is a small integer, so that nothing is rounded and the two must be equal.
CONV = r"""
#include <stdio.h>
#include "KERNEL.h"
enum { pixels = 3, channels = 2, outputs = 16, src_pixel = 8, row = 16, dst_pixel = 8, dst_vector = 320 };
static float src[64], weights[2 * channels * row], bias[outputs], dst[2 * dst_vector], expected[2 * dst_vector];
int main(void) {
    const int64_t taps[] = {2, 0, 0, 4 * 16, 4 * channels * row};  /* a count, then byte offsets of src and weights */
    int wrong = 0;
    for (int i = 0; i < 64; i++) src[i] = (float)(i % 7 - 3);
    for (int i = 0; i < 2 * channels * row; i++) weights[i] = (float)(i % 5 - 2);
    for (int i = 0; i < outputs; i++) bias[i] = (float)(i - 8);
    for (int i = 0; i < 2 * dst_vector; i++) dst[i] = expected[i] = (float)(i % 11 - 5);
    for (int p = 0; p < pixels; p++)
        for (int o = 0; o < outputs; o++) {
            float *x = &expected[p * dst_pixel + o / 8 * dst_vector + o % 8], sum = bias[o];
            for (int t = 0; t < 2; t++)
                for (int c = 0; c < channels; c++)
                    sum += src[16 * t + src_pixel * p + c] * weights[(channels * t + c) * row + o];
            sum += *x;
            *x = sum > 0 ? sum : 0;
        }
    struct KERNEL_frame frame = {.src = src, .weights = weights, .bias = bias, .dst = dst, .taps = taps};
    KERNEL(&frame);
    for (int i = 0; i < 2 * dst_vector; i++) wrong += dst[i] != expected[i];
    printf("%d wrong, dst[1] %g\n", wrong, dst[1]);
    return wrong != 0;
}
"""
MOVE = r"""
#include <cstdio>
#include "KERNEL.h"
static float src[ROWS * SRC_ROW], dst[400], expected[400];
int main() {
    int wrong = 0;
    for (int i = 0; i < ROWS * SRC_ROW; i++) src[i] = float(i + 1);
    for (int i = 0; i < 400; i++) dst[i] = expected[i] = -1;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) expected[PLACE] = src[r * SRC_ROW + c];
    KERNEL_frame frame;
    frame.src = src;
    frame.dst = dst;
    KERNEL(&frame);
    for (int i = 0; i < 400; i++) wrong += dst[i] != expected[i];
    std::printf("%d wrong, dst[1] %g\n", wrong, dst[1]);
    return wrong != 0;
}
"""


def run(spec: Spec, source: str, compiler: str, suffix: str, folder: Path) -> str:
    """Dump, compile with every warning an error, link, and run."""
    need(compiler)
    kernel = listed(spec)
    write_kernel(folder, kernel, list(FORMATS))
    (folder / f"main{suffix}").write_text(source.replace("KERNEL", kernel.symbol))
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
    output(compiler, *warnings, f"main{suffix}", f"{kernel.name}.o", "-o", "main", cwd=folder)
    return output(folder / "main")


def test_conv_tile(tmp_path: Path) -> None:
    spec = blocked("avx2", 3, 2, 2, bias=True, post_ops=(SUM, RELU))
    assert run(spec, CONV, "gcc", ".c", tmp_path).startswith("0 wrong")


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    spec = blocked("avx2", 3, 2, 2, bias=True, post_ops=(SUM,))
    with pytest.raises(AssertionError, match=r"[1-9]\d* wrong"):
        run(spec, CONV, "gcc", ".c", tmp_path)


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        (RowsSpec(isa="avx2", rows=3, row_bytes=4 * 13, src_step=4 * 20, dst_step=4 * 17), "r * 17 + c"),
        (
            TransposeSpec(isa="avx2", unit_bytes=4, rows=5, columns=13, src_row_bytes=4 * 20, dst_row_bytes=4 * 9),
            "c * 9 + r",
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_copy_and_transpose_from_c_plus_plus(spec: RowsSpec | TransposeSpec, place: str, tmp_path: Path) -> None:
    source = MOVE.replace("PLACE", place).replace("SRC_ROW", "20").replace("ROWS", str(spec.rows))
    assert run(spec, source.replace("COLUMNS", "13"), "g++", ".cc", tmp_path).startswith("0 wrong, dst[1] ")
