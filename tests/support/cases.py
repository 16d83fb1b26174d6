"""Words of `asmdnn bench` as its cases."""

from pathlib import Path

from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader


def read(words: str) -> list[AnyCase]:
    """Raises InvalidArguments for the first mistake."""
    reader = Reader()
    reader.read(words.split(), Path())
    return reader.cases
