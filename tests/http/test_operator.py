"""The operator's page, in a headless Chromium, and the resources that it uses: /control and
/graph. Skipped without chromium where a browser is needed."""

import concurrent.futures
import re
import xml.dom.minidom

import pytest

import accessibility
import pictures
from browser import CHROMIUM
from control import ctl
from darkroom import PER_CONNECTION, ROOT, eventually

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
SAMPLES = sorted((ROOT / "data" / "sample").glob("*.jpg"))[:3]
OPERATOR = "server.admin_listen=127.0.0.1:0", "server.admin_control=yes"
PUBLIC = "server.page=yes", "server.public_list=yes"
CONTROL = [("X-Darkroom-Control", "1")]


def admin_url(daemon):
    return re.search(r"administration on (http://\S+)", daemon.log)[1]


# ---- the operator's page ----

def table(page):
    return {row[0]: row[1:] for row in page.js(
        "[...document.querySelectorAll('#stages tbody tr')].map((r) =>"
        " [...r.cells].map((c) => c.textContent))")}


@needs_browser
def test_graph_agrees_with_stats_and_the_policy_can_be_switched(start, browse):
    daemon, page = start(*OPERATOR, *PUBLIC), browse(dark=True)
    for _ in range(3):
        daemon.image(SAMPLES[0].read_bytes())
    assert daemon.upload(b"no image").status == 415
    page.open(admin_url(daemon))
    assert page.wait("document.querySelectorAll('#stages tbody tr').length === 10")

    def agrees():
        with daemon.admin() as c:
            stages = {s["name"]: s for s in c.request("GET", "/stats").json()["stages"]}
        shown = table(page)
        return all([int(shown[n][0]), int(shown[n][5])] == [s["queued"], s["events"]]
                   for n, s in stages.items() if n not in ("accept_read", "http_parse"))
    assert eventually(agrees)
    assert page.wait("document.querySelectorAll('#graph g[data-stage]').length === 10")
    assert "1 in all" in page.js("document.getElementById('charts').textContent")
    assert page.wait("document.getElementById('state').textContent.endsWith(', 0 connections')")
    with daemon.client() as c:
        assert c.request("GET", "/healthz").status == 200
        assert page.wait("document.getElementById('state').textContent.endsWith(', 1 connection')")
    assert page.wait("document.getElementById('policy').value !== ''")
    before = page.js("document.getElementById('policy').value")
    other = "srpt" if before != "srpt" else "mg1"
    page.js(f"(() => {{ const p = document.getElementById('policy'); p.value = '{other}';"
            " p.dispatchEvent(new Event('change')); })()")
    assert page.wait("document.getElementById('result').textContent.startsWith('applied')")
    with daemon.admin() as c:
        assert c.request("GET", "/stats").json()["scheduler"]["policy"] == other
    assert page.wait(f"document.getElementById('state').textContent.includes('policy {other}')")
    accessibility.check(page)


@needs_browser
@pytest.mark.parametrize("leave, come_back", [
    ("dispatchEvent(new PageTransitionEvent('pagehide'))",
     "dispatchEvent(new PageTransitionEvent('pageshow'))"),
    ("(Object.defineProperty(document, 'hidden', {value: true, configurable: true}),"
     " document.dispatchEvent(new Event('visibilitychange')))",
     "(delete document.hidden, document.dispatchEvent(new Event('visibilitychange')))"),
])
def test_stream_is_open_only_while_somebody_looks(start, browse, leave, come_back):
    daemon, page = start(*OPERATOR, *PUBLIC), browse()
    page.open(admin_url(daemon))
    assert page.wait("document.querySelectorAll('#stages tbody tr').length === 10")
    assert page.js("stream.readyState") == 1
    page.js(leave)
    assert page.js("stream") is None
    daemon.image(SAMPLES[0].read_bytes())
    page.js(come_back)
    assert eventually(lambda: int(table(page)["jpeg_decode"][5]) == 1)


# ---- under overload ----

