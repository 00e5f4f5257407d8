"""Stored images: files with their headers, ranges and validators, metadata, removal, the layout of
the store on disk, and restarts. Also probes and statistics."""

import email.utils
import json
import re
import time

import pytest
import requests

import pictures
from client import form_files
from darkroom import eventually, slow
from store_files import directory_of

SMALL = pictures.photo_jpeg(640, 480, 2)
JPEG = ("Content-Type", "image/jpeg")


@pytest.fixture(scope="module")
def stored(shared_daemon):
    """Returns (image object, its medium file)."""
    image = shared_daemon.image(SMALL)
    return image, shared_daemon.fetch(image, "medium")


def url(stored, variant="medium"):
    return stored[0]["variants"][variant]["url"]


# ---- variants ----

def test_variant_has_headers_for_caches(daemon, stored):
    answer = daemon.get(url(stored))
    assert answer.status == 200 and answer["content-type"] == "image/jpeg"
    assert answer["cache-control"] == "public, max-age=31536000, immutable"
    assert answer["x-content-type-options"] == "nosniff"
    assert daemon.get(stored[0]["url"])["cache-control"] == "no-cache"
    assert re.fullmatch(r'"[^"]+"', answer["etag"]), "not a strong validator"
    assert answer["accept-ranges"] == "bytes"
    assert (int(answer["content-length"]) == len(answer.body)
            == stored[0]["variants"]["medium"]["bytes"])
    for other in (url(stored).split("?")[0], url(stored)[:-1] + "x"):
        assert daemon.get(other)["cache-control"] == "public, max-age=3600, must-revalidate"
    if answer["last-modified"]:
        assert email.utils.parsedate_to_datetime(answer["last-modified"])
    tags = {daemon.get(url(stored, v))["etag"] for v in pictures.VARIANTS}
    assert len(tags) == 3, "files share a validator"


def test_head_has_the_headers_of_get(daemon, stored):
    with daemon.client() as c:
        for path in (url(stored), stored[0]["url"], "/healthz", "/stats", "/readyz"):
            got, head = c.request("GET", path), c.request("HEAD", path)
            assert head.status == 200 and not head.body
            names = set(got.headers) - {"date", "x-request-id"}
            if path == "/stats":
                names.discard("content-length")
            assert {n: head[n] for n in names} == {n: got[n] for n in names}
            assert int(head["content-length"]) > 0
        assert c.is_open()


def test_if_none_match_gets_304(daemon, stored):
    with daemon.client() as c:
        tag = c.request("GET", url(stored))["etag"]
        for value in (tag, f'"x", {tag}', f"W/{tag}", "*", f'W/"a",{tag},"b"'):
            for method in ("GET", "HEAD"):
                answer = c.request(method, url(stored), headers=[("If-None-Match", value)])
                assert answer.status == 304 and answer["etag"] == tag, value
                assert answer["cache-control"] == "public, max-age=31536000, immutable"
        for value in ('"x"', tag.strip('"'), '""', '"', "", tag[:-2] + '"'):
            answer = c.request("GET", url(stored), headers=[("If-None-Match", value)])
            assert answer.status == 200, value
        answer = c.request("GET", url(stored),
                           headers=[("If-None-Match", tag), ("Range", "bytes=0-0")])
        assert answer.status == 304


def test_etags_may_stand_in_several_lines(daemon, stored):
    tag = daemon.get(url(stored))["etag"]
    for lines, status in ((('"x"', tag), 304), ((tag, '"x"'), 304), (('"x"', '"y"'), 200)):
        headers = [("If-None-Match", line) for line in lines]
        assert daemon.get(url(stored), headers=headers).status == status, lines
        headers = [("if-match", line) for line in lines]
        answer = daemon.get(url(stored), headers=headers)
        assert answer.status == (200 if status == 304 else 412), lines


