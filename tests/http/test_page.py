"""The web pages, in a headless Chromium: uploads and the gallery, and the operator's page. Skipped
without chromium."""

import hashlib
import re
import xml.dom.minidom

import pytest

import pictures
from browser import CHROMIUM, Page
from darkroom import PER_CONNECTION, ROOT, eventually

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
SAMPLES = sorted((ROOT / "data" / "sample").glob("*.jpg"))[:3]
FILES = sorted(p.name for p in (ROOT / "stages" / "page").iterdir())
PUBLIC = "server.page=yes", "server.public_list=yes"
OPERATOR = "server.admin_listen=127.0.0.1:0", "server.admin_control=yes"

CONTROL = [("X-Darkroom-Control", "1")]

# What axe-core calls label, button-name, image-alt, duplicate-id and color-contrast, for what is
# visible. Contrast is that of WCAG 2.2, 1.4.3.
FAULTS = r"""(() => {
  const faults = [], ids = new Set();
  const name = (e) => (e.getAttribute('aria-label') || e.alt || e.textContent.trim() ||
    [...e.querySelectorAll('img')].map((i) => i.alt).join('') ||
    [...(e.labels || [])].map((l) => l.textContent).join('')).trim();
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) faults.push(`id ${e.id} exists twice`);
    ids.add(e.id);
  }
  for (const e of document.querySelectorAll('input,select,button,a,img,[role=img],[tabindex]'))
    if (e.checkVisibility() && !name(e)) faults.push(`no name: ${e.outerHTML.slice(0, 80)}`);
  for (const e of document.body.querySelectorAll('*')) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || !e.checkVisibility() || e.closest('.visually-hidden,noscript')) continue;
    const style = getComputedStyle(e);
    const a = light(numbers(e.closest('svg') ? style.fill : style.color).slice(0, 3));
    const b = light(back(e).slice(0, 3));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 80)}`);
  }
  return faults;
})()"""


@pytest.fixture
def browse(tmp_path):
    """browse(...) returns a page; after the test none may have an error, or have asked others."""
    pages = []

    def new(**options):
        pages.append(Page(tmp_path / f"profile{len(pages)}", **options))
        return pages[-1]

    yield new
    for page in pages:
        page.close()
        assert not page.errors
        hosts = {url.split("/")[2] for url in page.requests if not url.startswith(("blob:", "about:"))}
        assert all(host.startswith("127.0.0.1:") for host in hosts) and len(hosts) <= 1, hosts


def admin_url(daemon):
    return re.search(r"administration on (http://\S+)", daemon.log)[1]


# ---- uploads ----

def check_uploads(page, daemon, samples=SAMPLES):
    assert page.wait(f"document.querySelectorAll('#uploads .variants').length === {len(samples)}")
    shown = "[...document.querySelectorAll('#uploads img')]"
    page.js(f"{shown}.forEach((i) => {{ i.loading = 'eager'; }})")
    assert page.wait(f"{shown}.every((i) => i.complete && i.naturalWidth > 0)")
    sizes = page.js(f"{shown}.map((i) => [i.naturalWidth, i.naturalHeight,"
                    " Number(i.dataset.width), Number(i.dataset.height)])")
    assert len(sizes) == 3 * len(samples)
    assert all(size[:2] == size[2:] for size in sizes), sizes
    images = daemon.get("/images").json()["images"]
    assert (sorted(s[:2] for s in sizes)
            == sorted([v["width"], v["height"]] for i in images for v in i["variants"].values()))


@needs_browser
def test_dropped_photos_become_variants_and_enter_the_gallery(start, browse):
    daemon, page = start(*PUBLIC), browse()
    page.open(daemon.url)
    page.drop(400, 250, SAMPLES)
    check_uploads(page, daemon)
    assert page.wait("document.querySelectorAll('#gallery li').length === 3")
    assert page.js("document.querySelectorAll('.times svg rect').length") > 6
    assert not page.js(FAULTS)
    page.js("document.querySelector('#gallery button').click()")
    assert page.wait("document.querySelectorAll('#gallery li').length === 2")
    assert page.dialog and len(daemon.get("/images").json()["images"]) == 2


@needs_browser
def test_page_works_by_keyboard_and_on_a_dark_phone(start, browse):
    daemon, page = start(*PUBLIC), browse(width=390, height=844, phone=True, dark=True)
    page.open(daemon.url)
    page.press("Tab")
    assert page.js("document.activeElement.id") == "files"
    page.choose("#files", SAMPLES[:1])  # what Space opens is the browser's own dialogue
    check_uploads(page, daemon, SAMPLES[:1])
    seen = set()
    for _ in range(12):
        page.press("Tab")
        seen.add(page.js("document.activeElement.textContent.trim()"))
    assert {"Token", "Copy link", "Delete"} <= seen
    assert page.js("document.documentElement.scrollWidth") <= 390
    assert not page.js(FAULTS)


@needs_browser
def test_errors_are_shown_in_the_words_of_the_server(start, browse, tmp_path):
    daemon, page = start(*PUBLIC), browse()
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    page.open(daemon.url)
    page.choose("#files", [bad])
    assert page.wait("document.querySelector('#uploads .error')")
    answer = daemon.upload(bad.read_bytes()).json()
    shown = page.js("document.querySelector('#uploads .error').textContent")
    assert answer["title"] in shown and answer["detail"].removeprefix("the body ") in shown
    page.errors[:] = [e for e in page.errors if "status of 4" not in e]  # the browser's own line


