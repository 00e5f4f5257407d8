"""store.kind = s3 with a spool: uploads that are acknowledged while the object store is away."""

import time

import pytest

import pictures
from darkroom import eventually, overrides, run, slow
from s3_fixtures import begin, figures, is_away, remove, store, sum_of  # noqa: F401
from s3_stand_in import Fault
from uploads import TINY, check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)
ASYNC = [("Prefer", "respond-async")]


def spooled(daemon):
    return sorted(p.name for p in (daemon.store / ".spool").iterdir())


def recovery(daemon):
    return daemon.get("/stats").json()["store"]


def end_store(daemon, store):
    store.stop()
    for _ in range(50):
        if figures(daemon)["is_away"]:
            return
        assert is_away(daemon.upload(TINY))
    assert eventually(lambda: figures(daemon)["is_away"], 20)


def accept(daemon, body=SMALL):
    """Uploads an image, which is answered 202. Returns its id."""
    answer = daemon.upload(body, headers=ASYNC)
    assert answer.status == 202, answer
    assert answer["preference-applied"] == "respond-async"
    return answer.json()["images"][0]["id"]


def is_stored(daemon, ident):
    return daemon.get(f"/images/{ident}").status == 200


@pytest.mark.every_policy
def test_early_answer(begin):
    daemon = begin(s3_spool="file")
    ident = accept(daemon)
    assert eventually(lambda: is_stored(daemon, ident), 20)
    check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert eventually(lambda: not spooled(daemon) and figures(daemon)["spooled_bytes"] == 0)
    assert recovery(daemon)["recovered"] == 0


@pytest.mark.parametrize("setting", [[], ["server.respond_after=decode", "server.durability=none"]],
                         ids=["preference", "decode"])
def test_outage(begin, store, setting):
    """What is acknowledged while the store is away is stored within 2 s of its return."""
    daemon = begin(*setting, s3_spool="file")
    before = daemon.image(SMALL) if not setting else None
    store.stop()
    first = accept(daemon)  # the outage is not known yet
    assert eventually(lambda: figures(daemon)["is_away"] or not accept(daemon), 20)
    ids = [first, *(accept(daemon, TINY) for _ in range(5))]
    for ident in ids:
        answer = daemon.get(f"/images/{ident}")
        assert (answer.status, answer.json()["status"]) == (202, "processing"), answer
    if before:
        assert is_away(daemon.upload(SMALL)), "without the preference"
        assert is_away(daemon.get(before["url"]))
    asked = time.monotonic()
    assert daemon.get("/healthz").status == 200 and time.monotonic() - asked < slow(1)
    assert set(ids) <= set(spooled(daemon)) and figures(daemon)["spooled_bytes"] > 0
    assert not store.keys("image/")[1:]
    store.start()
    back = time.monotonic()
    assert eventually(lambda: all(is_stored(daemon, ident) for ident in ids), slow(10))
    assert time.monotonic() - back < slow(2)
    for ident in ids:
        check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert eventually(lambda: not spooled(daemon) and figures(daemon)["spooled_bytes"] == 0)


def test_kill_while_the_store_is_away(start, store, tmp_path):
    """Nothing that was acknowledged is lost, and the next start does not need the store."""
    settings = store.settings(tmp_path, s3_spool="file")
    daemon = start(*settings, store=tmp_path / "root")
    end_store(daemon, store)
    assert daemon.says("does not answer as it should; responding 503")
    ids = [accept(daemon, body) for body in (SMALL, TINY, SMALL)]
    bytes_before = figures(daemon)["spooled_bytes"]
    daemon.kill()
    daemon = start(*settings, store=tmp_path / "root")
    assert figures(daemon)["spooled_bytes"] == bytes_before
    later = accept(daemon)
    assert daemon.get(f"/images/{ids[0]}").json()["status"] == "processing"
    store.start()
    for ident in [*ids, later]:
        assert eventually(lambda: is_stored(daemon, ident), 30), daemon.log  # noqa: B023
        check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert eventually(lambda: not spooled(daemon) and figures(daemon)["spooled_bytes"] == 0)
    assert recovery(daemon)["quarantined"] == 0


def test_spool_that_is_full(begin, store):
    daemon = begin(s3_spool="file", s3_spool_bytes="64K")
    end_store(daemon, store)
    ids, answer = [], daemon.upload(TINY, headers=ASYNC)
    while answer.status == 202 and len(ids) < 10:
        ids.append(answer.json()["images"][0]["id"])
        answer = daemon.upload(TINY, headers=ASYNC)
    assert is_away(answer) and "the spool has store.s3_spool_bytes" in answer.json()["detail"]
    assert 1 < len(ids) < 10 and figures(daemon)["spooled_bytes"] <= 64 << 10
    assert spooled(daemon) == sorted(ids)
    store.start()
    for ident in ids:
        assert eventually(lambda: is_stored(daemon, ident), 20)  # noqa: B023
    assert eventually(lambda: figures(daemon)["spooled_bytes"] == 0)
    accept(daemon, TINY)


