"""Quotas of tokens: images, bytes, and uploads of a day."""

import pytest

import pictures
from client import form_files
from control import ctl
from darkroom import eventually
from store_files import bytes_of
from test_tokens import make

SMALL = pictures.photo_jpeg(60, 40, 3)
SWEEP = "store.sweep_interval=100ms"


class Site:
    """A daemon with one token."""

    def __init__(self, start, path, *quotas, settings=()):
        self.start, self.path, self.settings = start, path, settings
        self.token, self.line = make("app", "upload", "delete")
        self.write(*quotas)
        self.daemon = self.run()

    def write(self, *quotas):
        new = self.path.with_suffix(".new")
        new.write_text(" ".join([self.line, *quotas]) + "\n")
        new.chmod(0o600)
        new.rename(self.path)

    def run(self, **options):
        """Starts a daemon. What comes before it has counted the store is not counted as an upload."""
        daemon = self.start(f"access.tokens_file={self.path}", SWEEP, *self.settings, **options)
        assert eventually(lambda: daemon.get("/stats").json()["store"].get("is_counted"))
        return daemon

    @property
    def bearer(self):
        return [("Authorization", f"Bearer {self.token}")]

    def post(self, count=1, headers=()):
        content_type, body = form_files(*[SMALL] * count)
        return self.daemon.upload(body, content_type, headers=[*self.bearer, *headers])

    def upload(self, count=1):
        answer = self.post(count)
        assert answer.status == 201, answer
        return [image["id"] for image in answer.json()["images"]]

    def remove(self, ident):
        with self.daemon.client() as c:
            assert c.request("DELETE", f"/images/{ident}", headers=self.bearer).status == 204

    def figures(self):
        store = self.daemon.get("/stats").json()["store"]
        found = [t for t in store.get("tokens", []) if t["name"] == "app"]
        return [found[0][k] for k in ("images", "bytes", "uploads")] if found else [None] * 3


def refused(answer, status, limit, configured, actual):
    assert (answer.status, answer.slug) == (status, "quota-exceeded"), answer
    problem = answer.json()
    assert (problem["limit"], problem["configured"]) == (limit, configured)
    assert problem["actual"] == actual
    return True


@pytest.mark.also_with("seda")
def test_a_quota_of_images_is_given_back_by_removals(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "images=3")
    first, _ = site.upload(2)
    assert refused(site.post(2), 507, "quota.images", 3, 4)
    site.upload()
    assert refused(site.post(), 507, "quota.images", 3, 4)
    site.remove(first)
    site.upload()
    assert eventually(lambda: site.figures()[0] == 3)
    # An image that has ended is given back, too.
    assert refused(site.post(), 507, "quota.images", 3, 4)
    site.remove(sorted(p.name for p in site.daemon.store.glob("????/??/*"))[0])
    answer = site.post(headers=[("X-Expires-After", "1s")])
    assert answer.status == 201
    assert eventually(lambda: site.post().status == 201)


def test_a_quota_of_bytes_counts_stored_files_and_uploads_in_progress(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "bytes=1T")
    one = bytes_of(site.daemon.store, site.upload()[0], SMALL)
    site.write(f"bytes={one + len(SMALL)}")
    assert eventually(lambda: site.daemon.log.count("1 token loaded") >= 2)
    assert refused(site.post(2), 507, "quota.bytes", one + len(SMALL), one + 2 * len(SMALL))
    site.upload()
    assert eventually(lambda: site.figures()[:2] == [2, 2 * one]), site.figures()


def test_a_failed_image_is_given_back(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "images=1", "bytes=100K")
    for _ in range(3):
        answer = site.daemon.upload(SMALL[:len(SMALL) // 2], headers=site.bearer)
        assert answer.status == 422
    site.upload()


def test_uploads_of_a_day_are_answered_429_with_the_time_of_the_next(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "uploads=2")
    site.remove(site.upload(1)[0])
    assert refused(site.post(2), 429, "quota.uploads", 2, 3)
    site.upload()
    answer = site.post()
    assert refused(answer, 429, "quota.uploads", 2, 3)
    assert 1 <= int(answer["retry-after"]) <= 86400


def test_a_used_up_quota_is_answered_before_the_body(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "images=1")
    site.upload()
    with site.daemon.client() as c:
        c.send(b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
               b"Content-Length: 1000\r\nExpect: 100-continue\r\n"
               b"Authorization: Bearer %s\r\n\r\n" % site.token.encode())
        assert c.answer("POST").status == 507


@pytest.mark.parametrize("is_clean", [True, False], ids=["stop", "crash"])
def test_figures_of_a_token_survive(start, tmp_path, is_clean):
    site = Site(start, tmp_path / "tokens", "images=3", "uploads=10")
    removed, *_ = site.upload(3)
    site.remove(removed)
    assert eventually(lambda: site.figures()[::2] == [2, 3]), site.figures()
    before = site.figures()
    if is_clean:
        site.daemon.stop()
    else:
        site.daemon.kill()
    site.daemon = site.run(store=site.daemon.store)
    # After a crash, uploads that were removed are not known.
    expected = [*before[:2], 3 if is_clean else 2]
    assert eventually(lambda: site.figures() == expected), site.figures()
    assert refused(site.post(2), 507, "quota.images", 3, 4)
    site.upload()


def test_ctl_shows_what_is_used_beside_the_quotas(start, tmp_path):
    site = Site(start, tmp_path / "tokens", "images=5", "uploads=9")
    first, _ = site.upload(2)
    assert eventually(lambda: site.figures()[0] == 2)
    size = site.figures()[1]
    assert ctl(site.daemon, "quota").stdout == (
        f"app: images 2 of 5, bytes {size}, uploads today 2 of 9\n")
    site.remove(first)
    assert "app: images 1 of 5" in ctl(site.daemon, "quota").stdout
    site.write()
    said = "no token has a quota, so nothing is counted\n"
    assert eventually(lambda: ctl(site.daemon, "quota").stdout == said)
