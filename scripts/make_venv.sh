#!/bin/sh
# Make the virtual environment. usage: make_venv.sh PYTHON FOLDER
# A bare Debian lacks the venv module and Python's headers: they are installed when this runs as
# root; otherwise it says what is missing. Without headers the package installs without its kernels.
set -eu
python=$1 folder=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "robustbn needs Python 3.11 or newer. Name one: make PYTHON=python3.12 ..." >&2
    exit 1
}

debian_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "installing $* with apt-get" >&2
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y "$@" >&2
}

"$python" -c 'import ensurepip' 2>/dev/null || debian_install python3-venv || {
    echo "Python's venv module is missing: apt-get install python3-venv, then try again." >&2
    exit 1
}
"$python" -c 'import sys, sysconfig, pathlib
sys.exit(not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists())' ||
    debian_install python3-dev ||
    echo "Python's headers are missing (apt-get install python3-dev): the kernels cannot be built." >&2

[ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
