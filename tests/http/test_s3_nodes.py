"""store.kind = s3: what two nodes on one store do to each other's images, when one is stopped or
killed at the worst moment, and when the store does a request late, twice, or without an answer."""

import contextlib
import signal
import threading
import time

import pytest

import pictures
from client import Closed
from darkroom import eventually, slow
from s3_fixtures import begin as begin_private, due, figures, remove, store, stored  # noqa: F401
from s3_stand_in import Fault
from test_idempotency import SMALL, ids, is_repeated, post
from uploads import TINY, check_stored

TAKEN = 30  # seconds after which a node has taken over the upload of another one, at most
EARLY = [("Prefer", "respond-async")]

@pytest.fixture
def begin(begin_private):  # noqa: F811
    """begin(...) returns a daemon that tells everybody its images, and that is awake at the end."""
    made = []

    def begin_daemon(*settings, **of_store):
        made.append(begin_private("server.public_list=yes", *settings, **of_store))
        return made[-1]

    yield begin_daemon
    for daemon in made:
        if daemon.is_alive():
            wake(daemon)


class Asked(threading.Thread):
    """A request in the background. .answer is None if there was none."""

    def __init__(self, function, *words, **options):
        super().__init__(daemon=True)
        self.call, self.answer = (function, words, options), None
        self.start()

    def run(self):
        function, words, options = self.call
        with contextlib.suppress(Closed, OSError):
            self.answer = function(*words, **options)

    def result(self):
        self.join()
        return self.answer


class Gate:
    """Holds each PUT of an image back that comes while it is closed. is_lost: the store does it,
    and only the answer is held back."""

    def __init__(self, store, is_lost=False):
        self.store, self.held, self.is_lost = store, 0, is_lost
        store.fault = self.decide

    def decide(self, method, key):
        if method != "PUT" or "/image/" not in key:
            return None
        self.held += 1
        return Fault(delays=60, late_answer=self.is_lost)

    def is_reached(self):
        return eventually(lambda: self.held, slow(20))

    def open(self):
        """Lets other requests through; those that are held back stay so until store.release()."""
        self.store.fault = None


def take_over(daemon):
    """Repeats the upload of another node until this one answers with its image."""
    answer = eventually(lambda: (made := post(daemon, "a")).status == 201 and made, TAKEN)
    assert answer, "another node has waited for too long"
    return answer


def listed(daemon):
    """Returns the ids of all images, as soon as the store is not away."""
    answer = eventually(lambda: (found := daemon.get("/images")).status == 200 and found)
    return [image["id"] for image in answer.json()["images"]]


def is_gone(daemon, image):
    """Returns whether nothing of the image is served, whatever is asked for."""
    paths = [image["url"], *(f"{image['url']}/{name}.jpg" for name in pictures.VARIANTS)]
    return [daemon.get(path, headers=[("If-None-Match", "*")]).status for path in paths] == \
        [404] * len(paths) and image["id"] not in listed(daemon)


def pause(daemon):
    daemon.signal(signal.SIGSTOP)


def wake(daemon):
    daemon.signal(signal.SIGCONT)


def test_a_node_that_wakes_up_removes_no_image_of_another_one(begin, store):
    """A is stopped at its PUT. B makes the image of the same key, and acknowledges it."""
    one, two = begin(s3_timeout="2s"), begin(s3_timeout="2s")
    gate = Gate(store)
    late = Asked(post, one, "a")
    assert gate.is_reached()
    pause(one)
    gate.open()
    made = take_over(two)
    wake(one)
    answer = late.result()
    assert not answer or answer.status in (409, 503) or ids(answer) == ids(made)
    store.release()
    assert listed(one) == listed(two) == ids(made)
    check_stored(two, two.get(made["location"]).json())