def test_conditions_of_get(daemon, stored):
    """In the order of RFC 9110 13.2.2, for variants and for metadata."""
    for path in (url(stored), stored[0]["url"]):
        with daemon.client() as c:
            whole = c.request("GET", path)
            tag, modified = whole["etag"], whole["last-modified"]
            then = email.utils.parsedate_to_datetime(modified).timestamp()
            assert 0 <= email.utils.parsedate_to_datetime(whole["date"]).timestamp() - then
            before, after = (email.utils.formatdate(then + d, usegmt=True) for d in (-1, 1))
            for headers, status in (
                    ((("If-Match", tag),), 200), ((("If-Match", "*"),), 200),
                    ((("If-Match", '"x"'),), 412), ((("If-Match", f"W/{tag}"),), 412),
                    ((("If-Unmodified-Since", before),), 412),
                    ((("If-Unmodified-Since", modified),), 200),
                    ((("If-Unmodified-Since", "yesterday"),), 200),
                    ((("If-Match", tag), ("If-Unmodified-Since", before)), 200),
                    ((("If-Match", '"x"'), ("If-None-Match", tag)), 412),
                    ((("If-None-Match", tag), ("If-Modified-Since", before)), 304),
                    ((("If-None-Match", '"x"'), ("If-Modified-Since", after)), 200),
                    ((("If-Modified-Since", modified),), 304),
                    ((("If-Modified-Since", before),), 200),
                    ((("If-Match", '"x"'), ("Range", "bytes=0-0")), 412)):
                for method in ("GET", "HEAD"):
                    answer = c.request(method, path, headers=headers)
                    assert answer.status == status, (path, headers)
                    if status == 200 and method == "GET":
                        assert answer.body == whole.body
                    if status == 304:
                        assert answer["etag"] == tag
                    if status == 412 and method == "GET":
                        assert answer.slug == "precondition-failed"
            other = path.split("?")[0] + "x"
            assert c.request("GET", other, headers=[("If-Match", '"x"')]).status == 404


def test_delete_has_conditions(daemon):
    image = daemon.image(SMALL)
    with daemon.client() as c:
        whole = c.request("GET", image["url"])
        for headers in ([("If-Match", '"x"')], [("If-None-Match", "*")],
                        [("If-None-Match", '"x"'), ("If-None-Match", whole["etag"])],
                        [("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")]):
            answer = c.request("DELETE", image["url"], headers=headers)
            assert (answer.status, answer.slug) == (412, "precondition-failed"), headers
            assert c.request("GET", image["url"]).body == whole.body
        fresh = [("If-Match", whole["etag"]), ("If-Unmodified-Since", whole["last-modified"])]
        assert c.request("DELETE", image["url"], headers=fresh).status == 204
        # Without an image, the conditions do not matter.
        for headers in ([("If-Match", '"x"')], fresh):
            assert c.request("DELETE", image["url"], headers=headers).status == 404


def test_uploads_have_conditions(daemon):
    """Their target exists, as the list of images, and has no entity tag (RFC 9110 13.1)."""
    before = daemon.stored()
    for condition in (("If-Match", '"x"'), ("If-None-Match", "*")):
        answer = daemon.upload(SMALL, headers=[condition])
        assert (answer.status, answer.slug) == (412, "precondition-failed"), condition
        with daemon.client() as c:  # which never sends the body
            c.send(c.head("POST", "/images", None, [
                JPEG, condition, ("Expect", "100-continue"), ("Content-Length", "1000")]))
            assert c.answer().status == 412, condition
    assert daemon.stored() == before
    for headers in ([("If-Match", "*")], [("If-None-Match", '"x"')],
                    [("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")]):
        assert daemon.upload(SMALL, headers=headers).status == 201, headers
    # Without the condition the answer would be another error: RFC 9110 13.2.1.
    assert daemon.upload(SMALL, "text/plain", headers=[("If-Match", '"x"')]).status == 415


def test_delete_of_an_image_in_flight_has_conditions(daemon):
    answer = daemon.upload(pictures.photo_jpeg(4000, 3000, 1),
                           headers=[("Prefer", "respond-async")])
    with daemon.client() as c:
        assert c.request("DELETE", answer["location"],
                         headers=[("If-Match", '"x"')]).status == 412
        assert c.request("GET", answer["location"]).status == 200
        assert c.request("DELETE", answer["location"], headers=[("If-Match", "*")]).status == 204


@pytest.mark.parametrize("value, first, last", [
    ("bytes=0-0", 0, 0), ("bytes=0-99", 0, 99), ("bytes=100-", 100, None), ("bytes=-1", -1, None),
    ("bytes=-100", -100, None), ("bytes=5-99999999999", 5, None), ("bytes=-99999999999", 0, None),
    ("bytes=0-", 0, None), ("BYTES=1-2", 1, 2)])
def test_range_gets_its_part_of_the_file(daemon, stored, value, first, last):
    whole, size = stored[1], len(stored[1])
    first = first + size if first < 0 else first
    last = size - 1 if last is None else last
    with daemon.client() as c:
        answer = c.request("GET", url(stored), headers=[("Range", value)])
        assert answer.status == 206, answer
        assert answer["content-range"] == f"bytes {first}-{last}/{size}"
        assert answer.body == whole[first:last + 1]
        assert answer["content-type"] == "image/jpeg" and answer["etag"]
        assert c.is_open()


@pytest.mark.parametrize("value", ["bytes=99999999-", "bytes=-0", "bytes=99999999-100000000",
                                   "bytes=18446744073709551615-18446744073709551616"])
