"""The C header of an exported network: a struct of its tensors, and how it is called."""

import re
from collections.abc import Sequence

from asmdnn.errors import InvalidArguments, shown
from asmdnn.export.interface import BITS, ELEMENTS, CTensor

RESERVED = frozenset((
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class",
    "compl", "const", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "else", "enum",
    "explicit", "export", "extern", "false", "final", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "override", "private", "protected",
    "public", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "while", "xor",
))  # fmt: skip  # words of C and C++
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
LONGEST_NAME = 100


def identifier(text: str) -> str:
    """The text as a name of C."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII)[:LONGEST_NAME] or "_"
    return f"_{name}" if name[0].isdigit() else f"{name}_" * (name in RESERVED) or name


def checked_name(name: object) -> str:
    """A caller's name of the network.  Raises InvalidArguments."""
    is_one = isinstance(name, str) and IDENTIFIER.fullmatch(name) and len(name) <= LONGEST_NAME
    if not is_one or name in RESERVED or str(name).startswith("asmdnn_"):
        raise InvalidArguments(f"name must be a name of C for files and symbols, such as scorer, not {shown(name)}")
    return str(name)


def fields(tensors: Sequence[CTensor]) -> list[str]:
    """A name of C for each, all different."""
    found = list[str]()
    for tensor in tensors:
        name = wanted = identifier(tensor.name)
        while name in found:
            name = f"{wanted}_{found.count(name) + len(found)}"
        found.append(name)
    return found


def header(name: str, about: Sequence[str], tensors: Sequence[CTensor]) -> str:
    """The header's text, C99 and C++.  about: lines of what it is."""
    lines = "\n".join(f" * {line}".rstrip() for line in about).replace("*/", "* /")
    rows = [declared(tensor, field) for tensor, field in zip(tensors, fields(tensors), strict=True)]
    guard = f"{name.upper()}_H"
    return f"""/*{lines[2:]}
 *
 *     asmdnn_context *context;
 *     const char *wrong = {name}_create(&context, 1);
 *     struct {name}_tensors tensors = {{ ... }};
 *     if (!wrong) wrong = {name}_run(context, &tensors);
 *     asmdnn_destroy(context);
 *
 * One thread at a time uses a context.  What is wrong is said in one sentence, NULL if nothing is.
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#include "asmdnn_runtime.h"

#ifdef __cplusplus
extern "C" {{
#endif

struct {name}_tensors {{
{"".join(rows)}}};

extern const asmdnn_network {name}_network;

/* threads: 0 for as many as it was exported for.  To bring scratch of one's own, see asmdnn_create. */
static inline const char *{name}_create(asmdnn_context **context, int threads) {{
    return asmdnn_create(context, &{name}_network, threads, 0);
}}

static inline const char *{name}_run(
    asmdnn_context *context, const struct {name}_tensors *tensors) {{
    return asmdnn_run(context, tensors);
}}

#ifdef __cplusplus
}}
#endif

#endif
"""


def declared(tensor: CTensor, field: str) -> str:
    """A field of the struct.  Truths are bytes, 0 or 1, since _Bool is no word of C++."""
    kind = BITS.get(tensor.element) or ("uint8_t" if tensor.element == "bool" else ELEMENTS[tensor.element])
    about = f"{tensor.name}: {tensor.about}".replace("*/", "* /").replace("/*", "/ *")
    words = " ".join(about.split())
    return f"    {'' if tensor.is_output else 'const '}{kind} *{field}; /* {words} */\n"
