"""Words that a command does not know: what it says of them, with the one of its own that they resemble."""

from collections.abc import Iterable

from asmdnn.errors import InvalidArguments, resembling


def unknown(command: str, word: str, also: Iterable[str] = ()) -> InvalidArguments:
    """The error about an option or a word that is none of the command's; its help says which there are.

    also: names of options that its help leaves out.
    """
    from asmdnn.cli.completion import words_of  # not above: it is imported to make a mistake

    plain = word.partition("=")[0]
    known = [known.removesuffix("=") for known in words_of(command)]
    near = resembling(plain, [*known, *(f"--{name}" for name in also)])
    kind = "no option" if word.startswith("-") else "no word"
    return InvalidArguments(f"{command}: {kind} '{word}'{near or f': see asmdnn {command} --help'}")