@needs_browser
def test_page_and_stats_count_what_clients_count(start, browse):
    """Rejected and degraded uploads, with more load than the daemon can process."""
    daemon = start(*OPERATOR, "scheduler.threads=1", "overload.target_p90=150ms",
                   "overload.degrade=quality 30, no-optimize, skip blurred")
    large = pictures.photo_jpeg(1200, 900, 3)
    for _ in range(10):
        daemon.image(large)  # it measures its capacity
    page = browse()
    page.open(admin_url(daemon))
    answers, refused, degraded = [], [], []
    for clients in (12, 24, 48, 96, 96, 96):  # as many as it takes on this machine
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            answers += pool.map(lambda _: daemon.upload(large), range(6 * clients))
        stored = [a.json()["images"][0] for a in answers if a.status == 201]
        refused = [a for a in answers if a.status != 201]
        degraded = [image["degraded"] for image in stored if "degraded" in image]
        if refused and degraded:
            break
    assert all((a.status, a.slug) == (503, "overloaded") for a in refused), refused
    assert refused and degraded, (len(refused), len(degraded))

    def counted():
        with daemon.admin() as c:
            now = c.request("GET", "/stats").json()
        return {"stored": now["images"]["stored"], "rejections": now["http"]["rejections"],
                "classes": sum(c["refused"] for c in now["overload"]["classes"]),
                "5xx": now["http"]["responses"]["5xx"],
                "degraded": {s["step"]: s["images"] for s in now["overload"]["degrade"]}}
    steps = counted()["degraded"]
    expected = {"stored": len(stored) + 10, "rejections": {"overloaded": len(refused)},
                "classes": len(refused), "5xx": len(refused),
                "degraded": {step: sum(step in image for image in degraded) for step in steps}}
    # A response is counted after it was written, and its client may be faster.
    assert eventually(lambda: counted() == expected), (counted(), expected)
    shown = f"{len(refused)} in all, {len(degraded)} degraded"
    assert page.wait(f"document.getElementById('charts').textContent.includes('{shown}')"), shown
    done = ctl(daemon, "top", "--once").stdout
    assert f"rejected 0/s, {len(refused)} in all" in done and f"degraded {len(degraded)}" in done


# ---- addresses ----

def test_operators_part_is_not_at_the_public_address(start):
    daemon = start(*OPERATOR, *PUBLIC, "server.admin_on_public=no")
    paths = ("/operator", "/operator.js", "/operator.css", "/stats", "/stats/stream",
             "/metrics", "/graph", "/graph.svg", "/control")
    for path in paths:
        assert daemon.get(path).status == 404, path
    with daemon.client() as c:
        assert switch(c).status == 404
    with daemon.admin() as c:  # they exist
        for path in paths:
            if path != "/stats/stream":
                assert c.request("GET", path).status == 200, path
    assert b"/operator.js" not in daemon.get("/").body
    with daemon.admin() as c:
        assert b"/operator.js" in c.request("GET", "/").body


# ---- /control ----

def switch(client, query="scheduler.policy=mg1", fields=CONTROL):
    return client.request("POST", f"/control?{query}", b"", fields)


@pytest.mark.every_policy
def test_settings_apply_before_the_answer(start):
    daemon = start(*OPERATOR)
    with daemon.admin() as c:
        for policy in ("mg1", "seda", "drain"):
            if PER_CONNECTION and policy != "mg1":
                continue
            answer = switch(c, f"scheduler.policy={policy}")
            assert answer.status == 200, answer
            assert answer.json()["scheduler.policy"]["value"] == policy
            assert c.request("GET", "/stats").json()["scheduler"]["policy"] == policy
        assert switch(c, "scheduler.discipline=lcfs").json()["scheduler.discipline"]["value"] \
            == "lcfs"
        answer = switch(c, "scheduler.policy=fastest")
        assert (answer.status, answer.slug) == (422, "refused-setting")
        assert "expected" in answer.json()["detail"]
        for query in ("", "scheduler.policy", "scheduler.policy=", "server.root=/", "log.level=error",
                      "scheduler.policy=mg1&x=y", "scheduler.policy=%6dg1", "experiment.spin=1us"):
            assert switch(c, query).status == 400, query
    daemon.image(pictures.photo_jpeg(64, 64, 2))


@pytest.mark.parametrize("fields", [
    [], [("Origin", "http://evil.example"), *CONTROL], [("Origin", "null"), *CONTROL],
    [("Sec-Fetch-Site", "cross-site"), *CONTROL], [("Sec-Fetch-Site", "same-site"), *CONTROL],
    [("Sec-Fetch-Site", "none"), *CONTROL],
    [("Origin", "http://x"), ("Origin", "http://evil.example"), *CONTROL]])
