"""`asmdnn completion`: a script for the shell that completes commands, options and files."""

from collections.abc import Sequence

from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import command_words
from asmdnn.errors import InvalidArguments, resembling

USAGE = """asmdnn completion bash|zsh
Prints a script that completes commands, their options, drivers of bench, and
files.  For every new shell:
  bash   asmdnn completion bash > ~/.local/share/bash-completion/completions/asmdnn
  zsh    asmdnn completion zsh > "${fpath[1]}/_asmdnn"
For this one: source <(asmdnn completion bash)"""

_BASH = """# completion of asmdnn: bash
_asmdnn() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words
    # bash cuts words at "=": what follows one is the value of an option, mostly a file
    if [[ $current == = || ${{COMP_WORDS[COMP_CWORD - 1]}} == = ]]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "${{current#=}}"))
        return
    fi
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "{commands}" -- "$current"))
        return
    fi
    case $command in
{cases}
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace
    else
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$current") $(compgen -W "$words" -- "$current"))
    fi
}}
complete -F _asmdnn asmdnn
"""
_ZSH = """#compdef asmdnn
# completion of asmdnn: zsh, by that of bash
autoload -U +X bashcompinit && bashcompinit
{bash}"""


def run(arguments: Sequence[str]) -> int:
    """Print the script.  Raises InvalidArguments for another shell."""
    if list(arguments) in (["-h"], ["--help"]):
        show_help(USAGE)
        return 0
    if list(arguments) not in (["bash"], ["zsh"]):
        near = resembling(" ".join(arguments), ("bash", "zsh"))
        raise InvalidArguments(f"completion: expected bash or zsh, not '{' '.join(arguments)}'{near}")
    bash = _bash()
    print(bash if arguments[0] == "bash" else _ZSH.format(bash=bash), end="")
    return 0


def _bash() -> str:
    from asmdnn.cli.main import COMMANDS

    cases = "\n".join(f'        {name}) words="{" ".join(command_words(name))}" ;;' for name in COMMANDS)
    return _BASH.format(commands=" ".join(COMMANDS), cases=cases + f'\n        help) words="{" ".join(COMMANDS)}" ;;')
