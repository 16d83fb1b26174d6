"""`asmdnn pack MODEL.onnx`: a network in a file that another process maps and runs."""

from collections.abc import Sequence
from pathlib import Path

from asmdnn.cli.models import TEXTS, model_words
from asmdnn.cli.outputs import check_output
from asmdnn.cli.unknown import unknown, value_of
from asmdnn.errors import InvalidArguments


def pack_model(arguments: Sequence[str]) -> int:
    """Plan the model, generate its kernels, write the file.  Raises AsmdnnError."""
    path, words = output_of(arguments)
    check_output("-o", path)
    asked = model_words("pack", words)
    if asked.rest:
        raise unknown("pack", asked.rest[0], TEXTS)
    net = asked.load()
    net.save(path)
    print(f"{path}: {net!r} for {net.engine.isa}, {Path(path).stat().st_size / 1024:.0f} KiB")
    return 0


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
