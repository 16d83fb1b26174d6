#!/bin/sh
# Makes .venv: the project (editable), PeachPy 0.2.0, and all that tests, bench and demo need.  Needs no root.
#
#   [PYTHON=python3.12] tools/setup.sh
#
# PYTHON defaults to the first of python3, python3.13 ... python3.10 that is new enough.  PeachPy 0.2.0 was never
# published for pip, so it is unpacked from the Debian package python3-peachpy, or built from upstream's repository
# where that cannot be had.  pip and libgomp are unpacked the same way where the machine lacks them.
# .venv/ready holds a fingerprint of what the environment was made from: while it holds, there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME # a path from outside would hide what is missing inside
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0

venv=.venv
venv_python=$venv/bin/python
peachpy_version=0.2.0
peachpy_git=https://github.com/Maratyszcza/PeachPy@349e8f836142b2ed0efeb6bb99b1b715d87202e9
dist_packages=/usr/lib/python3/dist-packages

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
fingerprint() { { pwd -P; cat pyproject.toml tools/setup.sh; } | cksum; }

is_ready() {
    [ "$(cat $venv/ready 2>/dev/null)" = "$(fingerprint)" ] && is_wanted_interpreter &&
        $venv_python -c 'import cffi, peachpy.x86_64' 2>/dev/null
}

# ---- Debian packages, unpacked instead of installed

refreshes=0
apt_get() {
    if [ $refreshes -lt 2 ]; then
        apt-get -q "$@"
    else
        apt-get -q -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
    fi
}

# First the machine's own package lists, where the rights are there; then private ones, which need none.
refresh_package_lists() {
    refreshes=$((refreshes + 1))
    case $refreshes in
    1) if [ "$(id -u)" = 0 ]; then apt_get update; else sudo -n apt-get -q update; fi ;;
    2) mkdir -p "$work/lists/partial" "$work/cache/archives/partial" && apt_get update ;;
    *) return 1 ;;
    esac || true # one broken source must not hide the package in another; the download that follows will tell
}

unpack_deb() { # unpack_deb PACKAGE: into $work/PACKAGE
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    until (cd "$work" && apt_get download "$1"); do refresh_package_lists || return 1; done >>"$work/log" 2>&1
    dpkg-deb -x "$work/$1"_*.deb "$work/$1"
}

# The command for this machine that gives what unpack_deb could not.
apt_install() {
    if [ "$(id -u)" = 0 ]; then
        echo "apt-get update && apt-get install $1"
    elif command -v sudo >/dev/null; then
        echo "sudo apt-get update && sudo apt-get install $1"
    else
        echo "su -c 'apt-get update && apt-get install $1'"
    fi
}

die_of() { # die_of WHAT WAY_OUT
    tail -n 15 "$work/log" >&2
    die "$1; run this, then make venv again:
    $2"
}

# ---- The steps; each does nothing where its work is done

make_venv() {
    if $venv_python -m pip --version >/dev/null 2>&1 && is_wanted_interpreter; then return; fi
    python=$(choose_python)
    say "making $venv with $($python --version)"
    rm -rf $venv
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv $venv
    elif unpack_deb python3-pip-whl; then # Debian's python3 without python3-venv
        "$python" -m venv --without-pip $venv
        wheel=$(echo "$work"/python3-pip-whl/usr/share/python-wheels/pip-*.whl)
        $venv_python "$wheel/pip" install -qq --no-index "$wheel"
    else
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        die_of "$python has no ensurepip, so no environment can be made" "$(apt_install "$package")"
    fi
}

has_peachpy() {
    $venv_python -c "import importlib.metadata as m; assert m.version('peachpy') == '$peachpy_version'" 2>/dev/null
}

install_peachpy() {
    if has_peachpy; then return; fi
    say "getting PeachPy $peachpy_version"
    source=$dist_packages
    if [ ! -d "$source/peachpy" ] && unpack_deb python3-peachpy; then source=$work/python3-peachpy$dist_packages; fi
    if [ -d "$source/peachpy" ]; then
        site_packages=$($venv_python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
        rm -rf "$site_packages/peachpy"
        cp -r "$source/peachpy" "$site_packages/"
        # Importing it costs 55 ms compiled and 950 ms not, at every start where PYTHONDONTWRITEBYTECODE is set.
        $venv_python -W ignore -m compileall -q "$site_packages/peachpy"
        cp -r "$source"/[Pp]each[Pp]y-*-info "$site_packages/" # last: from here on PeachPy counts as installed
    else
        echo 'setuptools<80' >"$work/constraint" # its build imports pkg_resources
        PIP_CONSTRAINT=$work/constraint PIP_BUILD_CONSTRAINT=$work/constraint \
            $venv_python -m pip install -qq --use-pep517 "git+$peachpy_git" || true
    fi
    if has_peachpy; then return; fi
    if command -v apt-get >/dev/null; then
        way_out=$(apt_install python3-peachpy)
    else
        pip_install="PIP_CONSTRAINT=constraint $venv_python -m pip install --use-pep517"
        way_out="echo 'setuptools<80' >constraint && $pip_install git+$peachpy_git"
    fi
    die_of "PeachPy $peachpy_version cannot be had" "$way_out"
}

can_load() { $venv_python -c "import ctypes; ctypes.CDLL('$1')" 2>/dev/null; }

install_libgomp() {
    if can_load libgomp.so.1 || can_load $venv/lib/libgomp.so.1; then return; fi
    say "getting libgomp"
    unpack_deb libgomp1 || die_of "the OpenMP runtime libgomp.so.1 cannot be had" "$(apt_install libgomp1)"
    cp -L "$work"/libgomp1/usr/lib/*/libgomp.so.1 $venv/lib/
}

install_project() {
    say "installing the project and what tests, bench and demo need"
    $venv_python -m pip install -qq --editable ".[generate,info,bench,demo,test,dev]"
}

# An interrupted pip leaves packages that count as installed: those without their list of files, or with files missing.
works() {
    $venv_python - <<'END' && $venv_python -m pip check >/dev/null
import importlib.metadata, sys
import asmdnn, cffi, peachpy.x86_64

for package in importlib.metadata.distributions():
    files = [f for f in package.files or () if f.suffix != ".pyc"]
    if package.name.lower() != "peachpy" and not (files and all(f.locate().exists() for f in files)):
        sys.exit(f"setup: {package.name} is incomplete")
END
}

make_all() { make_venv; install_peachpy; install_libgomp; install_project; }

if is_ready; then exit 0; fi
if command -v flock >/dev/null; then # two at once would write the same files
    exec 9<tools/setup.sh
    flock 9
    if is_ready; then exit 0; fi
fi
work=$(mktemp -d)
: >"$work/log"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

make_all
if ! works; then
    say "$venv does not work; making it anew"
    rm -rf $venv
    make_all
    works || die "$venv does not work; the message above says why"
fi
fingerprint >$venv/ready
say "$venv is ready"
