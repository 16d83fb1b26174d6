"""Texts at a network's border: it computes places in lists of words, and what a caller gets are the words.

Labels that are texts, and ZipMap's list of dicts, come from the end of a model: classifiers, label encoders, choices of
words by an index.  Moves between them and an output move places instead.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.graph import NOTHING, Body, Model, Node
from asmdnn.network.words import Border
from asmdnn.records import replace

ML = "ai.onnx.ml"
STRING = 8  # ONNX's number of the type
MOVES = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice"}
Words = tuple[str, ...]


def with_border(model: Model) -> Model:
    """The model with numbers in the place of texts.  Raises InvalidArguments, Unimplemented."""
    texts = any(array.dtype == object for array in model.body.constants.values())
    if not texts and not any(node.domain == ML for node in model.body.nodes):
        return model
    places = TextPlaces(model.body)
    for node in model.body.nodes:
        places.add(node)
    given = next((name for name in model.body.outputs if name in places.texts), "")
    if given:
        raise Unimplemented(f"output {shown(given)} has elements of type string, only labels may be texts")
    return replace(model, body=places.body(), borders=places.borders())


class TextPlaces:
    """words: what stands at places of a value; keys: of a value's columns; nodes and constants as they become."""

    def __init__(self, body: Body) -> None:
        self.source = body
        self.constants = {name: array for name, array in body.constants.items() if array.dtype != object}
        self.texts = {name: array for name, array in body.constants.items() if array.dtype == object}
        self.words: dict[str, Words] = {}
        self.keys: dict[str, tuple[int | str, ...]] = {}
        self.nodes: list[Node] = []

    def body(self) -> Body:
        source = self.source
        return Body(source.name, source.inputs, source.outputs, tuple(self.nodes), self.constants)

    def borders(self) -> dict[str, Border]:
        """By output."""
        kinds: tuple[tuple[str, Mapping[str, Any]], ...] = (("texts", self.words), ("maps", self.keys))
        return {x: Border(kind, known[x]) for kind, known in kinds for x in self.source.outputs if x in known}

    def add(self, node: Node) -> None:
        first = node.inputs[0] if node.inputs else NOTHING
        if node.domain == ML and node.op == "ZipMap":
            self.add_map(node)
        elif node.domain == ML and node.op.endswith("Classifier"):
            self.add_classifier(node)
        elif node.domain == ML and node.op == "LabelEncoder":
            self.add_encoder(node)
        elif node.domain == ML and node.op == "ArrayFeatureExtractor" and first in self.texts:
            words = tuple(map(str, self.texts[first].ravel().tolist()))
            self.constants[f"places in {first}"] = np.arange(len(words))
            self.put(replace(node, inputs=(f"places in {first}", *node.inputs[1:])), words)
        elif node.op == "Cast" and node.get("to") == STRING and first in self.words:
            self.put(replace(node, op="Identity", attributes={}), self.words[first])
        elif node.op in MOVES and not node.domain and first in self.words:
            self.put(node, self.words[first])
        else:
            self.check(node, node.inputs)
            self.nodes.append(node)

    def put(self, node: Node, words: Words) -> None:
        self.check(node, node.inputs[1:])
        self.nodes.append(node)
        self.words[node.outputs[0]] = words

    def check(self, node: Node, inputs: Iterable[str]) -> None:
        """Raise Unimplemented for a node that would compute with texts."""
        for name in inputs:
            if name in self.words or name in self.texts or name in self.keys:
                what = f"{node} reads {shown(name)}, which has elements of type string or dicts"
                raise Unimplemented(f"{what}: only outputs may be such")

    def add_map(self, node: Node) -> None:
        """Columns that go by their labels."""
        keys = node.get("classlabels_int64s", ()) or node.get("classlabels_strings", ())
        if not keys:
            raise InvalidArguments(f"{node} has no classlabels: it must have integers or texts")
        self.check(node, node.inputs)
        known = Node("Identity", node.inputs, node.outputs, {}, name=node.name, opset=node.opset or 1)
        self.nodes.append(known)
        self.keys[node.outputs[0]] = tuple(keys)

    def add_classifier(self, node: Node) -> None:
        words = node.get("classlabels_strings", ())
        self.check(node, node.inputs)
        if not words:
            self.nodes.append(node)
            return
        kept = {name: value for name, value in node.attributes.items() if not name.startswith("classlabels")}
        own = "classlabels_int64s" if node.op.startswith("Tree") else "classlabels_ints"
        self.nodes.append(replace(node, attributes={**kept, own: tuple(range(len(words)))}))
        if node.outputs and node.outputs[0] != NOTHING:
            self.words[node.outputs[0]] = tuple(words)

    def add_encoder(self, node: Node) -> None:
        """Of texts places are the keys, and what they lead to is looked up now; texts that it makes are places."""
        (first, *_), attributes = node.inputs, dict(node.attributes)
        values = attributes.pop("values_strings", ())
        words = tuple(dict.fromkeys((*values, node.get("default_string", "_Unused")))) if values else ()
        if values:
            attributes |= {"values_int64s": tuple(map(words.index, values)), "default_int64": words.index(
                node.get("default_string", "_Unused"))}  # fmt: skip
        keys = attributes.pop("keys_strings", ())
        if keys and first in self.words:
            known = {word: i for i, word in reversed([*enumerate(self.words[first])])}
            there = [i for i, key in enumerate(keys) if key in known]
            attributes["keys_int64s"] = tuple(known[keys[i]] for i in there)
            for name in ("values_int64s", "values_floats"):
                if attributes.get(name):
                    attributes[name] = tuple(attributes[name][i] for i in there)
        elif keys:
            attributes["keys_strings"] = keys  # of no text that is known here, which is refused where it is read
        self.nodes.append(replace(node, attributes=attributes))
        if words:
            self.words[node.outputs[0]] = words