def test_a_key_that_one_node_could_not_serve_makes_one_image(begin, store):
    """A gives up, and its PUT takes effect after B has made the image."""
    one, two = begin(), begin()
    gate = Gate(store)
    failed = Asked(post, one, "a")
    assert gate.is_reached()
    assert failed.result().status == 503
    gate.open()
    made = take_over(two)
    store.release()
    again = post(one, "a")
    assert again.status == 201 and ids(again) == ids(made)
    assert eventually(lambda: listed(one) == listed(two) == ids(made))


def test_a_put_of_a_dead_node_makes_no_second_image(begin, store):
    """A is killed at its PUT, which takes effect after B has made the image of the key."""
    one, two = begin(), begin()
    gate = Gate(store)
    Asked(post, one, "a")
    assert gate.is_reached()
    one.kill()
    gate.open()
    made = take_over(two)
    store.release()
    assert is_repeated(post(two, "a"), made)
    assert listed(two) == ids(made)


@pytest.mark.parametrize("fault", [dict(delays=60), dict(again=60)], ids=["late", "repeated"])
def test_a_late_or_repeated_put_does_not_bring_an_image_back(begin, store, fault):
    """The store takes long for the first PUT, so the daemon repeats it; or a proxy repeats it."""
    daemon = begin()
    store.fail_once("PUT", "/image/", **fault)
    image = daemon.image(SMALL)
    assert remove(daemon, image).status == 204
    store.release()
    assert eventually(lambda: sum("/image/" in key for method, key in store.answered
                                  if method == "PUT") == 3)  # two of the image, and the tombstone
    assert is_gone(daemon, image)


def test_an_image_that_is_removed_before_its_answer_stays_removed(begin, store):
    """A stops after its PUT, of which it knows nothing. The image is listed, and removed at B."""
    one, two = begin(), begin()
    gate = Gate(store, is_lost=True)
    late = Asked(one.upload, SMALL)
    assert gate.is_reached()
    pause(one)
    gate.open()
    (ident,) = eventually(lambda: listed(two))
    image = {"id": ident, "url": f"/images/{ident}"}
    assert remove(two, image).status == 204
    wake(one)
    late.result()
    store.release()
    assert is_gone(one, image) and is_gone(two, image)


def test_a_node_that_dies_leaves_a_whole_image_or_none(begin, store):
    """A is killed at its PUT, which may come later. Then each URL is there, or none is."""
    one, two = begin(), begin()
    gate = Gate(store)
    late = Asked(one.upload, SMALL)
    assert gate.is_reached()
    one.kill()
    assert late.result() is None and listed(two) == []
    gate.open()
    store.release()
    (ident,) = eventually(lambda: listed(two))
    image = two.get(f"/images/{ident}").json()
    check_stored(two, image)
    assert remove(two, image).status == 204
    assert is_gone(two, image)


def test_an_image_whose_end_comes_first_does_not_stay(begin, store):
    """A is killed at its PUT, which comes when the note of the image's end is gone."""
    one, two = begin(), begin("store.sweep_interval=100ms")
    gate = Gate(store)
    late = Asked(one.upload, SMALL, headers=[("X-Expires-After", "1")])
    assert gate.is_reached()
    one.kill()
    gate.open()
    assert eventually(lambda: not due(store), slow(30))
    store.release()
    assert late.result() is None
    # The tombstone, and what came after it.
    assert eventually(lambda: [method for method, key in store.answered if "/image/" in key].count("PUT") == 2)
    assert not stored(store) and listed(two) == []
    assert two.get("/stats").json()["store"]["removed"]["expired"] == 0


def test_recovery_makes_no_image_that_was_removed(start, store, tmp_path):
    """A is killed after its PUT, and its disk still has the original. The image is removed at B."""
    settings = [*store.settings(tmp_path, s3_spool="file"), "server.public_list=yes"]
    one, two = (start(*settings, store=tmp_path / name) for name in ("one", "two"))
    gate = Gate(store, is_lost=True)
    (image,) = one.upload(SMALL, headers=EARLY).json()["images"]
    assert gate.is_reached()
    one.kill()
    gate.open()
    assert eventually(lambda: two.get(image["url"]).status == 200)
    assert remove(two, image).status == 204
    store.release()
    one = start(*settings, store=tmp_path / "one")
    assert eventually(lambda: not list((tmp_path / "one" / ".spool").iterdir()))
    # A answers 202 "processing" until its own attempt has ended.
    assert eventually(lambda: one.get(image["url"]).status != 202)
    assert is_gone(one, image) and is_gone(two, image)


