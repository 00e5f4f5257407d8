"""When a run has ended, and what must be true of it: else its figures mean nothing, and it fails.

The end is when the last image was stored. The daemon counts the stored images and notes that time.
The files of the store must say the same, since a wrong clock looks like a fast server.
"""

import json
import time

CPU_SLACK_S = 0.1  # ticks of the kernel, and the daemon's answers to /stats before and after a run


class Failed(Exception):
    """A failed run, whose measurement is not valid."""


class Store:
    """The images of a daemon that began with an empty store."""

    def __init__(self, root):
        self.root, self.sound, self.acknowledged = root, set(), set()

    def check(self, rows, stats, before):
        """Checks the images of some requests after all of them are stored: the daemon's counters,
        and unless the store is elsewhere the files. rows: those of darkroom-load. stats: /stats
        now, before: images.stored before the requests."""
        images, counted = stats["images"], stats["images"]["stored"] - before
        answered = {row["id"] for row in rows if row["status"][:1] == "2" and not row["error"]}
        unknown = sum(row["error"] not in ("", "unsent") for row in rows)  # without a whole answer
        if not len(answered) <= counted <= len(answered) + unknown or "" in answered:
            raise Failed(f"{len(answered)} images were acknowledged, and the daemon has stored "
                         f"{counted}: stored = acknowledged is broken")
        self.acknowledged |= answered
        if "s3" not in stats["store"]:
            self._check_files(images)

    def _check_files(self, images):
        found = {path.name: path for path in self.root.glob("????/??/*")}
        if missing := self.acknowledged - found.keys():
            raise Failed(f"{len(missing)} acknowledged images are not in the store, such as "
                         f"{min(missing)}")
        if len(found) != images["stored"]:
            raise Failed(f"the store has {len(found)} images, and the daemon has stored "
                         f"{images['stored']}")
        for name in found.keys() - self.sound:
            _check_image(found[name])
        self.sound |= found.keys()
        newest_s = last_change_s(self.root)
        if newest_s and newest_s > images["last_stored_ns"] / 1e9:
            late_s = newest_s - images["last_stored_ns"] / 1e9
            raise Failed(f"the store has an image {late_s:.3f} s after the end of the run: the clock "
                         "of the run is wrong")


def _check_image(path):
    """Checks that an image has each of its variants as a whole."""
    try:
        variants = json.loads((path / "image.json").read_text())["variants"]
        sizes = {name: (path / f"{name}.jpg").stat().st_size for name in variants}
    except (OSError, ValueError, KeyError) as error:
        raise Failed(f"{path} is not an image: {error}") from None
    for name, size in sizes.items():
        if size != variants[name]["bytes"]:
            raise Failed(f"{path / name}.jpg has {size} bytes, not {variants[name]['bytes']}")


def last_change_s(root):
    """Returns the time of time.monotonic() at which the last image became visible, or 0: the rename
    of its directory into ROOT/SPAN/XX changed that one. File systems round it down."""
    now = time.monotonic()
    since = now - time.time()  # in this order a delay between the two makes it no later
    return max((part.stat().st_mtime + since for part in root.glob("????/??")), default=0)


def check_cpu(cpu_s, seconds, cores):
    """Checks that a program has used no more than all cores for the time of a run."""
    if cpu_s > cores * seconds + CPU_SLACK_S:
        raise Failed(f"{cpu_s:.2f} s of CPU time in a run of {seconds:.2f} s on {cores} cores: the "
                     "clock of the run is wrong")
