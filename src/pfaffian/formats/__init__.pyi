"""The public names of the readers and the modules that define them: the list by which they are imported at first use."""

from pfaffian.formats.fmu.fmu_file import FMU as FMU
from pfaffian.formats.fmu.fmu_file import read_fmu as read_fmu
from pfaffian.formats.mjcf.mjcf import parse_mjcf as parse_mjcf
from pfaffian.formats.mjcf.mjcf import read_mjcf as read_mjcf
from pfaffian.formats.osim.osim import parse_osim as parse_osim
from pfaffian.formats.osim.osim import read_osim as read_osim
from pfaffian.formats.read import FORMATS as FORMATS
from pfaffian.formats.read import Format as Format
from pfaffian.formats.sdf.sdf import parse_sdf as parse_sdf
from pfaffian.formats.sdf.sdf import read_sdf as read_sdf
from pfaffian.formats.text.library_laws import LAWS as LAWS
from pfaffian.formats.text.place import installed as installed
from pfaffian.formats.text.run_settings import RunSettings as RunSettings
from pfaffian.formats.urdf.urdf import parse_urdf as parse_urdf
from pfaffian.formats.urdf.urdf import read_urdf as read_urdf
from pfaffian.formats.usd.usd import read_usd as read_usd
from pfaffian.formats.yaml.yaml import parse_yaml as parse_yaml
from pfaffian.formats.yaml.yaml import read_yaml as read_yaml
from pfaffian.model.unphysical import unphysical as unphysical
