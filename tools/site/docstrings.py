"""Griffe's docstrings with a section of parameters, as mkdocstrings makes tables of it."""

from typing import Any

import griffe

from tools.site.house import meaning_of, said

SILENT = ("self", "cls")


class HouseDocstrings(griffe.Extension):  # type: ignore[misc,unused-ignore]  # griffe may be missing
    """Adds to each docstring what it, or the tables of parameters.py, say of the parameters."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Of every function and method, when it is read."""
        if func.docstring and not func.name.startswith("_"):
            explain(func, [parameter.name.lstrip("*") for parameter in func.parameters])

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Of classes once all is read: a dataclass takes the fields of those it is made from."""
        for module in modules_of(pkg):
            for found in module.classes.values():
                if found.docstring and not found.is_alias:
                    explain(found, [parameter.name for parameter in found.parameters])


def modules_of(module: griffe.Module) -> list[griffe.Module]:
    below = [found for inner in module.modules.values() if not inner.is_alias for found in modules_of(inner)]
    return [module, *below]


def explain(found: griffe.Function | griffe.Class, names: list[str]) -> None:
    docstring = found.docstring
    assert docstring is not None
    own = said(docstring.value, names)
    texts = {name: own.get(name) or meaning_of(name, found.path) for name in names if name not in SILENT}
    lines = [f"    {name}: {text}." for name, text in texts.items() if text]
    if lines:
        docstring.value = "\n".join([docstring.value.rstrip(), "", "Args:", *lines])