def test_no_node_serves_what_it_remembers_of_a_removed_image(begin):
    """B has served all of the image before A removes it."""
    one, two = begin(), begin()
    image = one.image(SMALL)
    check_stored(two, image)
    tags = {name: two.get(variant["url"])["etag"] for name, variant in image["variants"].items()}
    assert remove(one, image).status == 204
    for name, tag in tags.items():
        url = image["variants"][name]["url"]
        assert two.get(url, headers=[("If-None-Match", tag)]).status == 404
        assert two.get(url, headers=[("Range", "bytes=0-9")]).status == 404
    assert is_gone(two, image)


def test_a_removal_that_is_cut_leaves_a_whole_image(begin, store):
    one, two = begin(), begin()
    image = one.image(SMALL)
    store.fault = lambda method, key: Fault(hangs=True) if method in ("PUT", "DELETE") else None
    removal = Asked(remove, one, image)
    before = len(store.requests)
    assert eventually(lambda: any(method in ("PUT", "DELETE")
                                  for method, _ in store.requests[before:]))
    one.kill()
    removal.join()
    store.release()
    check_stored(two, two.get(image["url"]).json())
    assert listed(two) == [image["id"]]
    assert remove(two, image).status == 204 and is_gone(two, image)


def test_one_node_makes_the_passes(begin, store):
    """And another one if that one ends."""
    nodes = [begin("store.sweep_interval=100ms") for _ in range(3)]

    def lists():
        return [figures(node)["lists"] for node in nodes]

    before = lists()
    assert eventually(lambda: max(lists()) > max(before) + 200, 60)
    grown = [now > then for now, then in zip(lists(), before)]
    assert sum(grown) == 1, (before, lists())
    busy = nodes.pop(grown.index(True))
    image = nodes[0].image(TINY, headers=[("X-Expires-After", "1")])
    assert eventually(lambda: is_gone(nodes[0], image))
    busy.kill()
    before = lists()  # is_gone() has asked for some
    image = nodes[0].image(TINY, headers=[("X-Expires-After", "1")])
    assert eventually(lambda: image["id"] not in stored(store), 30)
    assert eventually(lambda: sum(now > then + 20 for now, then in zip(lists(), before)) == 1)


@pytest.mark.parametrize("content", [b"", b"x" * 26, b"x" * 100000], ids=len)
def test_what_others_put_in_the_place_of_the_passes_is_replaced(begin, store, content):
    with store.lock:
        store.objects["a/b/pass"] = (content, {}, time.time())
    daemon = begin("store.sweep_interval=100ms")
    image = daemon.image(SMALL, headers=[("X-Expires-After", "1")])
    assert eventually(lambda: image["id"] not in stored(store))
    with store.lock:
        assert len(store.objects["a/b/pass"][0]) == 26 and store.objects["a/b/pass"][0] != content


@pytest.mark.parametrize("has_key", [False, True])
def test_requests_of_an_upload(begin, store, has_key):
    """One PUT, and one more for the record of a key."""
    daemon = begin()
    daemon.image(TINY)  # whatever the start asks is over
    before = len(store.requests)
    answer = post(daemon, "a") if has_key else daemon.upload(SMALL)
    assert answer.status == 201
    puts = [key for method, key in store.requests[before:] if method == "PUT"]
    kinds = [kind for kind in (key.split("/")[2] for key in puts) if kind != "pass"]
    assert kinds == (["keys"] if has_key else []) + ["image"]
