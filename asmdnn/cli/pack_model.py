"""`asmdnn pack MODEL.onnx`: a network in a file that another process maps and runs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from asmdnn.cli.models import TEXTS, ModelWords, model_words, said_or_one
from asmdnn.cli.outputs import check_output
from asmdnn.cli.progress import Progress
from asmdnn.cli.unknown import unknown, value_of
from asmdnn.errors import InvalidArguments
from asmdnn.network.open import OpenNetwork


def pack_model(arguments: Sequence[str]) -> int:
    """Plan the model, generate its kernels, write the file.  Raises AsmdnnError."""
    path, words = output_of(arguments)
    check_output("-o", path)
    asked = model_words("pack", words)
    fallback = None
    for word in asked.rest:
        name, _, value = word.partition("=")
        if name != "--fallback" or not value:
            raise unknown("pack", word, TEXTS)
        fallback = value
    net = prepared(asked, fallback) if asked.turns else asked.load(fallback)
    net.save(path)
    print(f"{path}: {net!r} for {net.engine.isa}, {Path(path).stat().st_size / 1024:.0f} KiB")
    return 0


def prepared(asked: ModelWords, fallback: str | None) -> OpenNetwork:
    """The network for several shapes, all of them planned; a terminal says how many are.  Raises AsmdnnError."""
    net = asked.open_network("pack", fallback)
    shapes = [said_or_one(net, one.shapes) for one in asked.each()]
    with Progress(len(shapes), sys.stderr) as bar:
        net.prepare(shapes, progress=lambda done, every: bar.update(done, f"plan {shapes[done]}"))
    return net


def output_of(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """What -o or --output says, and the other words.  Raises InvalidArguments."""
    path, words, rest = "", list[str](), iter(arguments)
    for word in rest:
        if word.partition("=")[0] in ("-o", "--output"):
            path = value_of("pack", word, rest, "-o model.pack")
        else:
            words.append(word)
    if not path:
        raise InvalidArguments("pack: name the file to write, as in -o model.pack")
    return path, words
