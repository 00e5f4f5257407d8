"""A daemon on the stand-in of an object store, and what its tests ask."""

import ctypes

import pytest

from s3_stand_in import Store


@pytest.fixture
def store():
    made = Store()
    yield made
    made.stop()


@pytest.fixture
def begin(start, store, tmp_path):
    """begin(...) returns a daemon on the store. Arguments without a point are of [store]."""
    def begin_daemon(*settings, **of_store):
        return start(*store.settings(tmp_path, **of_store), *settings)
    return begin_daemon


def is_away(answer):
    return (answer.status, answer.slug) == (503, "storage-unavailable") and answer["retry-after"]


def figures(daemon):
    return daemon.get("/stats").json()["store"]["s3"]


def remove(daemon, image):
    with daemon.client() as c:
        return c.request("DELETE", image["url"])


class Sum(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def sum_of(body):
    """Returns the checksum that the daemon keeps of an object."""
    function = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    function.restype, function.argtypes = Sum, [ctypes.c_char_p, ctypes.c_size_t]
    result = function(body, len(body))
    return f"{result.high:016x}{result.low:016x}"
