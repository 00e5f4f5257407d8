"""Errors of forms, paths, methods and types: the problem document, and whether the connection
survives. (The client checks the members of every problem document.)"""


import pytest

import jpegfile
import pictures
from client import form

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")
GOOD_ID = "01HZZZZZZZZZZZZZZZZZZZZZZZ"  # well-formed, but unknown


@pytest.fixture
def image(daemon):
    return daemon.image(SMALL)


# ---- 400: forms ----

KIND, BODY = form([("f", "a.jpg", "image/jpeg", SMALL)])


@pytest.mark.parametrize("name, kind, body", [
    ("no boundary", "multipart/form-data", BODY),
    ("empty boundary", "multipart/form-data; boundary=", BODY),
    ("long boundary", "multipart/form-data; boundary=" + "x" * 71, BODY),
    ("boundary not found", KIND + "x", BODY), ("cut in the picture", KIND, BODY[:len(BODY) // 2]),
    ("no last boundary", KIND, BODY[:-18]), ("last boundary cut", KIND, BODY[:-4]),
    ("part without blank line", KIND,
     b"--a-boundary\r\nContent-Disposition: form-data; name=f\r\n--a-boundary--\r\n"),
    ("header without colon", KIND, BODY.replace(b"Content-Disposition:", b"Content-Disposition")),
    ("binary", KIND, bytes(range(256)) * 50)])
def test_malformed_form_is_refused(daemon, name, kind, body):
    with daemon.client() as c:
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (400, "malformed-form"), answer
        assert c.is_open()


@pytest.mark.parametrize("parts", [[("a", None, None, b"x")], [],
                                   [("nothing chosen", "", "application/octet-stream", b"")]])
def test_form_without_an_image_is_refused(daemon, parts):
    with daemon.client() as c:
        kind, body = form(parts)
        answer = c.request("POST", "/images", body, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (400, "no-image"), answer
        assert c.is_open()


# ---- 404, 405 ----

@pytest.mark.parametrize("path", [
    "/nope", "/images/", "/images//", "/images/x", f"/images/{GOOD_ID}",
    f"/images/{GOOD_ID}/medium.jpg", f"/images/{GOOD_ID}/", "/images/" + "0" * 25,
    "/images/" + "0" * 27, "/images/" + "I" * 26, "/images/" + "Z" * 26, "/images/../../etc/passwd",
    "/../../etc/passwd", "/images/..", "/images/.incoming", "/images/.incoming/x.jpg",
    "/images/%2e%2e/%2e%2e/etc/passwd", "/images/..%2f..%2fetc%2fpasswd", "/etc/passwd",
    "/images/" + "A" * 5000, "/stats/", "/healthz/x", "/HEALTHZ", "//healthz", "/images/%00",
    "/images/%zz", "/favicon.ico", "/image.json"])
def test_unknown_path_gets_404(daemon, path):
    with daemon.client() as c:
        for method in ("GET", "HEAD"):
            answer = c.request(method, path)
            assert answer.status == 404
            assert method == "HEAD" or (answer.slug == "not-found" and b"root:" not in answer.body)
        assert c.is_open()


def test_unknown_path_in_an_image_gets_404(daemon, image):
    with daemon.client() as c:
        for name in ("image.json", "medium", "medium.jpeg", "medium.png", ".jpg",
                     "nope.jpg", "../medium.jpg", "", ".", "..", "%2e%2e%2fx.jpg", "medium.jpg/",
                     "medium.jpg/x", "MEDIUM.jpg", "a" * 300 + ".jpg", "medium.jpg%00"):
            answer = c.request("GET", f"{image['url']}/{name}")
            assert (answer.status, answer.slug) == (404, "not-found"), name
        other = f"/images/{GOOD_ID}/../{image['id']}/medium.jpg"
        assert c.request("GET", other).status == 404
        assert c.request("GET", image["url"] + "/medium.jpg").status == 200


@pytest.mark.parametrize("method, path, allowed", [
    ("PUT", "/images", {"GET", "HEAD", "POST", "OPTIONS"}),
    ("DELETE", "/images", {"GET", "HEAD", "POST", "OPTIONS"}),
    ("PUT", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ("PATCH", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ("POST", "{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
    ("DELETE", "{image}/thumb.jpg", {"GET", "HEAD", "OPTIONS"}),
    ("PUT", "{image}/thumb.jpg", {"GET", "HEAD", "OPTIONS"}),
    ("POST", "/healthz", {"GET", "HEAD", "OPTIONS"}),
    ("DELETE", "/readyz", {"GET", "HEAD", "OPTIONS"}),
    ("PROPFIND", "/stats", {"GET", "HEAD", "OPTIONS"}),
    ("TRACE", "/healthz", {"GET", "HEAD", "OPTIONS"})])
def test_wrong_method_gets_405_with_the_allowed_ones(daemon, image, method, path, allowed):
    with daemon.client() as c:
        body = b"x" * 10 if method in ("PUT", "PATCH", "POST") else None
        answer = c.request(method, path.format(image=image["url"]), body)
        assert answer.status == 405 and (method == "HEAD" or answer.slug == "method-not-allowed")
        assert {m.strip() for m in answer["allow"].split(",")} == allowed
        assert c.is_open()


@pytest.mark.parametrize(
    "kind", ["text/plain", "image/gif", "application/json", "multipart/mixed; boundary=x",
             "application/x-www-form-urlencoded", "image/jpegx", "jpeg", "", ";;"])
def test_unsupported_media_type_is_refused(daemon, kind):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL, [("Content-Type", kind)])
        assert (answer.status, answer.slug) == (415, "unsupported-media-type")
        assert c.is_open()


def test_missing_content_type_is_refused(daemon):
    with daemon.client() as c:
        assert c.request("POST", "/images", b"hello").status == 415
        assert c.is_open()


@pytest.mark.parametrize("expectation", ["200-ok", "100-continue-not", "x"])
def test_unknown_expectation_is_refused(daemon, expectation):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL, [JPEG, ("Expect", expectation)])
        assert (answer.status, answer.slug) == (417, "expectation-failed")
        assert answer.closes or c.is_open()


# ---- the connection after an error ----

@pytest.mark.every_policy
def test_connection_survives_errors(daemon, image):
    """One connection gets one error after the other, and a good response after each."""
    with daemon.client() as c:
        for method, path, body, headers, status in [
                ("GET", "/nope", None, [], 404), ("DELETE", f"/images/{GOOD_ID}", None, [], 404),
                ("PUT", "/images", b"x" * 100000, [], 405),
                ("POST", "/nope", b"x" * 100000, [], 404),
                ("POST", "/images", b"x" * 100000, [JPEG], 415),
                ("POST", "/images", b"", [JPEG], 400),
                ("POST", "/images", SMALL, [("Content-Type", "image/gif")], 415),
                ("POST", "/images", SMALL[:2000], [JPEG], 422),
                ("POST", "/images", jpegfile.header_only(65000, 65000), [JPEG], 413),
                ("POST", "/images", b"nonsense",
                 [("Content-Type", "multipart/form-data; boundary=x")], 400),
                ("GET", image["url"] + "/medium.jpg", None, [("Range", "bytes=99999999-")], 416)]:
            answer = c.request(method, path, body, headers)
            assert answer.status == status and not answer.closes, answer
            assert c.request("GET", image["url"]).json()["id"] == image["id"]
        assert c.request("POST", "/images", SMALL, [JPEG]).status == 201


# ---- OPTIONS, CORS ----

@pytest.mark.parametrize("path, allowed", [
    ("/images", {"GET", "HEAD", "POST", "OPTIONS"}), ("/healthz", {"GET", "HEAD", "OPTIONS"}),
    ("{image}", {"GET", "HEAD", "DELETE", "OPTIONS"}),
                                           ("{image}/medium.jpg", {"GET", "HEAD", "OPTIONS"})])
def test_options_names_the_allowed_methods(daemon, image, path, allowed):
    with daemon.client() as c:
        answer = c.request("OPTIONS", path.format(image=image["url"]))
        assert answer.status == 204 and {m.strip() for m in answer["allow"].split(",")} == allowed
        # CORS is not configured.
        assert not [h for h in answer.headers if h.startswith("access-control")]
        assert c.is_open()


def listed(value):
    """Returns the elements of a list in a header, in lower case."""
    return {element.strip().lower() for element in value.split(",")}


@pytest.mark.parametrize("origin", ["*", "https://photos.example"])
def test_cors_headers_are_in_every_response(start, origin):
    daemon = start(f"server.allow_origin={origin}")
    image = daemon.image(SMALL)
    with daemon.client() as c:
        for method, path, status in (("GET", "/healthz", 200),
                                     ("GET", image["url"] + "/thumb.jpg", 200),
                                     ("GET", "/nope", 404), ("PUT", "/images", 405),
                                     ("POST", "/images", 201), ("OPTIONS", "/images", 204)):
            body = SMALL if method == "POST" else b"" if method == "PUT" else None
            headers = [("Origin", "https://photos.example"), JPEG,
                       ("Access-Control-Request-Method", "POST")]
            answer = c.request(method, path, body, headers)
            assert answer.status == status
            assert answer["access-control-allow-origin"] == origin, answer
            assert origin == "*" or "origin" in answer["vary"].lower()
            if method == "OPTIONS":
                assert "POST" in answer["access-control-allow-methods"]
                assert listed(answer["access-control-allow-headers"]) >= {
                    "authorization", "content-type", "idempotency-key", "prefer", "range",
                    "x-expires-after", "x-request-deadline", "x-request-id"}
                assert int(answer["access-control-max-age"]) > 0
            assert listed(answer["access-control-expose-headers"]) >= {
                "accept-ranges", "content-range", "etag", "idempotent-replayed", "link", "location",
                "retry-after", "server-timing", "www-authenticate", "x-request-id"}
    with daemon.client() as c:
        c.send(b"NONSENSE\r\n\r\n")
        assert c.answer()["access-control-allow-origin"] == origin