def test_removal_of_an_image_that_waits(begin, store):
    daemon = begin(s3_spool="file")
    end_store(daemon, store)
    ident = accept(daemon)
    image = {"url": f"/images/{ident}"}
    assert is_away(remove(daemon, image))
    assert spooled(daemon) == [ident]
    store.start()
    assert eventually(lambda: remove(daemon, image).status == 204, 20)
    assert eventually(lambda: not spooled(daemon) and not store.keys("image/"), 20)
    assert remove(daemon, image).status == 404
    assert daemon.get(image["url"]).status == 404


def test_store_that_hangs(begin, store):
    """Acknowledgements do not wait for a store that does not answer."""
    daemon = begin(s3_spool="file", s3_timeout="1s")
    store.fail_always("PUT", "", hangs=True)
    ids = [accept(daemon, TINY) for _ in range(3)]
    store.release()
    for ident in ids:
        assert eventually(lambda: is_stored(daemon, ident), 40)  # noqa: B023


# ---- store.s3_spool = s3 ----

LEASE = dict(s3_spool="s3", s3_lease="10s", s3_timeout="1s")
OTHER = f"held {'0' * 15}7 "


def begin_node(begin, *settings, **of_store):
    """Starts a node that takes uploads into the store."""
    daemon = begin("log.level=info", *settings, **{**LEASE, **of_store})
    assert daemon.says("takes uploads into the store")
    return daemon


def change(store, part, function):
    """Replaces the content of the object whose key ends with the part."""
    with store.lock:
        (key,) = (key for key in store.objects if key.endswith(part))
        body, meta, modified = store.objects[key]
        body = function(body)
        store.objects[key] = (body, {**meta, "x-amz-meta-darkroom-tag": sum_of(body)}, modified)


def give_to_another_node(body):
    """Changes a lease to one of a node that is away, and that has ended."""
    return f"{OTHER}1\n".encode() + body.partition(b"\n")[2]


def hold(store, *parts):
    """Images are acknowledged, and not stored: the objects of variants are refused."""
    store.fault = lambda method, key: Fault(status=404, code="NoSuchBucket") \
        if method == "PUT" and any(part in key for part in parts) else None


def test_spool_in_the_store(begin, store):
    daemon = begin_node(begin)
    ident = accept(daemon)
    with store.lock:
        puts = [key for method, key in store.requests if method == "PUT"]
    assert {f"a/b/spool/{ident}", f"a/b/spool/{ident}.lease"} <= set(puts)
    assert eventually(lambda: is_stored(daemon, ident), 20)
    check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert eventually(lambda: not store.keys("spool/"), 20)
    assert not spooled(daemon)
    end_store(daemon, store)
    assert is_away(daemon.upload(TINY, headers=ASYNC)), "it would be acknowledged nowhere"


def test_node_that_is_killed(begin, store):
    """Another node makes its images, within the lease and half of it."""
    one, two = begin_node(begin), begin_node(begin)
    hold(store, "/file/")
    ids = [accept(one, body) for body in (SMALL, TINY, SMALL)]
    for ident in ids:
        for node in one, two:
            answer = node.get(f"/images/{ident}")
            assert (answer.status, answer.json()["status"]) == (202, "processing")
    one.kill()
    store.fault = None
    killed = time.monotonic()
    for ident in ids:
        assert eventually(lambda: is_stored(two, ident), 40)  # noqa: B023
        check_stored(two, two.get(f"/images/{ident}").json())
    assert time.monotonic() - killed < slow(16)
    assert eventually(lambda: not store.keys("spool/"), 20)
    assert recovery(two)["recovered"] == 3 and len(store.keys("image/")) == 3


def test_lease_of_a_node_that_lives(begin, store):
    """It is renewed, so that another node leaves the image alone."""
    one, two = begin_node(begin), begin_node(begin)
    hold(store, "/file/")
    ident = accept(one)
    (lease,) = store.keys(f"spool/{ident}.lease")
    first = store.objects[lease][0]
    store.fault = lambda method, key: Fault(delays=12) if "/file/" in key else None
    assert eventually(lambda: store.objects[lease][0] != first, 30)
    store.release()
    assert eventually(lambda: is_stored(two, ident), 40)
    assert recovery(two)["recovered"] == 0
    assert eventually(lambda: not store.keys("spool/"), 20)


