"""Which hosts and which web pages a daemon on a loopback address serves: DNS rebinding, and requests
that a browser sends for pages of other sites."""

import socket

import pytest

from client import Client
from darkroom import slow
from uploads import TINY

JPEG = ("Content-Type", "image/jpeg")
HOST = "photos.example:8080"
OWN = f"http://{HOST}"


def ask(daemon, host, method="GET", path="/healthz", headers=(), body=b""):
    """Makes a request with this Host, or none."""
    with daemon.client() as c:
        lines = [f"{method} {path} HTTP/1.{0 if host is None else 1}"]
        lines += [] if host is None else [f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [f"Content-Length: {len(body)}"] if body else []
        c.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        return c.answer()


# ---- hosts ----

@pytest.fixture
def strict(share):
    """The shipped configuration: no server.hosts."""
    return share("server.hosts=")


def test_loopback_has_its_own_hosts_only(strict):
    port = strict.port
    for host in ("localhost", f"LocalHost:{port}", "127.0.0.1", f"127.0.0.1:{port}", "[::1]",
                 f"[::1]:{port}", "127.0.0.1:1", "", None):
        assert ask(strict, host).status == 200, host
    for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example",
                 "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "x"):
        for method, path in (("GET", "/stats"), ("GET", "/healthz"), ("POST", "/images"),
                             ("DELETE", "/images/01ARZ3NDEKTSV4RRFFQ69G5FAV"), ("GET", "/nope")):
            answer = ask(strict, host, method, path)
            assert (answer.status, answer.slug) == (421, "misdirected"), (host, path)
            assert not answer.closes


def test_target_in_absolute_form_has_the_host(strict):
    """Host is ignored then (RFC 9112 3.2.2)."""
    assert ask(strict, "evil.example", path="http://localhost/healthz").status == 200
    assert ask(strict, "localhost", path="http://evil.example/healthz").status == 421


def test_foreign_host_is_refused_before_its_body_is_kept(strict):
    answer = ask(strict, "evil.example", "POST", "/images", [JPEG], TINY)
    assert answer.status == 421
    assert strict.stored() == []


def test_hosts_can_be_configured(start):
    daemon = start("server.hosts=images.example.org [fd00::1]")
    for host, status in (("images.example.org", 200), ("IMAGES.example.org:443", 200),
                         ("[FD00::1]", 200), ("localhost", 200), ("example.org", 421),
                         ("a.images.example.org", 421), ("images.example.or", 421)):
        assert ask(daemon, host).status == status, host
    assert ask(start("server.hosts=*"), "evil.example").status == 200


def test_other_addresses_have_every_host_unless_hosts_are_configured(start):
    """The daemon listens on all addresses, of which the test uses 127.0.0.1."""
    for settings, status in (((), 200), (("server.hosts=a",), 421)):
        with socket.create_server(("0.0.0.0", 0)) as listener:
            daemon = start("server.hosts=", *settings, "server.admin_on_public=yes",
                           sockets=[listener], wait=False)
            port = listener.getsockname()[1]
            assert daemon.says("ready on")
            daemon.host, daemon.port = "127.0.0.1", port
            assert ask(daemon, "evil.example", path="/stats").status == status
            foreign = [JPEG, ("Sec-Fetch-Site", "cross-site"), ("Origin", "http://evil.example")]
            assert ask(daemon, "localhost", "POST", "/images", foreign, TINY).status == 201


def test_administration_has_its_own_hosts_too(start, tmp_path):
    daemon = start("server.hosts=", "server.admin_listen=127.0.0.1:0", "server.admin_on_public=no")
    with daemon.admin() as c:
        assert c.request("GET", "/stats").status == 200
        c.send(b"GET /stats HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert c.answer().status == 421
    path = tmp_path / "admin"
    start("server.hosts=", f"server.admin_listen={path}")
    with Client(str(path), 0, slow(60)) as c:  # no page can reach a socket of this kind
        c.send(b"GET /stats HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert c.answer().status == 200


# ---- pages ----

def upload(daemon, *headers, host=HOST):
    return ask(daemon, host, "POST", "/images", [JPEG, *headers], TINY)


@pytest.fixture
def site(share):
    return share("server.hosts=photos.example")


@pytest.mark.parametrize("headers, status", [
    # no browser
    ((), 201),
    # a page of the same origin
    ((("Origin", OWN), ("Sec-Fetch-Site", "same-origin")), 201),
    ((("Origin", OWN),), 201),
    ((("Origin", "HTTPS://Photos.Example:8080"),), 201),
    ((("Sec-Fetch-Site", "none"),), 201),
    # a form, fetch() or an image on another page
    ((("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")), 403),
    ((("Sec-Fetch-Site", "cross-site"),), 403),
    ((("Origin", OWN), ("Sec-Fetch-Site", "cross-site")), 403),
    # another port of this machine
    ((("Origin", "http://photos.example:3000"), ("Sec-Fetch-Site", "same-site")), 403),
    # browsers without Sec-Fetch-Site
    ((("Origin", "https://evil.example"),), 403),
    ((("Origin", "http://photos.example"),), 403),
    ((("Origin", "photos.example:8080"),), 403),
    ((("Origin", "null"),), 403),
    ((("Origin", OWN), ("Origin", OWN)), 403),
    ((("Origin", ""),), 403),
    # behind a proxy that names the host of its client
    ((("Origin", "https://images.example.org"), ("X-Forwarded-Host", "images.example.org")), 201),
    ((("Origin", OWN), ("X-Forwarded-Host", "images.example.org")), 403),
    ((("Origin", "https://evil.example"), ("X-Forwarded-Host", "images.example.org")), 403)])
def test_pages_of_other_origins_cannot_change_images(site, headers, status):
    answer = upload(site, *headers)
    assert answer.status == status, answer
    if status == 403:
        assert answer.slug == "foreign-page" and answer["www-authenticate"] is None
        image = upload(site).json()["images"][0]["url"]
        assert ask(site, HOST, "DELETE", image, headers).status == 403
        assert ask(site, HOST, "GET", image, headers).status == 200
        assert ask(site, HOST, "DELETE", image).status == 204


def test_allow_origin_lets_its_pages_in(start):
    page = "https://app.example"
    daemon = start("server.hosts=photos.example", f"server.allow_origin={page}")
    crossing = ("Sec-Fetch-Site", "cross-site")
    assert upload(daemon, ("Origin", page), crossing).status == 201
    assert upload(daemon, ("Origin", page)).status == 201
    assert upload(daemon, ("Origin", "https://evil.example"), crossing).status == 403
    assert upload(daemon, crossing).status == 403
    every = start("server.hosts=photos.example", "server.allow_origin=*")
    assert upload(every, ("Origin", "https://evil.example"), crossing).status == 201
