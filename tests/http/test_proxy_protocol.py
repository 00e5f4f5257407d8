"""server.proxy_protocol: the header that begins a connection of a trusted proxy. test_proxy.py has
the test with a real HAProxy."""

import re
import socket
import struct

import pytest

import pictures
from client import Closed
from darkroom import eventually, overrides, run

PICTURE = pictures.photo_jpeg(64, 48, 1)
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
SETTINGS = ("server.proxy_protocol=yes", "server.trusted_proxies=127.0.0.1", "log.access=text")


def header(source, command=1, fields=b""):
    """Returns a header of version 2."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    body = (socket.inet_pton(family, source) * 2 + struct.pack(">HH", 4096, 8080)) + fields
    return SIGNATURE + struct.pack(">BBH", 0x20 + command,
                                   0x21 if family == socket.AF_INET6 else 0x11, len(body)) + body


def healthz(c):
    return c.head("GET", "/healthz")


@pytest.mark.parametrize("first, client", [
    (header("192.0.2.7"), "192.0.2.7"),
    (header("2001:db8::7", fields=b"\x04\x00\x03abc"), "2001:db8::7"),
    (header("192.0.2.7", command=0), "127.0.0.1"),
    (b"PROXY TCP4 192.0.2.8 127.0.0.1 4096 8080\r\n", "192.0.2.8")])
def test_the_header_names_the_client_of_all_requests(start, first, client):
    daemon = start(*SETTINGS)
    with daemon.client() as c:
        c.send(first + healthz(c))
        assert c.answer().status == 200
        assert c.request("GET", "/nowhere").status == 404
    assert daemon.says(lambda log: log.count(f"client={client} ") == 2), daemon.log


def test_the_header_may_come_in_pieces(start):
    daemon = start(*SETTINGS)
    with daemon.client() as c:
        for byte in header("192.0.2.9"):
            c.send(bytes([byte]))
        c.send(healthz(c))
        assert c.answer().status == 200
    assert daemon.says("client=192.0.2.9 ")


@pytest.mark.parametrize("first", [b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                                   SIGNATURE + b"\x33" * 4, b"PROXY nothing\r\n", b"\x16\x03\x01"])
def test_a_connection_of_a_proxy_without_a_header_is_closed(start, first):
    daemon = start(*SETTINGS)
    with daemon.client() as c:
        c.send(first)
        assert c.is_closed(60)
    assert daemon.says("a trusted proxy sent no header of the PROXY protocol; closing")


def test_a_header_that_does_not_end_is_closed(start):
    daemon = start(*SETTINGS, "limits.header_timeout=200ms")
    with daemon.client() as c:
        c.send(header("192.0.2.7")[:-1])
        assert c.is_closed(60)


def test_other_peers_send_no_header(start):
    """Their addresses cannot be invented."""
    daemon = start(*SETTINGS)
    with daemon.client(source="127.0.0.2") as c:
        assert c.request("GET", "/healthz").status == 200
    assert daemon.says("client=127.0.0.2 ")
    with daemon.client(source="127.0.0.2") as c:
        c.send(header("192.0.2.7") + healthz(c))
        assert c.answer().status == 400
    daemon.stop()
    assert "192.0.2.7" not in daemon.log


def test_clients_behind_the_header_have_their_own_limits(start):
    daemon = start(*SETTINGS, "limits.connections_per_client=1", "limits.images_per_client=1")
    with daemon.client() as first, daemon.client() as second, daemon.client() as other:
        for c, client in ((first, "192.0.2.7"), (other, "192.0.2.8")):
            c.send(header(client) + healthz(c))
            assert c.answer().status == 200
        second.send(header("192.0.2.7") + healthz(second))
        answer = second.answer()
        assert answer.status == 503
        assert answer.json()["limit"] == "limits.connections_per_client"

    def is_served():  # the first has ended
        with daemon.client() as again:
            again.send(header("192.0.2.7") + healthz(again))
            return again.answer().status == 200
    assert eventually(is_served)


def test_a_forwarded_field_is_believed_if_the_named_client_is_a_proxy(start):
    daemon = start(*SETTINGS[:1], "server.trusted_proxies=127.0.0.1 192.0.2.7", *SETTINGS[2:])
    field = ("X-Forwarded-For", "198.51.100.1")
    for client in ("192.0.2.7", "192.0.2.8"):
        with daemon.client() as c:
            c.send(header(client) + c.head("GET", "/healthz", headers=[field]))
            assert c.answer().status == 200
    assert daemon.says("client=198.51.100.1 ") and daemon.says("client=192.0.2.8 ")


def test_an_upload_follows_its_header(start):
    daemon = start(*SETTINGS)
    with daemon.client() as c:
        c.send(header("192.0.2.7") + c.head("POST", "/images", PICTURE,
                                            [("Content-Type", "image/jpeg")]) + PICTURE)
        assert c.answer().status == 201
    assert daemon.says(re.compile(r"client=192\.0\.2\.7 .*status=201").search)


def test_the_protocol_needs_trusted_proxies():
    done = run("-t", *overrides("server.proxy_protocol=yes", "server.user=root"))
    assert done.returncode == 78
    assert "proxy_protocol" in done.stderr and "expected server.trusted_proxies" in done.stderr


def test_a_drain_ends_connections_that_wait_for_a_header(start):
    daemon = start(*SETTINGS, "server.drain_delay=0")
    with daemon.client() as c:
        c.send(header("192.0.2.7") + healthz(c))
        assert c.answer().status == 200
        with daemon.client() as idle:
            daemon.stop()
            with pytest.raises((Closed, OSError)):
                idle.send(b"x")
                idle.answer()
