"""Every way to upload a picture, and the responses."""

import json
import re
import socket
import subprocess
import time
import zlib

import pytest
import requests

import pictures
from client import form, form_files
from darkroom import PER_CONNECTION, TooLate, attempts, eventually, slow
from uploads import TINY, check_image, check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)
LARGE = pictures.photo_jpeg(1600, 1200, 1)
TEXT = b"no picture at all\n"


def curl(daemon, *arguments):
    """Runs curl. Returns (status, headers as text, body) of the last response."""
    done = subprocess.run(["curl", "-sS", "-i", "--max-time", str(slow(90)), *arguments,
                           daemon.url + "/images"], capture_output=True, timeout=slow(100))
    assert done.returncode == 0, done.stderr
    rest, head = done.stdout, b""
    while rest.startswith(b"HTTP/1.1") and (not head or head.startswith(b"HTTP/1.1 100")):
        head, rest = rest.split(b"\r\n\r\n", 1)
    return int(head.split()[1]), head.decode(), rest


# ---- ways to send ----

def test_curl_uploads_a_file_of_a_form(daemon, tmp_path):
    (tmp_path / "a photo.jpg").write_bytes(LARGE)
    status, head, body = curl(daemon, "-F", f"file=@{tmp_path}/a photo.jpg")
    assert status == 201
    (image,) = json.loads(body)["images"]
    assert "errors" not in json.loads(body)
    check_image(image, 1600, 1200, "a photo.jpg")
    assert f"location: {image['url']}" in head.lower().replace(image["url"].lower(), image["url"])
    check_stored(daemon, image)


@pytest.mark.every_policy
def test_curl_uploads_several_files_of_a_form(daemon, tmp_path):
    sizes = [(320, 240), (901, 1200), (64, 48)]
    arguments = []
    for i, (width, height) in enumerate(sizes):
        (tmp_path / f"{i}.jpg").write_bytes(pictures.photo_jpeg(width, height, 3 + i))
        arguments += ["-F", f"photos[]=@{tmp_path}/{i}.jpg"]
    status, head, body = curl(daemon, *arguments)
    assert status == 201 and "location:" not in head.lower()
    images = json.loads(body)["images"]
    assert len(images) == 3 and len({i["id"] for i in images}) == 3
    for i, (image, size) in enumerate(zip(images, sizes)):
        check_image(image, *size, f"{i}.jpg")
        check_stored(daemon, image)


def test_curl_uploads_several_files_of_one_field(daemon, tmp_path):
    """curl -F "f=@a,b" sends them as a multipart/mixed within the form. They count as parts."""
    sizes = [(320, 240), (64, 48)]
    for i, (width, height) in enumerate(sizes):
        (tmp_path / f"{i}.jpg").write_bytes(pictures.photo_jpeg(width, height, 3 + i))
    (tmp_path / "text").write_bytes(TEXT)
    status, _, body = curl(daemon, "-F", f"f=@{tmp_path}/0.jpg,{tmp_path}/1.jpg,{tmp_path}/text",
                           "-F", f"g=@{tmp_path}/1.jpg")
    answer = json.loads(body)
    assert status == 201 and len(answer["images"]) == 3
    for image, i in zip(answer["images"], (0, 1, 1)):
        check_image(image, *sizes[i], f"{i}.jpg")
        check_stored(daemon, image)
    (error,) = answer["errors"]
    assert (error["part"], error["filename"], error["status"]) == ("f", "text", 415)


def mixed(count, boundary="inner"):
    """Returns a form with one part that has this many files."""
    inner = b"".join(
        b"--inner\r\nContent-Disposition: attachment; filename=\"%d.jpg\"\r\n"
        b"Content-Type: image/jpeg\r\n\r\n%b\r\n" % (i, TINY) for i in range(count))
    return form([("f", None, f"multipart/mixed; boundary={boundary}", inner + b"--inner--\r\n")])


def test_mixed_parts_count_and_may_be_malformed(start):
    daemon = start("limits.parts=3")
    for count, status, slug in ((3, 201, None), (4, 413, "too-many-parts"), (0, 400, "no-image")):
        kind, body = mixed(count)
        answer = daemon.upload(body, kind)
        assert answer.status == status and (not slug or answer.slug == slug)
    for boundary in ("other", "", "x" * 71):
        kind, body = mixed(1, boundary)
        answer = daemon.upload(body, kind)
        assert (answer.status, answer.slug) == (400, "malformed-form")
        assert "(at byte " in answer.json()["detail"]


