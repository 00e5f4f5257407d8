"""Faults in a daemon's system calls and allocations, made by tests/tools/faults.c. Lists the call
sites, knows how each of them can fail, and arms one fault while the daemon runs."""

import ctypes
import errno
import mmap
import os
import pathlib
import time

from darkroom import ROOT

LIBRARY = pathlib.Path(os.environ.get("DARKROOM_FAULT_LIBRARY",
                                      ROOT / "build" / "plain" / "tests" / "tools" / "faults.so"))
SHORT = -1
ALLOCATORS = ("malloc", "calloc", "realloc", "reallocarray", "aligned_alloc")

# Possible errors of each function: ENOSPC and EIO for files, EMFILE for new descriptors, and ENOMEM
# nearly everywhere.
ERRORS = {name: [errno.ENOMEM] for name in ALLOCATORS}
ERRORS.update({name: [errno.EMFILE, errno.ENOMEM, errno.EIO, errno.EINTR]
               for name in ("open", "openat", "__openat_2")})
ERRORS.update({name: [errno.EMFILE, errno.ENOMEM] for name in (
    "socket", "epoll_create1", "eventfd", "signalfd", "memfd_create", "fopen")})
ERRORS.update({name: [errno.ENOMEM] for name in ("setsockopt", "getsockopt", "getsockname", "bind",
                                                 "listen", "fchmod", "fdopendir", "setrlimit")})
ERRORS.update({name: [errno.EIO, errno.ENOMEM]
               for name in ("faccessat", "fstat", "lstat", "unlink", "unlinkat")})
ERRORS.update({name: [errno.ENOSPC, errno.EIO, errno.ENOMEM] for name in (
    "renameat", "renameat2", "linkat", "mkdirat")})
ERRORS.update({
    "read": [errno.EIO, errno.EINTR, SHORT],
    "read-other": [errno.EINTR],
    "write-other": [errno.EINTR],
    "pread": [errno.EIO, errno.EINTR, SHORT],
    "fgets": [errno.EIO],
    "readdir": [errno.EIO],
    "write": [errno.ENOSPC, errno.EIO, errno.EINTR, SHORT],
    "pwrite": [errno.ENOSPC, errno.EIO, errno.EINTR],
    "fallocate": [errno.ENOSPC, errno.EIO, errno.EINTR],
    "fdatasync": [errno.EIO, errno.ENOSPC],
    "syncfs": [errno.EIO, errno.ENOSPC],
    "close": [errno.EIO, errno.ENOSPC, errno.EINTR],
    "recv": [errno.EINTR, errno.ENOMEM, SHORT],
    "send": [errno.EINTR, errno.ENOMEM, SHORT],
    "writev": [errno.EINTR, errno.ENOMEM, SHORT],
    "sendfile": [errno.EIO, errno.EINTR, errno.ENOMEM, SHORT],
    "sendto": [errno.EINTR, errno.ENOMEM],
    "accept4": [errno.EMFILE, errno.ENOMEM, errno.EINTR],
    "epoll_ctl": [errno.ENOMEM, errno.ENOSPC],
    "epoll_wait": [errno.EINTR],
    "poll": [errno.EINTR, errno.ENOMEM],
    "flock": [errno.EINTR],
    "getrandom": [errno.EINTR],
    "nanosleep": [errno.EINTR],
    "pthread_create": [errno.EAGAIN],
})


def name_of(error):
    return "short" if error == SHORT else errno.errorcode[error]


class Site(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint64), ("calls", ctypes.c_uint32), ("is_named", ctypes.c_uint32),
                ("text", ctypes.c_char * 112)]

    @property
    def name(self):
        return self.text.decode()

    @property
    def function(self):
        return self.name.split()[0]

    @property
    def module(self):
        """The module of the first caller: darkroomd, or a library."""
        return self.name.split()[1].split("+")[0] if " " in self.name else "?"


class Control(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint64), ("skip", ctypes.c_int32), ("left", ctypes.c_int32),
                ("error", ctypes.c_int32), ("fired", ctypes.c_uint32),
                ("allocations", ctypes.c_int64), ("lost", ctypes.c_uint32),
                ("until_ns", ctypes.c_uint64), ("site", Site * 4096)]


class Faults:
    """The control file that a daemon maps. `environ` makes a daemon use it."""

    def __init__(self, path):
        assert LIBRARY.exists(), (
            f"{LIBRARY} does not exist: run make, or set DARKROOM_FAULT_LIBRARY")
        path.write_bytes(bytes(ctypes.sizeof(Control)))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.control = Control.from_buffer(self.map)
        self.environ = {"LD_PRELOAD": str(LIBRARY), "DARKROOM_FAULTS": str(path)}

    def arm(self, key, error, count=1, skip=0, seconds=60.0):
        """Makes the next calls at a site fail, after `skip` calls that succeed. With count -1, all
        calls fail until the time is over."""
        c = self.control
        c.key = 0
        c.error, c.left, c.skip, c.fired = error, count, skip, 0
        c.until_ns = time.monotonic_ns() + int(seconds * 1e9)
        c.key = key

    def disarm(self):
        """Ends the fault. Returns the number of failed calls."""
        self.control.key = 0
        return self.control.fired

    def sites(self):
        """Returns {key: (name, function, module, calls)} of all sites so far."""
        assert self.control.lost == 0
        return {s.key: (s.name, s.function, s.module, s.calls) for s in self.control.site
                if s.key and s.is_named}
