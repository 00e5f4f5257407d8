"""A daemon whose disk is slow, by tests/tools/slow_disk.c. Nothing is in the page cache then, but
what the daemon has read itself."""

import os
import pathlib
import struct

from darkroom import ROOT

LIBRARY = pathlib.Path(os.environ.get(
    "DARKROOM_SLOW_DISK_LIBRARY", ROOT / "build" / "plain" / "tests" / "tools" / "slow_disk.so"))


class SlowDisk:
    """environ: the variables for the daemon. path: a new file that controls it."""

    def __init__(self, path):
        assert LIBRARY.exists(), f"{LIBRARY} does not exist: run make"
        self.path = path
        path.write_bytes(bytes(8))
        self.environ = {"LD_PRELOAD": str(LIBRARY), "DARKROOM_SLOW_DISK": str(path)}

    def delay_reads(self, milliseconds):
        """Delays each read of a file; 0 ends it."""
        self._set(milliseconds, 1)

    def delay_writes(self, milliseconds):
        """Delays all but reads, so that images stay in flight while files of settings are read."""
        self._set(milliseconds, 2)

    def delay_all(self, milliseconds):
        """Delays writes as well."""
        self._set(milliseconds, 0)

    def _set(self, milliseconds, only):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("II", milliseconds * 1000, only))
