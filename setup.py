"""What pyproject.toml cannot say: the long description is the README without pictures and links into the repository, which lead
nowhere from a page of metadata."""

import re
from pathlib import Path

from setuptools import setup

text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", text)
text = re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)

setup(long_description=text, long_description_content_type="text/markdown")
