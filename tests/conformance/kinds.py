"""What each kind of primitive brings: kinds/DRIVER.txt, in words of `asmdnn bench`, by sections.

cases: what its code distinguishes, and the edges of each; problems in all layouts, types and forms.  emulated: small
ones by every implementation, for a CPU that is interpreted, and for pages that fault.  empty: without elements, if it
takes such.  implementations: those that the cases reach, without "reorder+" in front, where that is not the driver's
name alone.  no parts: what it says to tensors that are parts of larger ones, if it takes only whole ones.
"""

from pathlib import Path

KINDS = {path.stem: path for path in sorted((Path(__file__).parent / "kinds").glob("*.txt"))}
SECTIONS = ("cases", "emulated", "empty", "implementations", "no parts")


def section(kind: str, name: str) -> str:
    """Its words, or "" if there is none."""
    found, inside = [], False
    for line in KINDS[kind].read_text().splitlines():
        if line in SECTIONS:
            inside = line == name
        elif inside:
            found.append(line)
    return " ".join(found)