def test_unsatisfiable_range_gets_416(daemon, stored, value):
    with daemon.client() as c:
        answer = c.request("GET", url(stored), headers=[("Range", value)])
        assert answer.status == 416 and answer["content-range"] == f"bytes */{len(stored[1])}"
        assert c.is_open()


@pytest.mark.parametrize("value", ["bytes=0-1,5-6", "bytes=5-4", "bytes=", "bytes=-", "bytes=a-b",
                                   "bytes", "lines=1-2", "", "bytes=1-2x", "bytes=--5",
                                   "bytes=0x1-2", "bytes= 1-2,", "bytes=1 - 2,3"])
def test_malformed_range_is_ignored(daemon, stored, value):
    answer = daemon.get(url(stored), headers=[("Range", value)])
    assert answer.status == 200 and answer.body == stored[1] and answer["content-range"] is None


def test_if_range_needs_the_same_tag(daemon, stored):
    with daemon.client() as c:
        tag = c.request("GET", url(stored))["etag"]
        for value, status in ((tag, 206), ('"other"', 200), (f"W/{tag}", 200),
                              ("Sat, 01 Jan 2000 00:00:00 GMT", 200), ("", 200)):
            answer = c.request("GET", url(stored),
                               headers=[("Range", "bytes=10-19"), ("If-Range", value)])
            assert answer.status == status, value
            assert answer.body == (stored[1][10:20] if status == 206 else stored[1])


def test_head_may_have_a_range(daemon, stored):
    with daemon.client() as c:
        answer = c.request("HEAD", url(stored), headers=[("Range", "bytes=0-9")])
        assert answer.status in (200, 206)
        assert c.is_open()


def test_ranges_make_the_whole_file(daemon, stored):
    with daemon.client() as c:
        step, size = 9973, len(stored[1])
        pieces = [c.request("GET", url(stored),
                            headers=[("Range", f"bytes={i}-{min(i + step, size) - 1}")]).body
                  for i in range(0, size, step)]
        assert b"".join(pieces) == stored[1]


# ---- metadata, removal ----

def test_metadata_is_that_of_the_upload(daemon, stored):
    answer = daemon.get(stored[0]["url"])
    assert answer.status == 200 and answer["content-type"] == "application/json"
    assert answer.json() == stored[0]


def test_metadata_has_the_file_name(daemon):
    answer = requests.post(daemon.url + "/images",
                           files={"f": ('sn\u00f8 "1".jpg', SMALL, "image/jpeg")}, timeout=slow(60))
    (image,) = answer.json()["images"]
    assert daemon.get(image["url"]).json() == image
    assert image["filename"].startswith("sn\u00f8 ")


@pytest.mark.every_policy
def test_delete_removes_the_image_and_its_files(daemon):
    image, other = daemon.image(SMALL), daemon.image(SMALL)
    with daemon.client() as c:
        assert c.request("DELETE", image["url"]).status == 204
        for path in (image["url"], *(v["url"] for v in image["variants"].values())):
            assert c.request("GET", path).status == 404
        assert c.request("DELETE", image["url"]).status == 404
        assert c.request("GET", other["url"]).status == 200
        assert c.request("GET", other["variants"]["thumb"]["url"]).status == 200
    assert image["id"] not in daemon.stored() and other["id"] in daemon.stored()
    assert eventually(lambda: not daemon.leftovers())


@pytest.mark.every_policy
def test_delete_works_while_the_image_is_processed(daemon):
    answer = daemon.upload(pictures.photo_jpeg(4000, 3000, 1),
                           headers=[("Prefer", "respond-async")])
    assert answer.status == 202
    with daemon.client() as c:
        assert c.request("DELETE", answer["location"]).status == 204
        assert c.request("GET", answer["location"]).status == 404
    assert eventually(lambda: not daemon.leftovers())
    assert answer.json()["images"][0]["id"] not in daemon.stored()


# ---- the store on disk ----

def test_store_has_its_documented_layout(start):
    daemon = start()
    images = [daemon.image(SMALL) for _ in range(5)]
    assert daemon.stored() == sorted(i["id"] for i in images)
    for image in images:
        directory = directory_of(daemon.store, image["id"])
        names = {"image.json", "original.jpg", *(f"{v}.jpg" for v in pictures.VARIANTS)}
        assert {p.name for p in directory.iterdir()} == names
        document = json.loads((directory / "image.json").read_text())
        del document["record"]
        assert document == image
        for name, variant in image["variants"].items():
            assert (directory / f"{name}.jpg").read_bytes() == daemon.fetch(image, name)
            assert (directory / f"{name}.jpg").stat().st_size == variant["bytes"]
    assert eventually(lambda: not daemon.leftovers())


