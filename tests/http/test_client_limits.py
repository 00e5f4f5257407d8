"""Limits of one client: images in flight and images per second. A client is a token, an address, or
an IPv6 network; behind a trusted proxy it is the one that the proxy names."""

import pytest

import pictures
from client import form_files
from darkroom import eventually, run
from uploads import JPEG, TINY

PROXY = "server.trusted_proxies=127.0.0.1", "server.admin_on_public=yes"
SLOW_RATE = "limits.client_rate=0.01"  # an image in 100 s
SMALL = pictures.photo_jpeg(320, 240, 2)


def via(client):
    """What a proxy adds for this client."""
    return "X-Forwarded-For", client


def post(daemon, client, data=TINY):
    return daemon.upload(data, headers=[via(client)])


def sent(daemon, client):
    """Returns a connection whose upload is on its way."""
    c = daemon.client()
    c.send(c.head("POST", "/images", TINY, [JPEG, via(client)]) + TINY)
    return c


def check_rate(answer, burst, actual):
    """Returns after how many seconds the client shall retry."""
    assert (answer.status, answer.slug) == (429, "too-many-requests"), answer
    document = answer.json()
    assert (document["limit"], document["configured"], document["actual"]) == (
        "limits.client_burst", burst, actual)
    assert "limits.client_rate = 0.01 images per second" in document["detail"]
    return int(answer["retry-after"])


@pytest.mark.every_policy
def test_rate_of_a_client_is_limited(start):
    daemon = start(SLOW_RATE, "limits.client_burst=2")
    with daemon.client(source="127.0.0.2") as c, daemon.client(source="127.0.0.3") as other:
        image = c.request("POST", "/images", TINY, [JPEG]).json()["images"][0]
        assert c.request("POST", "/images", TINY, [JPEG]).status == 201
        for _ in range(3):
            assert 90 <= check_rate(c.request("POST", "/images", TINY, [JPEG]), 2, 3) <= 100
        for path in (image["url"], image["variants"]["thumb"]["url"], "/healthz", "/stats"):
            assert c.request("GET", path).status == 200
        assert other.request("POST", "/images", TINY, [JPEG]).status == 201
    assert len(daemon.stored()) == 3


@pytest.mark.also_with("seda", "thread-per-connection")
def test_rate_is_checked_before_the_body(start):
    daemon = start(SLOW_RATE, "limits.client_burst=1")
    assert daemon.upload(TINY).status == 201
    with daemon.client() as c:
        c.send(c.head("POST", "/images", None, [JPEG, ("Content-Length", str(8 << 20)),
                                                ("Expect", "100-continue")]))
        answer = c.answer()
        check_rate(answer, 1, 2)
        assert answer.closes and not c.interim


def test_rate_counts_each_image_of_a_form(start):
    """All of them are stored, and the client waits for longer."""
    daemon = start(SLOW_RATE, "limits.client_burst=2")
    kind, body = form_files(*[TINY] * 6)
    assert daemon.upload(body, kind).status == 201
    assert 490 <= check_rate(daemon.upload(TINY), 2, 7) <= 500


def test_rate_may_change_while_the_daemon_serves(start, tmp_path):
    config = tmp_path / "darkroom.ini"
    variant = "[variant.thumb]\noperations = scale 160x160 inside\n[limits]\nclient_rate = "
    config.write_text(variant + "0.01\nclient_burst = 1\n")
    daemon = start(config=config)
    assert [daemon.upload(TINY).status for _ in range(2)] == [201, 429]
    config.write_text(variant + "0\n")
    daemon.signal(1)
    assert eventually(lambda: daemon.upload(TINY).status == 201)


def test_network_is_one_client(start):
    daemon = start(*PROXY, SLOW_RATE, "limits.client_burst=1")
    assert post(daemon, "2001:db8:1:2::1").status == 201
    assert post(daemon, "2001:db8:1:2:ffff::9").status == 429
    assert post(daemon, "2001:db8:1:3::1").status == 201
    assert post(daemon, "192.0.2.1").status == 201
    assert post(daemon, "192.0.2.2").status == 201
    assert post(daemon, "192.0.2.1").status == 429


def test_network_has_the_configured_size(start):
    daemon = start(*PROXY, SLOW_RATE, "limits.client_burst=1", "experiment.client_ipv6_prefix=56")
    assert post(daemon, "2001:db8:1:200::1").status == 201
    assert post(daemon, "2001:db8:1:2ff::1").status == 429
    assert post(daemon, "2001:db8:1:300::1").status == 201


def test_client_that_is_named_without_a_trusted_proxy_is_not_believed(start):
    daemon = start(SLOW_RATE, "limits.client_burst=1")
    assert post(daemon, "192.0.2.1").status == 201
    assert post(daemon, "192.0.2.2").status == 429


def test_token_is_a_client(start, tmp_path):
    tokens = tmp_path / "tokens"
    made = [run("token", name).stdout.splitlines() for name in ("one", "two")]
    tokens.write_text("".join(line + "\n" for _, line in made))
    tokens.chmod(0o600)
    daemon = start(*PROXY, SLOW_RATE, "limits.client_burst=1", f"access.tokens_file={tokens}")

    def status(number, client):
        bearer = "Authorization", f"Bearer {made[number][0]}"
        return daemon.upload(TINY, headers=[bearer, via(client)]).status
    assert status(0, "192.0.2.1") == 201
    assert status(0, "192.0.2.2") == 429
    assert status(1, "192.0.2.1") == 201


