"""What the docstrings of this project say of parameters: `x: (n, c, h, w); w, b: the weights and the bias.`

A marker is one or more names of parameters, each perhaps with an aside in brackets, and a colon; it stands where a
sentence or a part of one begins.  Its text ends at the next marker or with its sentence.
"""

import re
from collections.abc import Iterable

from tools.site.parameters import ANYWHERE, MEANINGS

NAME = r"`?\w+`?(?: \([^()]*\))?"
MARKER = re.compile(rf"(?:^|(?<=[.;:)] )|(?<=\.  ))({NAME}(?:(?:, and |, | and ){NAME})*): ")


def said(text: str, names: Iterable[str]) -> dict[str, str]:
    """What a docstring says of each of these parameters, where it says something."""
    known, meanings = set(names), dict[str, str]()
    for paragraph in text.split("\n\n"):
        line = " ".join(part.strip() for part in paragraph.split("\n"))
        markers = [match for match in MARKER.finditer(line) if parameters_of(match[1]) <= known]
        ends = [match.start() for match in markers[1:]] + [len(line)]
        for match, end in zip(markers, ends, strict=False):  # without a marker there is one end
            for name in parameters_of(match[1]):
                meanings.setdefault(name, first_sentence(line[match.end() : end]))
    return meanings


def parameters_of(marker: str) -> set[str]:
    return set(re.findall(r"\w+", re.sub(r"\([^()]*\)", "", marker).replace(" and ", ", ")))


def first_sentence(text: str) -> str:
    """Up to a full stop before a capital or the end."""
    match = re.search(r"\.(?= +[A-Z`]|\s*$)", text)
    return (text[: match.start()] if match else text).strip().rstrip(";,")


def meaning_of(name: str, path: str) -> str:
    """Of a parameter of what has this path, such as asmdnn.ops.conv.conv2d; empty if no table has it."""
    for folder, table in MEANINGS.items():
        if path.startswith(folder) and name in table:
            return table[name]
    return ANYWHERE.get(name, "")