def test_stolen_lease(begin, store):
    """A node that has lost its lease meanwhile leaves the image to the other node, until that
    lease ends as well."""
    daemon = begin_node(begin)
    hold(store, "/file/")
    ident = accept(daemon)
    change(store, ".lease", lambda body: OTHER.encode() + b"9" * 13 + b"\n" +
           body.partition(b"\n")[2])
    assert eventually(lambda: figures(daemon)["failed"] > 0, 20), "storing it has failed"
    store.fault = None
    assert not eventually(lambda: store.keys("image/"), 2)
    change(store, ".lease", give_to_another_node)
    assert eventually(lambda: is_stored(daemon, ident), 30)
    check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert eventually(lambda: not store.keys("spool/"), 20)


def test_lease_that_is_lost_while_the_image_is_stored(begin, store):
    """Both nodes store the same objects. What the other one has is left to it."""
    daemon = begin_node(begin)
    hold(store, "/file/")
    ident = accept(daemon)
    change(store, ".lease", lambda body: OTHER.encode() + b"9" * 13 + b"\n" +
           body.partition(b"\n")[2])
    store.fault = None
    assert eventually(lambda: is_stored(daemon, ident), 20)
    check_stored(daemon, daemon.get(f"/images/{ident}").json())
    assert len(store.keys(f"spool/{ident}")) == 2
    change(store, ".lease", give_to_another_node)
    assert eventually(lambda: not store.keys("spool/"), 20)
    check_stored(daemon, daemon.get(f"/images/{ident}").json())


def test_two_nodes_that_take_the_same_image(begin, store):
    """One of them wins, or both make the same objects."""
    nodes = [begin_node(begin) for _ in range(3)]
    hold(store, "/file/")
    ids = [accept(nodes[0], TINY) for _ in range(4)]
    nodes[0].kill()
    for ident in ids:
        change(store, f"{ident}.lease", give_to_another_node)
    store.fault = None
    for ident in ids:
        assert eventually(lambda: is_stored(nodes[1], ident), 40)  # noqa: B023
        check_stored(nodes[2], nodes[1].get(f"/images/{ident}").json())
    assert eventually(lambda: not store.keys("spool/"), 20)
    assert len(store.keys("image/")) == 4


def test_removal_of_a_spooled_image(begin, store):
    """Any node removes it, while another one makes it."""
    one, two = begin_node(begin), begin_node(begin)
    hold(store, "/file/")
    ident = accept(one)
    assert remove(two, {"url": f"/images/{ident}"}).status == 204
    store.fault = None
    assert eventually(lambda: not store.keys("spool/"), 20), "the first node has seen it"
    assert not store.keys()
    for node in one, two:
        assert eventually(lambda: node.get(f"/images/{ident}").status == 404)  # noqa: B023
        assert remove(node, {"url": f"/images/{ident}"}).status == 404


def test_faults_of_spooling(begin, store):
    """A request that fails is repeated, and what cannot be spooled is not acknowledged."""
    daemon = begin_node(begin)
    for fault in (dict(status=503, code="SlowDown"), dict(cut=0, resets=True), dict(is_lost=True)):
        for part in (".lease", "/spool/0"):
            store.fail_once("PUT", part, **fault)
            ident = accept(daemon, TINY)
            assert eventually(lambda: is_stored(daemon, ident), 20)  # noqa: B023
    assert eventually(lambda: not store.keys("spool/"), 20)
    store.fail_always("PUT", "/spool/", status=500, code="InternalError")
    assert is_away(daemon.upload(TINY, headers=ASYNC))


def test_store_without_conditions(begin, store):
    store.is_plain = True
    daemon = begin(**LEASE)
    assert daemon.says("store.s3_spool = s3: the store ignores If-None-Match of a PUT")
    answer = daemon.upload(TINY, headers=ASYNC)
    assert answer.status == 201 and answer["preference-applied"] is None


def test_store_that_compares_tags_without_quotes(begin, store):
    store.tag_quotes = '"'
    daemon = begin_node(begin)
    hold(store, "/file/")
    ident = accept(daemon)
    change(store, ".lease", give_to_another_node)
    assert eventually(lambda: figures(daemon)["failed"] > 0, 20)
    store.fault = None
    assert eventually(lambda: is_stored(daemon, ident), 40)
    assert eventually(lambda: not store.keys("spool/"), 20)


def test_lease_that_is_too_short(store, tmp_path):
    done = run("--check", *overrides(*store.settings(tmp_path, s3_spool="s3", s3_lease="10s",
                                                     s3_timeout="2s")))
    assert done.returncode == 78 and "expected at least ten times store.s3_timeout" in done.stderr
