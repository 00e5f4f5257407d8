"""A store that is deleted while the daemon serves, and made again: the daemon logs it and goes on."""

import shutil
import subprocess

import pytest

import pictures
from client import form_files
from darkroom import IS_SANITIZED, eventually, overrides, run
from prometheus_text import Metrics
from uploads import TINY, check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)


@pytest.fixture
def daemon(start, tmp_path):
    """The store has a directory of its own, so the sandbox covers it when it is made again."""
    (tmp_path / "own").mkdir()
    return start(store=tmp_path / "own" / "store")


def not_ready(daemon):
    answer = daemon.get("/readyz")
    return (answer.status, answer.slug) == (503, "storage-missing") and answer["retry-after"]


@pytest.mark.every_policy
def test_store_that_is_deleted_and_made_again_is_used(daemon):
    image = daemon.image(SMALL)
    shutil.rmtree(daemon.store)
    assert not_ready(daemon)
    assert Metrics(daemon.get("/metrics").body)("darkroom_ready") == 0
    assert daemon.get("/healthz").status == 200
    for _ in range(3):
        answer = daemon.upload(SMALL)
        assert (answer.status, answer.slug) == (503, "storage-missing")
    assert daemon.get(image["url"]).status == 404
    assert not daemon.store.exists(), "it may be a disk that is not mounted"
    daemon.store.mkdir()
    assert daemon.get("/readyz").status == 200
    assert Metrics(daemon.get("/metrics").body)("darkroom_ready") == 1
    check_stored(daemon, daemon.image(SMALL))
    assert len(daemon.stored()) == 1 and not daemon.leftovers()
    log = daemon.log_until_now()
    gone = f"server.root = {daemon.store} was deleted: No such file or directory; responding 503"
    assert log.count(gone) == 1, log
    assert log.count("using the directory that is there now") == 1


@pytest.mark.every_policy
@pytest.mark.parametrize("first", ["upload", "get"])
def test_no_probe_is_needed(daemon, tmp_path, first):
    """The first request that misses the store finds the new one."""
    image = daemon.image(SMALL)
    shutil.copytree(daemon.store, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(daemon.store)
    shutil.copytree(tmp_path / "copy", daemon.store)
    if first == "upload":
        kind, body = form_files(SMALL, TINY)
        answer = daemon.upload(body, kind)
        assert answer.status == 201 and len(answer.json()["images"]) == 2
    check_stored(daemon, image)
    with daemon.client() as c:
        assert c.request("DELETE", image["url"]).status == 204
    assert daemon.image(SMALL)["id"] in daemon.stored()


@pytest.mark.skipif(IS_SANITIZED, reason="the daemon has no sandbox")
def test_store_beside_others_needs_a_restart_and_says_so(start):
    """The sandbox covers the directory that was there at the start, and not its neighbours."""
    daemon = start()
    neighbour = daemon.store.parent / "neighbour"
    neighbour.mkdir()
    daemon.stop()
    daemon = start(store=daemon.store)
    shutil.rmtree(daemon.store)
    assert not_ready(daemon)
    daemon.store.mkdir()
    for _ in range(2):
        answer = daemon.get("/readyz")
        assert answer.status == 503
        assert answer.json()["detail"].endswith("a new one needs a restart")
    assert daemon.log_until_now().count("responding 503 until it is back") == 1
    assert daemon.log_until_now().count("responding 503 until a restart") == 1
    daemon.stop()
    check_stored(again := start(store=daemon.store), again.image(SMALL))


@pytest.mark.parametrize("name", [".incoming", ".trash", ".spool"])
def test_single_directories_are_made_again(start, name):
    """The root is still the same one, so the sandbox covers them anywhere."""
    daemon = start()
    (daemon.store.parent / "neighbour").mkdir()
    image = daemon.image(SMALL)
    shutil.rmtree(daemon.store / name)
    with daemon.client() as c:
        assert c.request("DELETE", image["url"]).status == 204
    shutil.rmtree(daemon.store / name, ignore_errors=True)
    answer = daemon.upload(SMALL, headers=[("Prefer", "respond-async")])
    assert answer.status == 202
    assert eventually(lambda: daemon.get(answer["location"]).status == 200)
    shutil.rmtree(daemon.store / name, ignore_errors=True)
    assert daemon.get("/readyz").status == 200 and (daemon.store / name).is_dir()


def test_store_that_was_moved_away_stays_in_use_until_there_is_another(daemon):
    image = daemon.image(SMALL)
    daemon.store.rename(daemon.store.parent / "moved")
    assert daemon.get("/readyz").status == 200
    assert daemon.get(image["url"]).status == 200
    daemon.store.mkdir()
    assert daemon.get("/readyz").status == 200
    assert daemon.get(image["url"]).status == 404
    check_stored(daemon, daemon.image(SMALL))


def test_new_store_is_locked(daemon):
    shutil.rmtree(daemon.store)
    daemon.store.mkdir()
    assert daemon.get("/readyz").status == 200
    settings = [f"server.root={daemon.store}", "server.listen=127.0.0.1:0", "server.user=root"]
    second = run(*overrides(*settings), timeout=20)
    assert second.returncode != 0 and "another darkroomd uses this store" in second.stderr


def test_a_disk_that_takes_no_image_is_not_ready(start, small_disk):
    disk = small_disk("size=4m")
    daemon = start("limits.free_bytes=1M", store=disk / "store")
    image = daemon.image(SMALL)

    def becomes(status, slug, metric):
        def is_so():
            answer = daemon.get("/readyz")
            return answer.status == status and (status == 200 or answer.slug == slug)
        return (eventually(is_so) and daemon.get(image["url"]).status == 200
                and Metrics(daemon.get("/metrics").body)("darkroom_ready") == metric)

    assert becomes(200, "", 1)
    (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free - (1 << 20) + 4096))
    assert becomes(503, "storage-full", 0)
    (disk / "filler").unlink()
    assert becomes(200, "", 1)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert becomes(503, "storage-read-only", 0)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert becomes(200, "", 1)
    assert daemon.image(SMALL)
