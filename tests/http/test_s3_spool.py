"""store.kind = s3 with a spool: uploads that are acknowledged while the object store is away."""

import time

import pytest

import pictures
from darkroom import eventually, overrides, run, slow
from s3_fixtures import begin, figures, is_away, remove, store, stored  # noqa: F401
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
    assert len(stored(store)) == len([before] if before else [])
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
    assert eventually(lambda: not spooled(daemon) and not stored(store), 20)
    assert remove(daemon, image).status == 404
    assert daemon.get(image["url"]).status == 404


def test_image_that_waited_for_a_month_is_set_aside(start, store, tmp_path):
    """Its tombstone may be gone by now, so it might have been removed."""
    settings = store.settings(tmp_path, s3_spool="file")
    daemon = start(*settings, store=tmp_path / "root")
    end_store(daemon, store)
    ident = accept(daemon)
    daemon.kill()
    old = "01J0000000" + ident[10:]  # of 2024
    (daemon.store / ".spool" / ident).rename(daemon.store / ".spool" / old)
    daemon = start(*settings, store=tmp_path / "root")
    store.start()
    assert daemon.says(f"cannot process acknowledged image {old}", 30)
    assert daemon.says("so long ago that it may have been removed")
    assert not stored(store) and eventually(lambda: recovery(daemon)["quarantined"] == 1)


def test_store_that_hangs(begin, store):
    """Acknowledgements do not wait for a store that does not answer."""
    daemon = begin(s3_spool="file", s3_timeout="1s")
    store.fail_always("PUT", "", hangs=True)
    ids = [accept(daemon, TINY) for _ in range(3)]
    store.release()
    for ident in ids:
        assert eventually(lambda: is_stored(daemon, ident), 40)  # noqa: B023


@pytest.mark.parametrize("setting,advice", [
    (dict(s3_spool="s3"), "expected none or file"),
    (dict(s3_lease="1m"), "CHANGES.md names former keys"),
    (dict(dedupe="no"), "CHANGES.md names former keys")])
def test_settings_of_an_earlier_version(store, tmp_path, setting, advice):
    done = run("--check", *overrides(*store.settings(tmp_path, **setting)))
    assert done.returncode == 78 and advice in done.stderr, done.stderr
