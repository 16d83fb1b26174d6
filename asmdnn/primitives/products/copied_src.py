"""src whose rows share the sets of L1: the tiles of the first columns copy it as they multiply, others read the copy.

A phase that copies it before would take 2 to 4% of the time of 256 rows times 1024x1024 to 3072x768.
"""

from asmdnn.generators.dot.matmul import UNROLL
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.products.blocks import choose_block, src_needs_pack
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.primitives.products.prepare import elements_of, near_matrix, with_near_src
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.schedule import schedule
from asmdnn.primitives.products.target import Target
from asmdnn.records import replace


def copies_src(p: Product, target: Target) -> bool:
    """Whether tiles can make the copy of src that a product needs."""
    whole = p.k % UNROLL == 0 and not p.missing and p.src.is_dense
    several = choose_block(p, target).vectors * target.lanes < p.n
    return src_needs_pack(p, target.products) and whole and several and not p.batch and not target.tiled


def add_tiles(assembly: Assembly, p: Product, target: Target) -> None:
    """Tiles read the weights in place, and copy src where that pays."""
    if copies_src(p, target):
        add_copying_tiles(assembly, p, target)
    else:
        assembly.add(schedule(with_near_src(assembly, p), target), "tiles")


def add_copying_tiles(assembly: Assembly, p: Product, target: Target) -> Matrix:
    """Add the phases of a product whose tiles copy src; the copy."""
    _, copy, _ = near_matrix(assembly, p, elements_of(p.src), p.depth, "src")
    copy = copy.in_groups(p.src.group)
    width = choose_block(p, target).vectors * target.lanes
    assembly.add(schedule(replace(p.columns(0, width), packed=copy), target), "copying_tiles")
    rest = replace(p.columns(min(width, p.n), p.n), src=copy)  # none where a group of columns is a panel
    assembly.add(schedule(rest, target) if rest.n else (), "tiles")
    return copy
