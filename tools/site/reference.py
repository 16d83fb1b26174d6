"""The pages of the API reference: every public name once, on the page of its folder."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Final

from asmdnn.cli.main import COMMANDS

# What a caller writes in front of a module's names.
MODULES: Final = {
    "asmdnn.api": "dnn.",
    "asmdnn.ops": "dnn.ops.",
    "asmdnn.optim": "dnn.optim.",
    "asmdnn.losses": "dnn.losses.",
    "asmdnn.asm": "asm.",
}
# A name stands on the page of the first of these beginnings that the path of its module has.
PAGES: Final = {
    "ops": (
        "Operations on arrays",
        "Called as `dnn.ops.NAME`. Arrays of numpy, torch or jax give the same kind back.",
        ("asmdnn.ops",),
    ),
    "networks": (
        "Networks",
        "Graphs, files and modules of torch as one native call.",
        ("asmdnn.network", "asmdnn.aten", "asmdnn.optim", "asmdnn.losses", "asmdnn.export"),
    ),
    "attributes": (
        "Attributes and post-ops",
        "What is added to a primitive: functions after it, scales, zero points.",
        ("asmdnn.primitives.attributes",),
    ),
    "gemm": ("Matrix products as in BLAS", "Plain and packed.", ("asmdnn.blas",)),
    "core": (
        "Engines, memory, descriptors",
        "What all primitives have in common, types and errors.",
        ("asmdnn.primitives.core", "asmdnn.primitives.shapes", "asmdnn.memory", "asmdnn.types", "asmdnn.errors",
         "asmdnn.planning"),
    ),
    "primitives": (
        "Descriptions of primitives",
        "What `dnn.primitive_desc` takes. Each page of the shelf *Use* shows them at work.",
        ("asmdnn.primitives",),
    ),
    "asm": ("asmdnn.asm", "Functions in machine code.", ("asmdnn.asm", "asmdnn.isa")),
}  # fmt: skip


def public_names() -> dict[str, list[tuple[str, str]]]:
    """Of each page, the names that a caller writes and where they are defined, in alphabetical order."""
    pages: dict[str, list[tuple[str, str]]] = {page: [] for page in PAGES}
    for written, found in sorted(public_objects(), key=lambda name: name[0].lower()):
        path = f"{found.__module__}.{found.__qualname__}"
        fitting = [page for page, (_, _, folders) in PAGES.items() if path.startswith(folders)]
        if not fitting:
            raise LookupError(f"{written} of {path} has no page: tools/site/reference.py lists the folders")
        pages[fitting[0]].append((written, path))
    return pages


def public_objects() -> Iterator[tuple[str, type]]:
    """Functions and classes, but enumerations, by the names that a caller writes."""
    for module, prefix in MODULES.items():
        found = importlib.import_module(module)
        for name in names_of(found):
            value = getattr(found, name)
            if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, Enum)):
                yield prefix + name, value  # type: ignore[misc]  # both have a module and a qualified name


def names_of(module: ModuleType) -> list[str]:
    modules: dict[str, tuple[str, ...]] = getattr(module, "MODULES", {})
    return [name for names in modules.values() for name in names] or list(module.__all__)


def reference_pages() -> dict[str, str]:
    """Markdown by the path of its page."""
    names, pages = public_names(), {}
    for page, (title, text, _) in PAGES.items():
        blocks = [f"::: {path}\n    options:\n      heading: {written}\n" for written, path in names[page]]
        pages[f"reference/{page}.md"] = "\n".join([f"# {title}\n\n{text}\n", *blocks])
    pages["reference/command-line.md"] = command_line()
    return pages


def command_line() -> str:
    """The help of every command."""
    blocks = ["# The command line\n"]
    for command in COMMANDS:
        words = [sys.executable, "-m", "asmdnn", command, "--help"]
        said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        blocks.append(f"## asmdnn {command}\n\n```text\n{said.stdout.rstrip()}\n```\n")
    return "\n".join(blocks)