def test_file_may_have_no_name(daemon):
    """It has the name of a file, but not of a field."""
    kind, body = form_files(SMALL)
    answer = daemon.upload(body.replace(b'name="file"; ', b""), kind)
    assert answer.status == 201 and answer.json()["images"][0]["filename"] == "picture0.jpg"
    answer = daemon.upload(body.replace(b'name="file"; ', b"").replace(SMALL, TEXT), kind)
    assert answer.status == 415 and "part" not in answer.json()["errors"][0]


@pytest.mark.parametrize("name", ['a "quoted" name.jpg', 'ends with".jpg', ' ? % * | " < > . ; @.jpg'])
def test_file_name_may_have_unescaped_quotes(daemon, name):
    kind, body = form([("f", name, "image/jpeg", SMALL), ("g", "b.jpg", "image/jpeg", SMALL)])
    answer = daemon.upload(body, kind)
    assert answer.status == 201
    assert [i["filename"] for i in answer.json()["images"]] == [name, "b.jpg"]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "Br, identity"])
def test_compressed_body_is_refused_by_the_name_of_its_coding(daemon, coding):
    with daemon.client() as c:
        answer = c.request("POST", "/images", zlib.compress(SMALL),
                           [("Content-Type", "image/jpeg"), ("Content-Encoding", coding)])
        assert (answer.status, answer.slug) == (415, "unsupported-media-type")
        assert f"Content-Encoding is {coding.split(',')[0]};" in answer.json()["detail"]
        assert answer["accept-encoding"] == "identity"
        assert c.request("POST", "/images", SMALL, [
            ("Content-Type", "image/jpeg"), ("Content-Encoding", "identity")]).status == 201


@pytest.mark.parametrize("content_type",
                         ["image/jpeg", "image/jpg", "application/octet-stream", "IMAGE/JPEG; q=1"])
def test_curl_uploads_a_raw_body(daemon, tmp_path, content_type):
    (tmp_path / "x.jpg").write_bytes(SMALL)
    status, head, body = curl(daemon, "--data-binary", f"@{tmp_path}/x.jpg", "-H",
                              f"Content-Type: {content_type}")
    assert status == 201
    check_image(json.loads(body)["images"][0], 320, 240)
    assert "location: /images/" in head.lower()


def test_curl_gets_100_continue(daemon, tmp_path):
    (tmp_path / "x.jpg").write_bytes(pictures.photo_jpeg(2000, 1500, 1))
    started = time.monotonic()
    status, _, body = curl(daemon, "-H", "Expect: 100-continue", "--expect100-timeout", "60",
                           "-F", f"file=@{tmp_path}/x.jpg")
    assert status == 201 and time.monotonic() - started < 60, "curl waited for its own timeout"
    check_image(json.loads(body)["images"][0], 2000, 1500, "x.jpg")


def test_curl_uploads_a_chunked_form(daemon, tmp_path):
    (tmp_path / "x.jpg").write_bytes(LARGE)
    status, _, body = curl(daemon, "-H", "Transfer-Encoding: chunked", "-F",
                           f"file=@{tmp_path}/x.jpg")
    assert status == 201
    check_image(json.loads(body)["images"][0], 1600, 1200, "x.jpg")


def test_requests_uploads_raw_and_chunked_bodies(daemon):
    url, headers = daemon.url + "/images", {"Content-Type": "image/jpeg"}
    whole = requests.post(url, data=LARGE, headers=headers, timeout=slow(60))
    pieces = (LARGE[i:i + 10007] for i in range(0, len(LARGE), 10007))
    chunked = requests.post(url, data=pieces, headers=headers, timeout=slow(60))
    assert chunked.request.headers["Transfer-Encoding"] == "chunked"
    for answer in (whole, chunked):
        assert answer.status_code == 201
        check_image(answer.json()["images"][0], 1600, 1200)
        assert answer.headers["Location"] == answer.json()["images"][0]["url"]
    one, two = (a.json()["images"][0] for a in (whole, chunked))
    assert all(daemon.fetch(one, v) == daemon.fetch(two, v) for v in pictures.VARIANTS)


