"""Each alert of conf/monitoring/alerts.yml fires after the trouble that it is for, and not before.
The daemon and the trouble are real; the hours that alerts wait for pass on the test's clock."""

import shutil
import signal
import subprocess
import time

import pictures
from client import form_files
from darkroom import CONFIG, eventually
from promql import Watch
from store_files import directory_of, spool
from test_limits import begun_upload
from test_logs import Stalled, get
from test_metrics import scrape
from test_tokens import File
from uploads import JPEG, TINY

IDENT = "01K0000000000000000000000A"


def watched(daemon):
    """Returns the rules over its metrics. No alert fires."""
    watch = Watch(daemon)
    assert not watch.minutes(2)
    return watch


def test_down(start):
    daemon = start()
    watch = watched(daemon)
    daemon.kill()
    assert watch.minutes(2) == {"Down"}


def test_not_ready(start, tmp_path):
    (tmp_path / "own").mkdir()
    daemon = start(store=tmp_path / "own" / "store")
    watch = watched(daemon)
    shutil.rmtree(daemon.store)
    assert "NotReady" in watch.minutes(3)


def test_restarts(start):
    watch = watched(start())
    for count in (1, 2, 3):
        watch.daemon.stop()
        watch.daemon = start(store=watch.daemon.store)
        assert watch.minutes(1) == ({"Restarts"} if count == 3 else set())


def test_disk_almost_full(start, small_disk):
    disk = small_disk("size=4m")
    watch = watched(start("limits.free_bytes=0", store=disk / "store"))
    (disk / "filler").write_bytes(bytes(int(shutil.disk_usage(disk).free * 0.95)))
    assert "DiskAlmostFull" not in watch.minutes(9)
    assert "DiskAlmostFull" in watch.minutes(2)


def test_disk_fills_up(start, small_disk):
    disk = small_disk("size=4m")
    watch = watched(start("limits.free_bytes=0", store=disk / "store"))
    with open(disk / "filler", "wb", buffering=0) as filler:
        fired = watch.minutes(7, lambda: filler.write(bytes(100000)), step=900)
    assert fired == {"DiskFillsUp"}


def test_store_fails_and_errors(start):
    """A file size limit of the running daemon replaces a failing disk."""
    daemon = start()
    watch = watched(daemon)
    subprocess.run(["prlimit", "--pid", str(daemon.pid), "--fsize=100:"], check=True)

    def upload():
        assert daemon.upload(TINY).status == 500
    assert watch.minutes(1, upload) == {"StoreFails"}
    assert watch.minutes(6, upload) == {"StoreFails", "Errors"}


def test_overloaded(start):
    daemon = start("limits.images_in_flight=1")
    watch = watched(daemon)
    kind, body = form_files(TINY, TINY)

    def upload():
        for _ in range(12):
            assert daemon.upload(body, kind).slug == "overloaded"
    assert "Overloaded" in watch.minutes(9, upload)


def test_slow_uploads(start):
    """Two of them, so that the alert has something to see for ten minutes."""
    daemon = start("limits.body_timeout=60s")
    watch = watched(daemon)
    began = time.monotonic()
    clients = [begun_upload(daemon, TINY) for _ in range(2)]
    assert eventually(lambda: time.monotonic() - began > 5.2, step=0.2)
    for c in clients:
        c.send(TINY[-1:])
        assert c.answer().status == 201
        fired = watch.minutes(6)
    assert fired == {"SlowUploads"}


def test_memory(start, disk):
    """More images wait for memory than a slow disk can end meanwhile. Scrapes wait for it, too."""
    daemon = start("limits.memory_budget=128M", "limits.body_bytes=16M",
                   environ=disk.environ)
    watch = watched(daemon)
    disk.delay_all(200)
    picture, clients = pictures.photo_jpeg(320, 240, 3), [daemon.client() for _ in range(60)]
    for c in clients:
        c.send(c.head("POST", "/images", picture, [JPEG]) + picture)
    assert eventually(lambda: scrape(daemon)("darkroom_memory_waits_total"))
    fired = watch.minutes(3, step=300)
    disk.delay_all(0)
    assert "Memory" in fired
    assert all(c.answer().status == 201 for c in clients)


def test_quarantine(start):
    daemon = start()
    watch = watched(daemon)
    daemon.stop()
    spool(daemon.store, IDENT, TINY, "3\nbad.jpg")
    watch.daemon = start(store=daemon.store)
    assert eventually((daemon.store / ".quarantine" / IDENT).exists)
    assert watch.minutes(1) == {"Quarantine"}


def test_damaged_files(start):
    daemon = start()
    image = daemon.image(TINY)
    watch = watched(daemon)
    path = directory_of(daemon.store, image["id"]) / "thumb.jpg"
    path.write_bytes(path.read_bytes()[:-1])
    assert daemon.get(image["variants"]["thumb"]["url"]).status == 503
    assert "DamagedFiles" in watch.minutes(1)


def has_failed_reload(daemon):
    """The line of what is wrong comes before the end of the reload."""
    return lambda: scrape(daemon)("darkroom_config_last_reload_successful") == 0


def test_tokens_outdated(start, tmp_path):
    file = File(tmp_path / "access")
    daemon = start(f"access.tokens_file={file.path}")
    watch = watched(daemon)
    file.path.write_text("wrong\n")
    assert daemon.says("the tokens stay unchanged")
    daemon.signal(signal.SIGHUP)
    assert eventually(has_failed_reload(daemon))
    assert watch.minutes(2) == {"TokensOutdated", "ReloadFailed"}


def test_reload_failed(start, tmp_path):
    config = tmp_path / "site.ini"
    config.write_text(CONFIG.read_text())
    daemon = start(config=config)
    watch = watched(daemon)
    config.write_text("[nonsense]\n")
    daemon.signal(signal.SIGHUP)
    assert daemon.says("it stays unchanged")
    assert eventually(has_failed_reload(daemon))
    assert watch.minutes(2) == {"ReloadFailed"}


def after_requests(watch, count):
    """Returns the alerts that fire a minute after so many requests, each of which has a line in the
    log."""
    with watch.daemon.client() as c:
        c.send(get("/healthz") * count)
        assert all(c.answer().status == 200 for _ in range(count))
    return watch.minutes(1)


def test_log_lost_by_a_slow_reader(tmp_path):
    daemon = Stalled(tmp_path / "store")
    try:
        watch = watched(daemon)
        assert eventually(lambda: after_requests(watch, 200) == {"LogLost"})
    finally:
        daemon.resumed.set()
        daemon.stop()


def test_log_lost_by_a_full_disk(start, small_disk):
    disk = small_disk("size=4m")
    watch = watched(start("log.access=text", f"log.access_file={disk}/log"))
    (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free))
    assert eventually(lambda: after_requests(watch, 100) == {"LogLost"})
