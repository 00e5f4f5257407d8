"""A daemon on the stand-in of an object store, and what its tests ask."""

import contextlib
import time

import pytest

import s3_image
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


@contextlib.contextmanager
def for_all(start_for_all, directory, *settings):
    """Yields a daemon on a store, which the tests of a module share."""
    made = Store()
    yield start_for_all(*made.settings(directory), *settings), made
    made.stop()


@contextlib.contextmanager
def as_before(daemon, store):
    """Afterwards a shared store has no fault, and its former objects. The daemon must survive."""
    before = dict(store.objects)
    yield
    store.release()
    store.released.clear()
    with store.lock:
        store.objects = before
    assert daemon.is_alive(), daemon.log[-20000:]


@pytest.fixture(scope="module")
def all_share(start_for_all, tmp_path_factory):
    with for_all(start_for_all, tmp_path_factory.mktemp("s3")) as made:
        yield made


@pytest.fixture
def shared(all_share):
    """Returns a daemon with the usual settings, and its store, which other tests use as well."""
    with as_before(*all_share):
        yield all_share


def is_away(answer):
    return (answer.status, answer.slug) == (503, "storage-unavailable") and answer["retry-after"]


def figures(daemon):
    return daemon.get("/stats").json()["store"]["s3"]


def remove(daemon, image):
    with daemon.client() as c:
        return c.request("DELETE", image["url"])


def stored(store):
    """Returns {id: content} of the images that were not removed."""
    with store.lock:
        return {key.rpartition("/")[2]: content for key, (content, _, _) in store.objects.items()
                if key.startswith("a/b/image/")
                and content not in (s3_image.REMOVED, s3_image.FAILED)}


def due(store):
    """Returns the keys of the notes but those of tombstones, which are a month ahead."""
    return [key for key in store.keys("expiry/") if int(key.split("/")[3].split(".")[0]) < time.time() + 86400]


def change(store, image, edit):
    """Replaces the object of an image by what a function makes of its bytes."""
    key = "a/b/" + s3_image.key_of(image["id"])
    with store.lock:
        content, *rest = store.objects[key]
        store.objects[key] = (edit(content), *rest)