def test_requests_uploads_a_form(daemon):
    answer = requests.post(daemon.url + "/images", timeout=slow(60), data={"title": "holiday"},
                           files=[("file", ("a.jpg", SMALL, "image/jpeg")),
                                  ("file", ("b.jpg", LARGE))])
    assert answer.status_code == 201
    first, second = answer.json()["images"]
    check_image(first, 320, 240, "a.jpg")
    check_image(second, 1600, 1200, "b.jpg")


@pytest.mark.also_with("thread-per-connection")
def test_100_comes_before_the_body_is_sent(daemon):
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL,
                      [("Content-Type", "image/jpeg"), ("Expect", "100-Continue")]))
        assert c.wait_interim() == 100
        c.socket.settimeout(0.1)
        with pytest.raises(socket.timeout):
            c.socket.recv(1)
        c.socket.settimeout(slow(60))
        c.send(SMALL)
        assert c.answer().status == 201
        assert c.is_open()


def test_body_may_come_with_the_expectation(daemon):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL,
                           [("Content-Type", "image/jpeg"), ("Expect", "100-continue")])
        assert answer.status == 201
        assert c.interim in ([], [100])
        assert c.is_open()


def test_refused_request_gets_no_100(daemon):
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [
            ("Content-Type", "image/gif"), ("Content-Length", "1000"), ("Expect", "100-continue")]))
        assert c.answer().status == 415
        assert not c.interim


def test_query_strings_are_ignored(daemon):
    with daemon.client() as c:
        answer = c.request("POST", "/images?width=3&x=%00", SMALL, [("Content-Type", "image/jpeg")])
        assert answer.status == 201
        url = answer.json()["images"][0]["url"]
        assert c.request("GET", f"{url}?a=b").status == 200
        assert c.request("GET", f"{url}/thumb.jpg?v=2").status == 200


# ---- forms ----

def test_plain_fields_are_ignored(daemon):
    kind, body = form([("title", None, None, b"x"),
                       ("csrf", None, "text/plain; charset=utf-8", b"y" * 5000),
                       ("file", "a.jpg", "image/jpeg", SMALL), ("empty", None, None, b"")])
    answer = daemon.upload(body, kind)
    assert answer.status == 201 and len(answer.json()["images"]) == 1
    assert "errors" not in answer.json()


def test_empty_file_input_is_ignored(daemon):
    kind, body = form([("first", "", "application/octet-stream", b""),
                       ("second", "a.jpg", "image/jpeg", SMALL)])
    answer = daemon.upload(body, kind)
    assert answer.status == 201 and len(answer.json()["images"]) == 1
    assert "errors" not in answer.json()


def test_part_with_an_image_type_needs_no_file_name(daemon):
    answer = daemon.upload(*reversed(form([("blob", None, "image/jpeg", SMALL)])))
    assert answer.status == 201
    check_image(answer.json()["images"][0], 320, 240)


def test_file_needs_no_content_type(daemon):
    answer = daemon.upload(*reversed(form([("f", "x.jpg", None, SMALL)])))
    assert answer.status == 201
    check_image(answer.json()["images"][0], 320, 240, "x.jpg")


