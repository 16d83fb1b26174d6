"""Matrix products, as kinds of primitives: matmul and gemm."""

from collections.abc import Iterator

from asmdnn.forking import importing
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import INTEGERS
from asmdnn.primitives.attributes.words import mask_of
from asmdnn.primitives.core.any_batch import of_f32, of_products
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.core.ways import listed
from asmdnn.primitives.core.widening import widened
from asmdnn.primitives.products import gemm, matmul_tiles
from asmdnn.primitives.products.gemm import Gemm
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.plan import candidates_of, thrice
from asmdnn.primitives.reorder.fpmath import float8, rounded

BETAS = {"zero": "0", "one": "1", "any": "any"}


def matmul_words(desc: MatMul) -> Words:
    mask = None if desc.bias is None else mask_of(desc.bias)
    return Words("matmul", "", f"{dims_word(desc.src)}:{dims_word(desc.weights)}", bias_mask=mask)


def gemm_words(desc: Gemm) -> Words:
    scales = f"alpha:{'1' if desc.unit_alpha else 'any'} beta:{BETAS[desc.beta]}"
    return Words("gemm", scales, f"{dims_word(desc.a)}:{dims_word(desc.b)}")


def weight_only(desc: MatMul, attr: Attr, engine: Engine) -> Answer:
    """Of weights of few bits, which become floats: the last in the list, so that other products never import it."""
    with importing():
        from asmdnn.primitives.products.weight_only import plan
        from asmdnn.primitives.products.weight_only_bytes import plan as plan_of_bytes

    return plan_of_bytes(desc, attr, engine) if desc.src.dtype in INTEGERS else plan(desc, attr, engine)


def of_numbers(desc: MatMul, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """Of numbers whose scales and zero points no other way takes; imported as rarely."""
    if desc.weights.dtype in INTEGERS or desc.weights.dtype.in_a_byte > 1 or attr.groups:
        with importing():
            from asmdnn.primitives.products.dequantized import plans

        yield from plans(desc, attr, engine)


MATMUL = (
    float8,
    widened(packs_blocks=True),
    thrice(depths=(-1, -2)),
    rounded(weights_alone=True),
    matmul_tiles.plan,
)
KINDS = (
    Kind(
        MatMul, (*listed(MATMUL), weight_only, of_numbers), matmul_words, candidates=candidates_of(matmul_tiles.plan),
        letters=MatMul.letters, summed=("weights",), transformed=("weights",), packed=("weights",), rounds=True,
        any_batch_refusal=of_products,
    ),
    Kind(Gemm, (gemm.plan,), gemm_words, candidates=candidates_of(gemm.plan), any_batch_refusal=of_f32("a", "b")),
)  # fmt: skip
