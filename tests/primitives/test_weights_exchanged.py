"""Gradients of weights by vectors of input channels: definition, threads, positions that go backwards."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.types import IsaName
from tests.primitives import conv_gradients as reference
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, problem_of
from tests.primitives.gradient_case import check, proved, run
from tests.primitives.test_conv_backward_weights import check_adjoint, gradient

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
exchanged         mb2ic64ih12oc5kh1                    nhwc   nhwc any
exchanged         mb2ic32ih12oc4kh3ph1                 any    any  any
exchanged         mb2ic48ih13iw11oc3kh5kw3             nhwc   nchw any
exchanged         mb2ic32ih17oc2kh3ph2dh1              nhwc   nhwc oihw
exchanged         mb1ic32iw40oc4kw3pw1                 any    any  any
exchanged         mb1ic16id5ih6iw7oc3kd2kh3kw3pd1ph0pw1 any   any  any
exchanged         mb2ic64ih9oc20kh3ph1                 nhwc   nhwc any
exchanged         mb3ic32ih5iw9oc3kh3kw7ph0pw6         any    any  any
reorder+exchanged mb2ic64ih13oc4kh1sh2                 nhwc   nhwc any
reorder+exchanged mb2ic20ih13oc4kh3ph1                 nhwc   nhwc any
reorder+exchanged mb2ic32ih12oc4kh3ph1                 any    any  Ohwi8o
exchanged         deconv:mb2ic3ih9oc32kh3ph1           any    nhwc any
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
ALL = pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)


@ALL
def test_results(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    pd = check(*gradient(text, src, dst, weights), isa)
    assert pd.implementation == f"{name}:{isa}"
    assert [*pd.plan.tensors] == ["src", "diff_weights", "diff_dst", "diff_bias"]


@ALL
def test_adjoint(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    check_adjoint(isa, text, src, dst, weights)


def test_real_numbers(isa: str) -> None:
    p = problem_of("mb2ic32ih12oc3kh3ph1")
    random = np.random.default_rng(5)
    x, dy = (random.standard_normal(dims).astype(np.float32) for dims in (p.src_dims, p.dst_dims))
    bound = 2 * p.mb * 144 * 2.0**-24 * reference.of_weights(p, abs(x), abs(dy))
    wanted = {"diff_weights": reference.of_weights(p, x, dy)}
    desc = described(dnn.ConvolutionBackwardWeights, p, {})
    pd = check(desc, {"src": x, "diff_dst": dy}, wanted, isa, {"diff_weights": bound})
    assert pd.implementation == f"exchanged:{isa}"


def test_infinities_reach_only_what_reads_them(isa: str) -> None:
    """The padding is multiplied by nothing."""
    p = problem_of("mb1ic32ih12oc3kh3ph1")
    desc, arrays, _ = gradient("mb1ic32ih12oc3kh3ph1", bias=False)
    arrays["src"] = np.abs(arrays["src"]) + 1
    arrays["diff_dst"][0, 1, 0, 0] = np.inf
    made = run(proved(desc, isa), arrays)["diff_weights"]
    reads = np.zeros(p.weights_dims, bool)
    reads[1, :, 1:, 1:] = True
    assert np.array_equal(np.isinf(made), reads)
    assert not np.isnan(made).any()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mb2ic32ih12oc32kh3ph1", "direct"),  # vectors of output channels are full
        ("mb2ic32ih12oc31kh3ph1", "direct"),  # and nearly so
        ("mb2ic12ih12oc8kh3ph1", "direct"),  # those of input channels are not
        ("mb2ic32ih12oc5kh3sh2ph1", "direct"),
        ("mb2ic32ih12oc20kh3ph1", "exchanged"),
    ],
)
def test_vectors_are_of_what_fills_them(text: str, name: str) -> None:
    isa: IsaName = "avx512_core"
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)
    assert dnn.primitive_desc(gradient(text, bias=False)[0], engine=engine).implementation == f"{name}:{isa}"