@needs_browser
def test_answer_202_is_polled(start, browse):
    daemon, page = start(*PUBLIC, "server.respond_after=decode"), browse()
    page.open(daemon.url)
    page.choose("#files", SAMPLES)
    check_uploads(page, daemon)


@needs_browser
def test_token_is_asked_for_and_kept_for_the_session(start, browse, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"page {hashlib.sha256(b'a' * 43).hexdigest()}\n")
    tokens.chmod(0o600)
    daemon, page = start("server.page=yes", f"access.tokens_file={tokens}"), browse()
    page.open(daemon.url)
    page.choose("#files", SAMPLES[:1])
    assert page.wait("document.querySelector('#uploads .error') && "
                     "document.getElementById('token-box').open")
    page.js("document.getElementById('token').focus()")
    page.call("Input.insertText", text="a" * 43)
    page.press("Tab")
    page.choose("#files", SAMPLES[:1])
    assert page.wait("document.querySelectorAll('#uploads .variants').length === 1")
    assert page.wait("document.querySelectorAll('#gallery li').length === 1")
    assert page.js("sessionStorage.getItem('token').length") == 43
    assert page.js("localStorage.length") == 0 and not page.js("document.cookie")
    page.errors[:] = [e for e in page.errors if "status of 401" not in e]


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
    assert page.wait("document.querySelectorAll('#stages tbody tr').length === 9")

    def agrees():
        with daemon.admin() as c:
            stages = {s["name"]: s for s in c.request("GET", "/stats").json()["stages"]}
        shown = table(page)
        return all([int(shown[n][0]), int(shown[n][5])] == [s["queued"], s["events"]]
                   for n, s in stages.items() if n not in ("accept_read", "http_parse"))
    assert eventually(agrees)
    assert page.wait("document.querySelectorAll('#graph g[data-stage]').length === 9")
    assert "1 in all" in page.js("document.getElementById('charts').textContent")
    assert page.wait("document.getElementById('policy').value !== ''")
    before = page.js("document.getElementById('policy').value")
    other = "srpt" if before != "srpt" else "mg1"
    page.js(f"(() => {{ const p = document.getElementById('policy'); p.value = '{other}';"
            " p.dispatchEvent(new Event('change')); })()")
    assert page.wait("document.getElementById('result').textContent.startsWith('applied')")
    with daemon.admin() as c:
        assert c.request("GET", "/stats").json()["scheduler"]["policy"] == other
    assert page.wait(f"document.getElementById('state').textContent.includes('policy {other}')")
    assert not page.js(FAULTS)


# ---- without a browser ----

def test_pages_are_small_and_may_load_nothing_from_elsewhere(start):
    daemon = start("server.page=yes")
    total = 0
    for path in ("/", "/page.js", "/page.css", "/page.svg", "/operator", "/operator.js",
                 "/operator.css", "/operator.svg"):
        answer = daemon.get(path)
        assert answer.status == 200, path
        total += len(answer.body)
        policy = answer["content-security-policy"]
        assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "http" not in policy
        assert answer["x-content-type-options"] == "nosniff"
        again = daemon.get(path, headers=[("If-None-Match", answer["etag"])])
        assert (again.status, again.body, again["etag"]) == (304, b"", answer["etag"])
        assert daemon.get(path, headers=[("If-Match", '"other"')]).status == 412
        text = answer.body.decode()
        assert not re.search(r"(src|href)=\"(https?:)?//|style=\"|\son\w+=\"|eval\(", text)
    assert total < 150_000
    assert len(FILES) == 7


def test_public_page_is_off_by_default_and_switched_live(start):
    daemon = start()
    assert [daemon.get(p).status for p in ("/", "/page.js", "/page.css")] == [404] * 3


def test_operators_part_is_not_at_the_public_address(start):
    daemon = start(*OPERATOR, *PUBLIC, "server.admin_on_public=no")
    for path in ("/operator", "/operator.js", "/stats/stream", "/graph", "/graph.svg", "/control"):
        assert daemon.get(path).status == 404, path
    with daemon.client() as c:
        assert c.request("POST", "/control?scheduler.policy=mg1", b"", CONTROL).status == 404
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
                      "scheduler.policy=mg1&x=y", "scheduler.policy=%6dg1", "scheduler.spin=1us"):
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


@pytest.mark.parametrize("host,status", [("evil.example", 403), ("evil.example:80", 403),
                                         ("10.1.2.3", 200), ("[fd00::1]:81", 200), ("x", 200)])
def test_rebound_names_switch_nothing_on_any_address(start, host, status):
    """All hosts are served, as at an address that is not loopback."""
    daemon = start(*OPERATOR, "server.hosts=*" if host != "x" else "server.hosts=x")
    if host != "x":
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
        assert answer.body.count(b"<rect") == 10 and b"form_decode to jpeg_decode: 1<" in answer.body
        xml.dom.minidom.parseString(answer.body)
    stats = daemon.get("/stats").json()
    assert len(re.findall(rb" -> ", dot.body)) == len(stats["edges"])
