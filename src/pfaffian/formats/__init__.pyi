"""Written by `python -m tools.stubs`."""

from pfaffian.formats.mjcf import parse_mjcf as parse_mjcf
from pfaffian.formats.mjcf import read_mjcf as read_mjcf
from pfaffian.formats.place import installed as installed
from pfaffian.formats.run_settings import RunSettings as RunSettings
from pfaffian.formats.sdf import parse_sdf as parse_sdf
from pfaffian.formats.sdf import read_sdf as read_sdf
from pfaffian.formats.urdf import parse_urdf as parse_urdf
from pfaffian.formats.urdf import read_urdf as read_urdf
from pfaffian.formats.usd import read_usd as read_usd
from pfaffian.formats.yaml import parse_yaml as parse_yaml
from pfaffian.formats.yaml import read_yaml as read_yaml
from pfaffian.model.unphysical import unphysical as unphysical
