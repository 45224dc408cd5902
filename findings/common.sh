# Read by every finding: a temporary folder to work in, and a virtual environment with the packages that the finding names.
# With FINDINGS_VENV=FOLDER the environment is made there, kept, and used by the next finding.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# needs NAME==VERSION ...: installs these packages. Afterwards "$python" -I runs with them alone, in the temporary folder.
needs() {
    venv=${FINDINGS_VENV:-$work/venv}
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet "$@"
    python=$(cd "$venv" && pwd)/bin/python
    cd "$work"
}