def test_pages_of_others_switch_nothing(start, fields):
    """Neither with a field that only a form of another site lacks, nor after a preflight."""
    daemon = start(*OPERATOR, "server.allow_origin=*")
    with daemon.admin() as c:
        answer = switch(c, fields=fields)
        assert (answer.status, answer.slug) == (403, "foreign-page"), answer
        preflight = c.request("OPTIONS", "/control", None, [
            ("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "x-darkroom-control")])
        assert not [name for name in preflight.headers if name.startswith("access-control")]
        assert c.request("GET", "/stats").json()["scheduler"]["policy"] != "mg1"
        own = [("Origin", f"http://{c.host}"), ("Sec-Fetch-Site", "same-origin"), *CONTROL]
        assert switch(c, fields=own).status == 200  # the operator's page sends these


@pytest.mark.parametrize("host,status", [("evil.example", 403), ("evil.example:80", 403),
                                         ("10.1.2.3", 200), ("[fd00::1]:81", 200), ("x", 200)])
def test_rebound_names_switch_nothing_on_any_address(start, host, status):
    """All hosts are served, as at an address that is not loopback."""
    daemon = start(*OPERATOR, "server.hosts=*" if host != "x" else "server.hosts=x")
    with daemon.admin() as c:
        c.send(f"POST /control?scheduler.policy=mg1 HTTP/1.1\r\nHost: {host}\r\n"
               f"Origin: http://{host}\r\nX-Darkroom-Control: 1\r\n"
               "Content-Length: 0\r\n\r\n".encode())
        assert c.answer().status == status


@pytest.mark.parametrize("settings", [(), ("server.admin_listen=127.0.0.1:0",)])
def test_control_is_off_by_default(start, settings):
    daemon = start(*settings)
    with daemon.admin() if settings else daemon.client() as c:
        answer = switch(c)
        assert (answer.status, answer.slug) == (403, "forbidden")
        keys = c.request("GET", "/control").json()
        assert not keys["enabled"] and keys["why"] == answer.json()["detail"]


def test_public_address_never_switches(start):
    """Also if it serves what is for operators."""
    daemon = start(*OPERATOR, "server.admin_on_public=yes")
    with daemon.client() as c:
        assert switch(c).status == 403


# ---- /graph ----

def check_line_is_seen(path, boxes):
    """A line passes no box but its two ends."""
    title = path.getElementsByTagName("title")[0].firstChild.data
    ends = title.split(":")[0].split(" to ")
    x0, y0, x1, y1, x2, y2 = (int(n) for n in re.findall(r"-?\d+", path.getAttribute("d")))
    for step in range(101):
        at = step / 100
        x, y = (a * (1 - at) ** 2 + 2 * b * at * (1 - at) + c * at ** 2
                for a, b, c in ((x0, x1, x2), (y0, y1, y2)))
        for name, (left, top, width, height) in boxes.items():
            assert name in ends or not (left < x < left + width and top < y < top + height), title


def test_graph_is_dot_or_svg(start):
    daemon = start()
    daemon.image(pictures.photo_jpeg(64, 64, 2))
    dot = daemon.get("/graph")
    assert dot["content-type"] == "text/vnd.graphviz"
    assert re.search(rb"form_decode -> jpeg_decode \[label=1, ", dot.body)
    for answer in (daemon.get("/graph.svg"),
                   daemon.get("/graph", headers=[("Accept", "text/html, image/svg+xml;q=0.9")])):
        assert answer["content-type"] == "image/svg+xml"
        assert answer["content-security-policy"] == "default-src 'none'"
        assert answer.body.count(b"<rect") == 11 and b"form_decode to jpeg_decode: 1<" in answer.body
        svg = xml.dom.minidom.parseString(answer.body).documentElement
    right, bottom = (int(n) for n in svg.getAttribute("viewBox").split()[2:])
    boxes = [[int(rect.getAttribute(name)) for name in ("x", "y", "width", "height")]
             for rect in svg.getElementsByTagName("rect") if rect.hasAttribute("x")]
    margin = min(x for x, *_ in boxes)
    assert margin == min(y for _, y, *_ in boxes) > 0
    assert max(x + width for x, _, width, _ in boxes) == right - margin
    assert max(y + height for _, y, _, height in boxes) == bottom - margin
    names = [rect.parentNode.getElementsByTagName("text")[0].firstChild.data
             for rect in svg.getElementsByTagName("rect") if rect.hasAttribute("x")]
    for path in svg.getElementsByTagName("path")[1:]:
        check_line_is_seen(path, dict(zip(names, boxes)))
    assert answer.body.rindex(b"<path") < answer.body.index(b"<g><rect") < answer.body.rindex(
        b"</g>\n<g") < answer.body.index(b'<text x="', answer.body.rindex(b"</g>\n<g"))
    labels = [text.firstChild.data for text in svg.getElementsByTagName("text")]
    edges = [title.firstChild.data for title in svg.getElementsByTagName("title")[1:]]
    used = [edge.split(": ")[1] for edge in edges if not edge.endswith(": 0")]
    assert 0 < len(used) < len(edges) and [n for n in labels if n.isdigit()] == used
    stats = daemon.get("/stats").json()
    assert len(re.findall(rb" -> ", dot.body)) == len(stats["edges"])