@pytest.mark.every_policy
def test_failed_uploads_leave_nothing(start):
    daemon = start()
    for data in (SMALL[:5000], b"text", SMALL[:-2000]):
        assert daemon.upload(data).status >= 400
    assert daemon.stored() == [] and eventually(lambda: not daemon.leftovers())


def test_ids_sort_by_time(daemon):
    ids = []
    for _ in range(3):
        ids.append(daemon.image(pictures.photo_jpeg(16, 16))["id"])
        then = time.time_ns() // 1_000_000
        # Ids have milliseconds.
        assert eventually(lambda: time.time_ns() // 1_000_000 > then, step=0.001)
    assert ids == sorted(ids)


def test_restart_keeps_images_and_clears_leftovers(start, tmp_path):
    store = tmp_path / "store"
    first = start(store=store)
    image = first.image(SMALL)
    files = {v: first.fetch(image, v) for v in pictures.VARIANTS}
    tag = first.get(image["variants"]["medium"]["url"])["etag"]
    first.stop()
    for name in (".incoming", ".trash"):
        left = store / name / "01HZZZZZZZZZZZZZZZZZZZZZZZ"
        left.mkdir(parents=True)
        (left / "medium.jpg").write_bytes(b"unfinished")
        (store / name / f"{left.name[:-1]}A").write_bytes(b"x")
    second = start(store=store)
    assert not second.leftovers()
    assert second.get(image["url"]).json() == image
    assert {v: second.fetch(image, v) for v in pictures.VARIANTS} == files
    assert second.get(image["variants"]["medium"]["url"])["etag"] == tag
    assert second.image(SMALL)["id"] > image["id"]


@pytest.mark.every_policy
def test_kill_leaves_whole_images_or_none(start, tmp_path):
    store = tmp_path / "store"
    first = start(store=store)
    whole = [first.image(SMALL)["id"] for _ in range(3)]
    for _ in range(5):
        answer = first.upload(pictures.photo_jpeg(1600, 1200, 1),
                              headers=[("Prefer", "respond-async")])
        assert answer.status == 202
    first.kill()
    second = start(store=store)
    # Images that were acknowledged early are processed again.
    assert eventually(lambda: not list((store / ".spool").iterdir()) and not second.leftovers(), 60)
    assert eventually(lambda: second.get("/stats").json()["images"]["in_flight"] == 0)
    assert set(whole) <= set(second.stored())
    for ident in second.stored():
        image = second.get(f"/images/{ident}").json()
        for name, variant in image["variants"].items():
            assert len(second.fetch(image, name)) == variant["bytes"]


def test_missing_store_is_created(start, tmp_path):
    daemon = start(store=tmp_path / "new-store")
    assert daemon.store.is_dir()
    daemon.image(SMALL)


# ---- probes, statistics ----

def test_probes_respond(daemon):
    for path, body in (("/healthz", b"ok\n"), ("/readyz", b"ready\n")):
        answer = daemon.get(path)
        assert answer.status == 200 and answer.body == body
        assert answer["content-type"].startswith("text/plain")
        assert answer["cache-control"] == "no-store"


@pytest.mark.every_policy
def test_stats_count_requests(daemon):
    daemon.image(SMALL)
    answer = daemon.get("/stats")
    assert answer.status == 200 and answer["content-type"] == "application/json"
    assert answer["cache-control"] == "no-store"
    text = json.dumps(answer.json())
    for stage in ("accept_read", "http_parse", "form_decode", "jpeg_decode", "scale", "blur",
                  "jpeg_encode", "disk_write", "stats"):
        assert f'"{stage}"' in text
    assert daemon.get("/stats").json()["http"]["requests"] > answer.json()["http"]["requests"], (
        "requests are not counted")


def test_originals_are_kept_and_not_public(start):
    daemon = start("server.keep_originals=yes")
    sources = [pictures.photo_jpeg(300, 200, 1), pictures.photo_jpeg(200, 300, 2)]
    content_type, body = form_files(*sources)
    for image, source in zip(daemon.upload(body, content_type).json()["images"], sources):
        directory = directory_of(daemon.store, image["id"])
        assert (directory / "original.jpg").read_bytes() == source
        assert daemon.get(image["url"] + "/original.jpg").status == 403
        assert "original" not in image["variants"]
        with daemon.client() as c:
            assert c.request("DELETE", image["url"]).status == 204
        assert not directory.exists()


def test_originals_are_left_out(start):
    daemon = start("server.keep_originals=no")
    image = daemon.image(pictures.photo_jpeg(300, 200, 1))
    names = {p.name for p in directory_of(daemon.store, image["id"]).iterdir()}
    assert names == {"image.json", "medium.jpg", "thumb.jpg", "blurred.jpg"}
