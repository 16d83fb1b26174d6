#!/bin/sh
# Makes .venv: the project (editable) with all that tests, bench and demo need, and what `asmdnn setup` gets.  Needs no
# root.
#
#   [PYTHON=python3.12] tools/setup.sh
#
# PYTHON defaults to the first of python3, python3.13 ... python3.10 that is new enough.  Where it lacks ensurepip, as
# Debian's does without python3-venv, pip is unpacked from the distribution's package.
# .venv/ready holds a fingerprint of what the environment was made from: while it holds, there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME # a path from outside would hide what is missing inside
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0

venv=.venv
venv_python=$venv/bin/python

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

choose_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.10; fi
    for candidate; do
        if is_new_enough "$candidate"; then echo "$candidate"; return; fi
    done
    die "$1 is not a Python >= 3.10: name one, as in PYTHON=/path/to/python3.12 make venv"
}

interpreter_of() { "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null; }
is_wanted_interpreter() {
    [ -z "${PYTHON:-}" ] || [ "$(interpreter_of "$PYTHON")" = "$(interpreter_of $venv_python)" ]
}

# The directory is part of it, because a copied .venv still imports the project from where it was made.
fingerprint() { { pwd -P; cat pyproject.toml constraints.txt tools/setup.sh asmdnn/setup/*.py; } | cksum; }

is_ready() {
    [ "$(cat $venv/ready 2>/dev/null)" = "$(fingerprint)" ] && is_wanted_interpreter &&
        $venv_python -c 'import cffi, peachpy.x86_64' 2>/dev/null
}

unpack_deb() { # unpack_deb PYTHON PACKAGE: into $work/PACKAGE, or the command that an administrator can run
    PYTHONPATH=. "$1" - "$2" "$work" <<'END'
import pathlib, sys
from asmdnn.setup.debian import Packages, install_command

packages = Packages(pathlib.Path(sys.argv[2]))
if packages.unpack(sys.argv[1]) is None:
    sys.exit(f"{packages.last_words()}\nsetup: run this, then make venv again:\n    {install_command('python3-venv')}")
END
}

# ---- The steps; each does nothing where its work is done

make_venv() {
    if $venv_python -m pip --version >/dev/null 2>&1 && is_wanted_interpreter; then return; fi
    python=$(choose_python)
    say "making $venv with $($python --version)"
    rm -rf $venv
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv $venv
    else # Debian's python3 without python3-venv
        unpack_deb "$python" python3-pip-whl || die "$python has no ensurepip, so no environment can be made"
        "$python" -m venv --without-pip $venv
        wheel=$(echo "$work"/python3-pip-whl/usr/share/python-wheels/pip-*.whl)
        $venv_python "$wheel/pip" install -qq --no-index "$wheel"
    fi
}

install_project() {
    say "installing the project and what tests, bench and demo need"
    $venv_python -m pip install -qq --constraint constraints.txt --editable ".[info,bench,demo,test,networks,dev]"
}

# An interrupted pip leaves packages that count as installed: those without their list of files, or with files missing.
is_complete() {
    $venv_python - <<'END' && $venv_python -m pip check >/dev/null
import importlib.metadata, sys
import asmdnn.ops, cffi, six

for package in importlib.metadata.distributions():
    files = [f for f in package.files or () if f.suffix != ".pyc"]
    if package.name.lower() != "peachpy" and not (files and all(f.locate().exists() for f in files)):
        sys.exit(f"setup: {package.name} is incomplete")
END
}

if is_ready; then exit 0; fi
if command -v flock >/dev/null; then # two at once would write the same files
    exec 9<tools/setup.sh
    flock 9
    if is_ready; then exit 0; fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

make_venv
install_project
if ! is_complete; then
    say "$venv does not work; making it anew"
    rm -rf $venv
    make_venv
    install_project
    is_complete || die "$venv does not work; the message above says why"
fi
$venv_python -m asmdnn setup
fingerprint >$venv/ready
say "$venv is ready"