def held(daemon, disk, client, count):
    """Returns a connection with a form of images that are in flight until disk.delay_all(0)."""
    disk.delay_all(300)
    kind, body = form_files(*[SMALL] * count)
    c = daemon.client()
    c.send(c.head("POST", "/images", body, [("Content-Type", kind), via(client)]) + body)
    assert eventually(lambda: daemon.get("/stats").json()["images"]["in_flight"] == count)
    return c


def test_client_with_most_images_leaves_room_for_others(start, disk):
    """It is refused when three quarters of limits.images_in_flight are used."""
    daemon = start(*PROXY, "limits.images_in_flight=16", "limits.images_per_client=0",
                   "limits.parts=12", environ=disk.environ)
    first = held(daemon, disk, "192.0.2.1", 12)
    refused = post(daemon, "192.0.2.1")
    assert (refused.status, refused.slug) == (503, "overloaded")
    others = [sent(daemon, f"192.0.2.{10 + number}") for number in range(3)]
    assert eventually(lambda: daemon.get("/stats").json()["images"]["in_flight"] == 15)
    disk.delay_all(0)
    for c in (first, *others):
        assert c.answer().status == 201
        c.close()


@pytest.mark.parametrize("client, status", [("192.0.2.1", 429), ("192.0.2.2", 201),
                                            ("127.0.0.1", 201)])
def test_client_has_a_quarter_of_the_images_in_flight(start, disk, client, status):
    """A client on this machine has no limit. The answer comes before the body."""
    daemon = start(*PROXY, "limits.images_in_flight=12", "limits.parts=3",
                   environ=disk.environ)
    first = held(daemon, disk, client if status == 429 else "192.0.2.1", 3)
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG, via(client), ("Expect", "100-continue")]))
        if status == 429:
            document = c.answer().json()
            assert (document["status"], document["limit"]) == (429, "limits.images_per_client")
            assert (document["configured"], document["actual"]) == (3, 4)
        disk.delay_all(0)
        if status == 201:
            assert c.wait_interim() == 100
            c.send(SMALL)
            assert c.answer().status == 201
    assert first.answer().status == 201
    first.close()
    assert eventually(lambda: post(daemon, client).status == 201)


# ---- much work of one client ----

# The disk of these tests holds all images.
SHORT_TARGET = ("overload.target_p90=100ms", "server.keep_originals=no")
COMMENT = b"\xff\xfe\xff\xff" + bytes(65533)
BIG = TINY[:2] + COMMENT * 16 + TINY[2:]  # 1 MB that is decoded fast


def with_much_work(daemon, disk):
    """Measures the capacity. Returns a connection of one client with 32 MB in flight, which is more
    than the daemon processes within overload.target_p90, until disk.delay_all(0)."""
    kind, body = form_files(*[TINY] * 32)

    def capacity():
        assert daemon.upload(body, kind).status == 201
        return daemon.get("/stats").json()["overload"]["classes"][0].get("backlog_limit_s")
    assert eventually(capacity)
    disk.delay_all(2000)
    kind, body = form_files(*[BIG] * 32)
    c = daemon.client()
    c.send(c.head("POST", "/images", body, [("Content-Type", kind), via("192.0.2.1")]) + body)
    assert eventually(lambda: admitted(daemon) == (32, 0))
    return c


def admitted(daemon):
    """Returns how many images are in flight, and how many uploads wait."""
    stats = daemon.get("/stats").json()
    return stats["images"]["in_flight"], stats["overload"]["waiting"]


def test_much_work_of_a_client_does_not_keep_others_out(start, disk):
    daemon = start(*PROXY, *SHORT_TARGET, environ=disk.environ)
    first = with_much_work(daemon, disk)
    refused = post(daemon, "192.0.2.1")
    assert (refused.status, refused.slug) == (503, "overloaded")
    assert "being processed" in refused.json()["detail"]
    others = [sent(daemon, f"192.0.2.{n}") for n in (2, 2, 3)]
    assert eventually(lambda: admitted(daemon) == (35, 0))
    disk.delay_all(0)
    for c in (first, *others):
        assert c.answer().status == 201
        c.close()


def test_waiting_uploads_of_a_client_do_not_keep_others_back(start, disk):
    daemon = start(*PROXY, *SHORT_TARGET, "overload.when_full=wait", environ=disk.environ)
    first = with_much_work(daemon, disk)
    second = sent(daemon, "192.0.2.1")
    assert eventually(lambda: admitted(daemon) == (32, 1))
    other = sent(daemon, "192.0.2.2")
    assert eventually(lambda: admitted(daemon) == (33, 1))
    disk.delay_all(0)
    for c in (first, second, other):
        assert c.answer().status == 201
        c.close()


def test_forms_leave_places_for_uploads_of_one_image(start, disk):
    daemon = start(*PROXY, "limits.images_in_flight=16", "limits.images_per_client=0",
                   "limits.parts=12", environ=disk.environ)
    first = held(daemon, disk, "127.0.0.1", 12)
    kind, body = form_files(*[TINY] * 4)
    refused = daemon.upload(body, kind)
    assert (refused.status, refused.slug) == (503, "overloaded")
    assert "16 exceeds limits.images_in_flight = 16 - 1" in refused.json()["detail"]
    clients = [daemon.client() for _ in range(4)]
    for c in clients:
        c.send(c.head("POST", "/images", TINY, [JPEG]) + TINY)
    assert eventually(lambda: daemon.get("/stats").json()["images"]["in_flight"] == 16)
    disk.delay_all(0)
    for c in (first, *clients):
        assert c.answer().status == 201
        c.close()
