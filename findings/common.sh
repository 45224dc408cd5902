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

# robot_of FILE NAME TYPE AXIS LIMIT: writes a URDF file of one joint NAME, of this type, axis and <limit>, that moves 1 kg.
robot_of() {
    cat > "$1" <<END
<robot name="robot"><link name="base"/><link name="moved"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="$2" type="$3"><parent link="base"/><child link="moved"/><axis xyz="$4"/><limit $5/></joint></robot>
END
}
