"""Prints requirements of pyproject.toml, so that they stand in one place: tools/requirements.py build|run|EXTRA …"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    # pip provides cmake and ninja where the system has none of that age; --no-build-isolation does not ask for them by itself.
    build = [*project["build-system"]["requires"], "cmake" + project["tool"]["scikit-build"]["cmake"]["version"], "ninja"]
    groups = {"build": build, "run": project["project"]["dependencies"], **project["project"]["optional-dependencies"]}
    for name in sys.argv[1:]:
        print("\n".join(groups[name]))


if __name__ == "__main__":
    main()