@pytest.mark.every_policy
def test_bad_parts_do_not_affect_good_ones(daemon):
    kind, body = form([("a", "a.jpg", "image/jpeg", SMALL), ("b", "b.txt", "text/plain", TEXT),
                       ("c", "c.jpg", "image/jpeg", SMALL[:len(SMALL) // 2]),
                       ("d", "d.jpg", "image/jpeg", LARGE)])
    answer = daemon.upload(body, kind)
    assert answer.status == 201
    assert answer["location"] is None
    document = answer.json()
    assert [i["filename"] for i in document["images"]] == ["a.jpg", "d.jpg"]
    for image in document["images"]:
        check_stored(daemon, image)
    errors = {e["filename"]: e for e in document["errors"]}
    assert set(errors) == {"b.txt", "c.jpg"}
    assert errors["b.txt"]["status"] == 415 and errors["b.txt"]["part"] == "b"
    assert errors["b.txt"]["type"] == "urn:darkroom:problem:unsupported-media-type"
    assert errors["c.jpg"]["status"] == 422 and errors["c.jpg"]["part"] == "c"
    assert errors["c.jpg"]["type"] == "urn:darkroom:problem:damaged-image"
    assert all(e["title"] and e["detail"] for e in errors.values())


def test_single_good_part_has_a_location(daemon):
    kind, body = form([("b", "b.txt", "text/plain", TEXT), ("a", "a.jpg", "image/jpeg", SMALL)])
    answer = daemon.upload(body, kind)
    assert answer.status == 201
    assert answer["location"] == answer.json()["images"][0]["url"]
    assert len(answer.json()["errors"]) == 1


@pytest.mark.every_policy
@pytest.mark.parametrize("parts, status, slug", [
    ([TEXT], 415, "unsupported-media-type"),
    ([SMALL[:3000]], 422, "damaged-image"),
    ([TEXT, SMALL[:3000], TEXT], 422, "damaged-image"),
    ([b""], 415, "unsupported-media-type"),
])
def test_form_without_a_good_part_is_refused(daemon, parts, status, slug):
    answer = daemon.upload(*reversed(form_files(*parts)))
    assert (answer.status, answer.slug) == (status, slug)
    errors = answer.json()["errors"]
    assert sorted(e["filename"] for e in errors) == [f"picture{i}.jpg" for i in range(len(parts))]
    assert max(e["status"] for e in errors) == status


def test_file_names_come_back_as_valid_json(daemon):
    names = ["sm\u00f8rrebr\u00f8d \u2603.jpg", "back\\\\slash.jpg", "tab\there.jpg",
             "<script>&.jpg", "../../etc/passwd"]
    parts = [("f", n, "image/jpeg", SMALL) for n in names] + [
        ("q", 'quo\\"te.jpg', "image/jpeg", SMALL)]
    answer = daemon.upload(*reversed(form(parts)))
    assert answer.status == 201
    found = [i["filename"] for i in answer.json()["images"]]
    assert found[0] == names[0] and found[3] == names[3]
    assert found[5] == 'quo"te.jpg'
    kind, body = form([("f", "RAW", "image/jpeg", SMALL)])
    answer = daemon.upload(body.replace(b"RAW", b"\xff\xfe\xc3(.jpg"), kind)
    assert answer.status == 201 and answer.json()["images"][0]["filename"].endswith(".jpg")


@pytest.mark.parametrize("boundary",
                         ["x", "b" * 70, "'()+_,-./:=?", "----WebKitFormBoundary7MA4YWxkTrZu0gW"])
def test_every_legal_boundary_is_accepted(daemon, boundary):
    kind, body = form([("f", "a.jpg", "image/jpeg", SMALL)], boundary)
    quoted = kind.replace(boundary, f'"{boundary}"')
    tricky = b"preamble\r\n" + body + b"epilogue"
    assert daemon.upload(body, quoted).status == 201
    assert daemon.upload(tricky, quoted).status == 201


def test_content_may_resemble_a_boundary(daemon):
    kind, body = form(
        [("f", "a.jpg", "image/jpeg", SMALL + b"\r\n--a-boundarx\r\n--a-boundar\r\n-\r\n")])
    assert daemon.upload(body, kind).status == 201


# ---- responses ----

@pytest.mark.every_policy
def test_server_timing_has_the_stages(daemon):
    answer = daemon.upload(LARGE)
    entries = dict(re.fullmatch(r"([a-z_]+);dur=(\d+(?:\.\d+)?)", e.strip()).groups()
                   for e in answer["server-timing"].split(","))
    assert {"jpeg_decode", "scale", "blur", "jpeg_encode", "queue"} <= set(entries), entries
    assert all(float(entries[s]) > 0 for s in ("jpeg_decode", "scale", "blur", "jpeg_encode"))


@pytest.mark.every_policy
def test_server_timing_is_what_the_stages_measured(start):
    """An upload took the time that /stats reports for its stages, and nothing else happened. The
    end of a visit comes after the response, and another thread may run before it: then the stage
    reports more. That is rare for all stages but the last, which wakes the disk thread."""
    daemon = start()
    names = "jpeg_decode", "scale", "blur", "jpeg_encode"

    def sums():
        """Histograms of service times are exact in their sums."""
        return {s["name"]: s["service"]["sum_ms"]
                for s in daemon.get("/stats").json()["stages"] if s["name"] in names}

    def is_exact():
        before, begun = sums(), time.monotonic()
        answer = daemon.upload(LARGE)
        elapsed_ms = (time.monotonic() - begun) * 1000
        times = {name: float(ms) for name, ms in
                 re.findall(r"([a-z_]+);dur=([0-9.]+)", answer["server-timing"])}
        assert times["read"] < elapsed_ms and times["jpeg_decode"] < elapsed_ms

        def rest():
            after = sums()
            return {name: after[name] - before[name] - times[name] for name in names}
        assert eventually(lambda: min(rest().values()) > -0.11), rest()
        return all(rest()[name] < 0.11 for name in names[:-1])
    assert any(is_exact() for _ in range(20))


@pytest.mark.every_policy
@pytest.mark.parametrize("prefer", ["respond-async", "wait=10, respond-async",
                                    "handling=lenient, RESPOND-ASYNC; foo"])
def test_async_response_comes_before_the_variants(daemon, prefer):
    answer = daemon.upload(LARGE, headers=[("Prefer", prefer)])
    assert answer.status == 202, answer
    assert answer["preference-applied"] == "respond-async"
    (image,) = answer.json()["images"]
    assert image["status"] == "processing" and "variants" not in image
    assert (image["width"], image["height"]) == (1600, 1200)
    assert answer["location"] == image["url"] == f"/images/{image['id']}"
    for name in pictures.VARIANTS:
        box = pictures.VARIANTS[name][0]
        assert pictures.size(daemon.fetch(image, name)) == pictures.fit(1600, 1200, box)
    check_image(daemon.get(image["url"]).json(), 1600, 1200)


@pytest.mark.parametrize("prefer",
                         ["wait=5", "return=minimal", "respond-async-not", '"respond-async"'])
def test_other_preferences_are_ignored(daemon, prefer):
    answer = daemon.upload(SMALL, headers=[("Prefer", prefer)])
    assert answer.status == 201 and answer["preference-applied"] is None


@pytest.mark.every_policy
def test_async_response_has_the_files_that_cannot_be_decoded(daemon):
    kind, body = form_files(SMALL, TEXT, LARGE[:20000])
    answer = daemon.upload(body, kind, [("Prefer", "respond-async")])
    assert answer.status == 202
    assert len(answer.json()["images"]) == 1
    assert sorted(e["status"] for e in answer.json()["errors"]) == [415, 422]
    assert daemon.upload(LARGE[:20000], headers=[("Prefer", "respond-async")]).status == 422


@pytest.mark.every_policy
def test_respond_after_decode_can_be_configured(start):
    daemon = start("server.respond_after=decode")
    answer = daemon.upload(LARGE)
    assert answer.status == 202 and answer["preference-applied"] is None
    (image,) = answer.json()["images"]
    assert image["status"] == "processing"
    for name in pictures.VARIANTS:
        pictures.decode(daemon.fetch(image, name))
    check_image(daemon.get(image["url"]).json(), 1600, 1200)


@pytest.mark.every_policy
@pytest.mark.skipif(PER_CONNECTION,
                    reason="its thread processes the whole image before it responds")
@attempts(10)
def test_get_of_an_unfinished_image_says_processing(start):
    daemon = start("server.wait_timeout=5ms",
                   "variant.medium.operations=scale 6000x6000 inside, blur 40")
    image = daemon.upload(pictures.photo_jpeg(3000, 2200, 1),
                          headers=[("Prefer", "respond-async")]).json()["images"][0]
    with daemon.client() as c:
        answer = c.request("GET", image["url"])
        early = c.request("GET", image["url"] + "/medium.jpg")
        if 200 in (answer.status, early.status):
            raise TooLate("it was stored before the request")
        assert answer.status == 202 and answer["retry-after"] == "1"
        assert {k: answer.json()[k] for k in ("id", "url", "status")} == \
            {"id": image["id"], "url": image["url"], "status": "processing"}
        while early.status != 200:
            assert (early.status, early.slug, early["retry-after"]) == (503, "not-ready", "1")
            time.sleep(0.01)
            early = c.request("GET", image["url"] + "/medium.jpg")
    assert pictures.size(early.body) == (3000, 2200)
