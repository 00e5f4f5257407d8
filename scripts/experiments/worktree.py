"""The state of the repository that a measurement is made from."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = "data/results"  # committed results


def uncommitted(root=ROOT):
    """Returns the paths that differ from the last commit, without those in data/results."""
    command = ["git", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all",
               "--", ".", f":(exclude){RESULTS}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [entry[3:] for entry in done.stdout.split("\0") if entry]


def refusal(outputs, root=ROOT):
    """Returns why these files must not be written now, or an empty string.

    Committed results must come from a committed tree. Other files may be written any time.
    """
    results = (root / RESULTS).resolve()
    kept = [path for path in map(os.path.realpath, outputs)
            if results in pathlib.Path(path).parents]
    if not kept:
        return ""
    changed = uncommitted(root)
    if not changed:
        return ""
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return (f"refusing to write {os.path.relpath(kept[0], root)}: uncommitted changes in "
            f"{', '.join(changed[:3])}{more}; commit them, or write outside of {RESULTS}")


def results(path, root=ROOT):
    """Opens a file of results to append to, or ends the program if refusal() has a reason."""
    if why := refusal([path], root):
        sys.exit(why)
    return path.open("a")
