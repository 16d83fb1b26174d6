"""Words that a command does not know, and options without their value: what it says of them.

The words of a command are those that its help names.
"""

import contextlib
import importlib
import io
import re
from collections.abc import Iterable, Iterator

from asmdnn.errors import InvalidArguments, resembling

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*=?")


def unknown(command: str, word: str, also: Iterable[str] = ()) -> InvalidArguments:
    """The error about an option or a word that is none of the command's; its help says which there are.

    also: names of options that its help leaves out.
    """
    plain = word.partition("=")[0]
    known = [known.removesuffix("=") for known in command_words(command)]
    if word.startswith("-") and plain in known:  # which lacks a value, or has one of another form, or one too many
        form = form_of(command, plain)
        near = f": say {form}" * any((sign in form) != (sign in word) for sign in "=:")
    else:
        near = resembling(plain, [*known, *(f"--{name}" for name in also)])
    kind = "no option" if word.startswith("-") else "no word"
    return InvalidArguments(f"{command}: {kind} '{word}'{near or f': see asmdnn {command} --help'}")


def value_of(command: str, word: str, rest: Iterator[str], example: str) -> str:
    """What stands after an option's "=", or else the next word.  Raises InvalidArguments where that is none."""
    option, equals, value = word.partition("=")
    if not equals:
        value = next(rest, "")
        if value.startswith("-"):
            raise InvalidArguments(f"{command}: {option} needs a value before {value}, such as {example}")
    if not value:
        raise InvalidArguments(f"{command}: {option} needs a value, such as {example}")
    return value


def form_of(command: str, option: str) -> str:
    """An option as the command's help first has it, with its value."""
    found = re.search(rf"(?<![\w-]){option}(=[^\s\]),;]+)?(?![\w-])", help_of(command))
    return found[0] if found else option


def help_of(command: str) -> str:
    help_text = io.StringIO()
    with contextlib.redirect_stdout(help_text):
        importlib.import_module(f"asmdnn.cli.{command}").run(["--help"])
    return help_text.getvalue()


def command_words(command: str) -> list[str]:
    """The options that a command's help names, with "=" where a value follows, and its words that are no options."""
    text = help_of(command)
    first = "|".join(re.findall(rf"^asmdnn {command} ([a-z|]+)", text, re.MULTILINE)).split("|")
    found = {*_OPTION.findall(text), "--help"}
    found -= {option.removesuffix("=") for option in found if option.endswith("=")}
    return [*dict.fromkeys(filter(None, first)), *sorted(found)]
