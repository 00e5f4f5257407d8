"""Makes the modules of scripts/experiments importable, since they are not a package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "experiments"))
