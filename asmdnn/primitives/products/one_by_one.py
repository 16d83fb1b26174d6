"""Batches whose matrices are multiplied one by one: the phases of one matrix are a group of records, which is repeated.

What is packed for a matrix, or summed in parts, is read while it is in L1 or L2, from scratch that each thread has of
its own: on Zen 4 100 products of 8 x 210 times 210 x 178 bytes run 1.3x faster than if all are packed first.  A single
row needs no packing.
"""

from collections.abc import Callable
from math import prod

from asmdnn.planning.assembly import Assembly
from asmdnn.planning.refusal import Refused
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.products.blocks import shares_weights
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.target import Target

WORD = "one_by_one"
Add = Callable[[Assembly, Product, Target], None]


def check_batch(p: Product, target: Target) -> None:
    """Raise Refused unless threads have matrices enough."""
    least = target.products.few_matrices
    if prod(p.batch) < least or shares_weights(p):
        raise Refused(f"it is no batch of {least} or more matrices with weights of their own")


def check_packed(p: Product, target: Target) -> None:
    """Raise Refused unless packed weights stay in L2 for one matrix alone."""
    size, l2_bytes = p.depth * p.n * p.weights.dtype.size_bytes, target.l2_bytes
    most = l2_bytes // target.products.weights_share
    if not size <= most < l2_bytes < prod(p.batch) * size:
        raise Refused(f"weights of {size} bytes a matrix are packed, which pays for at most {most}, beyond L2 in all")


def add_one_by_one(assembly: Assembly, p: Product, target: Target, add: Add) -> None:
    """Add what `add` does for one matrix, again and again."""
    one = Assembly(assembly.tuning, assembly.isa)
    add(one, p.first_matrix, target)
    places = {name: f"{name} of one" for name in one.scratch}
    moves = {x.buffer: x.batch_bytes for x in p.operands().values()}
    own = {places[name]: size for name, size in one.scratch.items()}
    add_each(assembly, steps_of(one.plan(one.name, {}, ()), places), moves, p.batch, own)
    assembly.add((), WORD, *one.words)
    assembly.constants |= one.constants
