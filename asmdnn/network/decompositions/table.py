"""Which operators are decomposed into others, and when."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from asmdnn.network.decompositions.foreign import DOMAIN, ForeignOperator, check, results_of
from asmdnn.network.decompositions.words import Decomposer, Sentences, are_kernels, are_known, are_numbers, is_f32
from asmdnn.network.graph import ML, NOTHING, Node
from asmdnn.network.operators.evaluation import own_errors
from asmdnn.network.operators.own import OWN

MODULES = (
    "casts", "attention", "norms", "products", "losses", "rows", "indexing", "scatters", "dynamic", "recurrent",
    "choices",
)  # fmt: skip
FOREIGN = ("fused", "transformers", "grouped_query", "integers", "dynamic_products", "few_bits", "integer_transformers")
PREVIEWS = ("preview",)
CLASSICAL = ("trees", "linear_models", "support_vectors", "features", "labels")
COMPOSED = ("sampling", "regions", "signals", "states", "caches", "random_numbers")
OF_ANY_TYPE = {  # which move elements; others are of f32 alone
    "Trilu", "CenterCropPad", "OneHot", "ReverseSequence", "GatherElements", "GatherND", "Compress",
}  # fmt: skip
OF_NUMBERS = {"ScatterElements", "Scatter", "ScatterND"}  # of all that kernels compute with, and of halves
OF_EVERY_TYPE = {"CastLike", "DequantizeLinear", "QuantizeLinear", "EyeLike", "Where"}
EVERYWHERE = {"SimplifiedLayerNormalization"}  # which onnxruntime writes without its domain
OF_ONNX = ("QLinearConv", "QLinearMatMul")  # which onnxruntime shares
PREVIEW = "ai.onnx.preview"
Decompose = Callable[..., tuple[str, ...] | None]  # (words, node, *inputs): the results; None to leave a node as it is


@cache
def decompositions() -> Mapping[str, Decompose]:
    """Of ONNX's own operators, which have definitions in numpy beside: these compute constants and other types."""
    found: dict[str, Decompose] = {}
    for name in MODULES:
        found |= import_module(f"asmdnn.network.decompositions.{name}").DECOMPOSITIONS
    return found


def decomposed(folding: Sentences, node: Node) -> dict[str, str] | None:
    """The values after a node's results, whose nodes are taken in; None for one that stays as it is.

    What an f32 node of one of these operators means is the same.
    """
    decomposition = decompositions().get(node.op) if not node.domain else None
    fits = are_kernels if node.op in OF_ANY_TYPE else is_f32
    fits = are_numbers if node.op in OF_NUMBERS else fits
    fits = are_known if node.op in OF_EVERY_TYPE else fits
    if decomposition is None or not fits(folding, node) or not folding.kept_integers.isdisjoint(node.inputs):
        return None
    results = decomposition(Decomposer(folding, node), node, *node.inputs)
    if results is None:
        return None
    return {name: result for name, result in zip(node.outputs, results, strict=False) if name != NOTHING}


@cache
def foreign_decompositions() -> Mapping[str, ForeignOperator]:
    """Of onnxruntime's operators, which have no definitions beside."""
    return decompositions_in(FOREIGN)


@cache
def composed_decompositions() -> Mapping[str, ForeignOperator]:
    """Of ONNX's own operators that have no definitions beside, as what they are decomposed into has some."""
    return decompositions_in(COMPOSED) | {name: foreign_decompositions()[name] for name in OF_ONNX}


@cache
def preview_decompositions() -> Mapping[str, ForeignOperator]:
    return decompositions_in(PREVIEWS)


@cache
def classical_decompositions() -> Mapping[str, ForeignOperator]:
    """Of classical models."""
    return decompositions_in(CLASSICAL)


@cache
def seeded_decompositions() -> Mapping[str, ForeignOperator]:
    """Of nodes that draw by a seed of the caller's."""
    found: Mapping[str, ForeignOperator] = import_module("asmdnn.network.decompositions.random_numbers").SEEDED
    return found


def decompositions_in(modules: tuple[str, ...]) -> dict[str, ForeignOperator]:
    found: dict[str, ForeignOperator] = {}
    for name in modules:
        found |= import_module(f"asmdnn.network.decompositions.{name}").DECOMPOSITIONS
    return found


def foreign(node: Node) -> ForeignOperator | None:
    """How a node of an operator is decomposed that has no definition; None for others."""
    if not node.domain and node.op not in EVERYWHERE:
        return composed_decompositions().get(node.op)
    if node.domain == OWN:
        return seeded_decompositions().get(node.op)
    if node.domain == PREVIEW:
        return preview_decompositions().get(node.op)
    if node.domain == ML:
        return classical_decompositions().get(node.op)
    return foreign_decompositions().get(node.op) if node.domain in ("", DOMAIN) else None


def decomposed_foreign(folding: Sentences, node: Node, known: ForeignOperator) -> dict[str, str]:
    """The values after a node's results, whose nodes are taken in.

    Raises InvalidArguments for a node that is none of its operator; Unimplemented.
    """
    check(node, known)
    with own_errors(node, [folding.values[name] if name != NOTHING else None for name in node.inputs]):
        return results_of(folding, node, known)
