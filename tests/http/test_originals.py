"""GET /images/ID/original.jpg: for tokens whose scope names it."""

import pytest

import pictures
from test_tokens import make

SMALL = pictures.photo_jpeg(320, 240, 2)


@pytest.fixture
def site(start, tmp_path):
    path = tmp_path / "tokens"
    tokens = {"all": make("all"), "reader": make("reader", "original"), "up": make("up", "upload")}
    path.write_text("".join(line + "\n" for _, line in tokens.values()))
    path.chmod(0o600)

    def begin(*settings):
        daemon = start(f"access.tokens_file={path}", *settings)
        daemon.bearer = lambda name: [("Authorization", f"Bearer {tokens[name][0]}")]
        daemon.source = daemon.image(SMALL, headers=daemon.bearer("up"))
        daemon.original = daemon.source["url"] + "/original.jpg"
        return daemon

    return begin


@pytest.mark.also_with("seda")
def test_an_original_is_served_to_its_scope_only(site):
    daemon = site("server.keep_originals=yes")
    assert daemon.get(daemon.original).status == 401
    for name in ("all", "up"):  # a line without a scope does not name originals
        answer = daemon.get(daemon.original, headers=daemon.bearer(name))
        assert answer.status == 403 and 'scope="original"' in answer["www-authenticate"]
    answer = daemon.get(daemon.original, headers=daemon.bearer("reader"))
    assert answer.status == 200 and answer.body == SMALL
    assert answer["cache-control"] == "private, no-store"
    assert daemon.upload(SMALL, headers=daemon.bearer("reader")).status == 403
    assert daemon.get(daemon.source["url"]).status == 200


def test_an_original_has_a_tag_and_ranges(site):
    daemon = site("server.keep_originals=yes")
    bearer = daemon.bearer("reader")
    whole = daemon.get(daemon.original, headers=bearer)
    part = daemon.get(daemon.original, headers=[*bearer, ("Range", "bytes=10-19")])
    assert (part.status, part.body, part["etag"]) == (206, SMALL[10:20], whole["etag"])
    assert part["cache-control"] == "private, no-store"
    known = daemon.get(daemon.original, headers=[*bearer, ("If-None-Match", whole["etag"])])
    assert known.status == 304 and known["cache-control"] == "private, no-store"
    with daemon.client() as c:
        head = c.request("HEAD", daemon.original, headers=bearer)
        assert head.status == 200 and int(head["content-length"]) == len(SMALL)
        assert c.request("HEAD", daemon.original).status == 401
        assert c.request("DELETE", daemon.original, headers=bearer).status == 405


def test_an_original_that_is_not_kept_is_absent(site):
    daemon = site("server.keep_originals=no")
    answer = daemon.get(daemon.original, headers=daemon.bearer("reader"))
    assert answer.status == 404 and "its original is not kept" in answer.json()["detail"]


def test_without_tokens_no_original_is_served(start):
    daemon = start("server.keep_originals=yes")
    answer = daemon.get(daemon.image(SMALL)["url"] + "/original.jpg")
    assert (answer.status, answer.slug) == (403, "forbidden")
