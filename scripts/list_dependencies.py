"""Print what the package needs to run, a line each, as pyproject.toml says."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
print(*project["dependencies"], sep="\n")
