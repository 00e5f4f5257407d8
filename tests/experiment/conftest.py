"""The modules of scripts/experiment are programs' parts, not a package: they are found by path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "experiments"))
