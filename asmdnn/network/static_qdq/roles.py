"""Which nodes of a body compute with bytes, and which values they are stored in.

Products with constant weights read bytes; so do sums, products of two tensors, means, joins and resizings that have
bytes before them and a reader of bytes after, and what moves elements.  Functions of one value belong to the kernel
that makes it: bytes are what is after them (conv, hardswish, bytes).  All else computes in f32.
"""

from collections.abc import Collection, Iterator

import numpy as np

from asmdnn.network.fusion.expressions import EXPRESSIONS, LOGIC
from asmdnn.network.graph import NOTHING, Body, Node, captured
from asmdnn.network.quantized.weights import PRODUCTS, is_move

JOINS = {"Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool", "Resize"}  # with numbers of their own
OF_ONE = {"AveragePool", "GlobalAveragePool", "Resize"}  # whose other inputs are no tensors
MAPS = EXPRESSIONS.keys() - LOGIC.keys()
SEVERAL = 2  # tensors, for a sum or a product to be of bytes


class Roles:
    """products: the nodes that multiply bytes; carriers: other nodes that read and make bytes; stored: the values that
    are bytes, in order; made: those whose maker makes them so; ends: by node result, the value that it stores."""

    def __init__(self, body: Body, kept: Collection[str]) -> None:
        self.body, self.kept = body, {*kept}
        self.readers: dict[str, list[Node]] = {}
        for node in body.nodes:
            for name in {*node.inputs, *captured(node)} - {NOTHING}:
                self.readers.setdefault(name, []).append(node)
        self.given = {*body.outputs}
        self.products = {id(node) for node in body.nodes if self.is_product(node)}
        self.ends = {name: self.end_of(name) for node in body.nodes for name in node.outputs if name != NOTHING}
        self.carriers = {id(node) for node in body.nodes if self.is_carrier(node)}
        wanted = self.wanted()
        self.carriers = self.with_bytes_before(wanted)
        wanted = self.wanted()
        self.made = {self.stored_end(node, name) for node, name in self.makers()} & wanted
        order = [*body.inputs, *(name for node in body.nodes for name in node.outputs)]
        self.stored = tuple(name for name in order if name in wanted)

    def is_product(self, node: Node) -> bool:
        """Whether bytes can stand for its operand and for its weights, which are constants."""
        if node.domain or node.op not in PRODUCTS or {node.name, *node.outputs} & self.kept or node.get("transA", 0):
            return False
        x, source = node.inputs[:2]
        weights = self.body.constants.get(source)
        is_plain = weights is not None and weights.dtype == np.float32 and weights.size and np.isfinite(weights).all()
        if weights is None or not is_plain or x in self.body.constants:
            return False
        return weights.ndim == len("kn") or node.op == "Conv"

    def is_carrier(self, node: Node) -> bool:
        if node.domain or {node.name, *node.outputs} & self.kept or id(node) in self.products:
            return False
        if node.op in ("Add", "Mul"):
            return len({*self.operands(node)}) == SEVERAL
        if node.op == "Concat":
            return not any(name in self.body.constants for name in node.inputs)
        return node.op in JOINS or (is_move(node) and len([name for name in node.outputs if name]) > 0)

    def operands(self, node: Node) -> list[str]:
        """What it reads as bytes."""
        first = is_move(node) or node.op in OF_ONE or id(node) in self.products
        names = node.inputs[:1] if first else node.inputs
        return [name for name in names if name != NOTHING and name not in self.body.constants]

    def end_of(self, name: str) -> str:
        """The last value that is a function of this one alone, and through which all that reads this one goes."""
        inside, open_reads, end = {name}, len(self.readers.get(name, ())), name
        if name in self.given:
            return name
        for node in self.following(name):
            tensors = {one for one in node.inputs if one != NOTHING and one not in self.body.constants}
            if node.domain or node.op not in MAPS or len(node.outputs) != 1 or not tensors <= inside:
                continue
            result = node.outputs[0]
            inside.add(result)
            open_reads += len(self.readers.get(result, ())) - len(tensors)
            if open_reads == len(self.readers.get(result, ())):
                end = result
            if result in self.given:
                break
        return end

    def following(self, name: str) -> Iterator[Node]:
        """Readers of a value, readers of their results and so on, as far as they are maps, in order."""
        reached, ids = {name}, dict[int, Node]()
        waiting = [name]
        while waiting:
            for node in self.readers.get(waiting.pop(), ()):
                if node.op in MAPS and id(node) not in ids:
                    ids[id(node)] = node
                    waiting += [one for one in node.outputs if one not in reached]
                    reached.update(node.outputs)
        yield from (node for node in self.body.nodes if id(node) in ids)

    def stored_end(self, node: Node, name: str) -> str:
        """What stands for a result in memory: of a move itself, of others the end of what follows."""
        return name if is_move(node) else self.ends[name]

    def makers(self) -> Iterator[tuple[Node, str]]:
        for node in self.body.nodes:
            if id(node) in self.products or id(node) in self.carriers:
                yield from ((node, name) for name in node.outputs if name != NOTHING)

    def wanted(self) -> set[str]:
        """The values that are read as bytes."""
        found = set[str]()
        for node in reversed(self.body.nodes):
            if id(node) in self.products or (
                id(node) in self.carriers and any(self.stored_end(node, one) in found for one in node.outputs if one)
            ):
                found.update(self.operands(node))
        return found

    def with_bytes_before(self, wanted: Collection[str]) -> set[int]:
        """The carriers that read what is made as bytes, and whose results are wanted."""
        made, taken = set[str](), set[int]()
        for node in self.body.nodes:
            is_taken = id(node) in self.products
            if id(node) in self.carriers and made & {*self.operands(node)}:
                is_taken = any(self.stored_end(node, one) in wanted for one in node.outputs if one)
                taken |= {id(node)} if is_taken else set()
            if is_taken:
                made |= {self.stored_end(node, one) for one in node.outputs if one} & {*wanted}
        return taken
