"""The page for uploads and the gallery, in a headless Chromium. Skipped without chromium."""

import base64
import hashlib
import io
import json
import re

import PIL.Image
import pytest

import accessibility
import pictures
from browser import CHROMIUM
from darkroom import ROOT, eventually

needs_browser = pytest.mark.skipif(not CHROMIUM, reason="needs chromium")
SAMPLES = sorted((ROOT / "data" / "sample").glob("*.jpg"))[:3]
FILES = sorted(p.name for p in (ROOT / "stages" / "page").iterdir() if p.suffix not in (".c", ".h"))
PUBLIC = "server.page=yes", "server.public_list=yes"

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
    accessibility.check(page)
    page.js("document.querySelector('#gallery button').click()")
    assert page.wait("document.querySelectorAll('#gallery li').length === 2")
    assert page.dialog and len(daemon.get("/images").json()["images"]) == 2


@needs_browser
def test_formats_have_their_names(start, browse):
    daemon, page = start(*PUBLIC, "variant.thumb.formats=jpeg, avif, webp"), browse()
    page.open(daemon.url)
    page.choose("#files", SAMPLES[:1])
    assert page.wait("document.querySelectorAll('#uploads .variants').length === 1")
    shown = page.js("[...document.querySelectorAll('#uploads .meta')].map((m) => m.textContent).join()")
    assert re.findall("webp|avif", shown, re.I) == ["AVIF", "WebP"]


@needs_browser
def test_page_fits_a_dark_phone(start, browse):
    daemon, page = start(*PUBLIC), browse(width=390, height=844, phone=True, dark=True)
    page.open(daemon.url)
    page.choose("#files", SAMPLES[:1])
    check_uploads(page, daemon, SAMPLES[:1])
    assert page.wait("document.querySelectorAll('#gallery li').length === 1")
    assert page.js("document.documentElement.scrollWidth") <= 390
    accessibility.check(page)


@needs_browser
def test_keyboard_alone_uploads_copies_and_deletes(start, browse):
    """No call of the protocol but keys, and the files that the browser's own dialogue returns."""
    daemon, page = start(*PUBLIC), browse()
    page.call("Page.setInterceptFileChooserDialog", enabled=True)
    page.open(daemon.url)
    page.tab_to("e.id === 'files'")
    page.press(" ")
    assert eventually(lambda: page.choosers)
    page.call("DOM.setFileInputFiles", backendNodeId=page.choosers[0], files=[str(SAMPLES[0])])
    check_uploads(page, daemon, SAMPLES[:1])
    page.tab_to("e.textContent === 'Copy link'")
    page.press("Enter")
    assert page.wait("document.activeElement.textContent === 'Copied'") or page.dialog
    assert page.wait("document.querySelectorAll('#gallery li').length === 1")
    page.tab_to("e.textContent === 'Delete'")
    page.press(" ")
    assert page.wait("document.querySelectorAll('#gallery li').length === 0")
    assert not daemon.get("/images").json()["images"]
    assert page.js("document.activeElement.id") == "files"


PASTE = """(() => {
  const clipboardData = new DataTransfer();
  for (const [data, name, type] of %s) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    clipboardData.items.add(new File([bytes], name, {type}));
  }
  document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true}));
})()"""


def paste(page, *files):
    page.js(PASTE % json.dumps([(base64.b64encode(data).decode(), *rest) for data, *rest in files]))


@needs_browser
def test_pasted_picture_is_uploaded(start, browse):
    daemon, page = start(*PUBLIC), browse()
    page.open(daemon.url)
    paste(page, (SAMPLES[0].read_bytes(), "pasted.jpg", "image/jpeg"))
    check_uploads(page, daemon, SAMPLES[:1])
    (image,) = daemon.get("/images").json()["images"]
    assert image["filename"] == "pasted.jpg"


@needs_browser
@pytest.mark.parametrize("formats, name", [("png", "image.png"), ("", "image.jpg")])
def test_pasted_screenshot_is_stored(start, browse, formats, name):
    """What Chromium pastes from a screen is a PNG. Its transparent half becomes white. A server that
    reads no PNG gets a JPEG of it."""
    daemon, page = start(*PUBLIC, f"input.formats={formats}"), browse()
    page.open(daemon.url)
    picture = PIL.Image.new("RGBA", (640, 400), (200, 30, 30, 255))
    picture.paste((0, 0, 0, 0), (320, 0, 640, 400))
    screenshot = io.BytesIO()
    picture.save(screenshot, "PNG")
    paste(page, (screenshot.getvalue(), "image.png", "image/png"))
    assert page.wait("document.querySelector('#uploads .state')?.textContent.startsWith('stored in')")
    (image,) = daemon.get("/images").json()["images"]
    assert (image["filename"], image["width"], image["height"]) == (name, 640, 400)
    stored = PIL.Image.open(io.BytesIO(daemon.get(image["variants"]["thumb"]["url"]).body))
    for part, colour in ((.2, (200, 30, 30)), (.8, (255, 255, 255))):
        seen = stored.getpixel((int(part * stored.width), stored.height // 2))
        assert all(abs(a - b) < 12 for a, b in zip(seen, colour)), seen
    paste(page, (b"hello", "hello.png", "image/png"), (b"hello", "hello.txt", "text/plain"))
    assert page.wait("document.querySelectorAll('#uploads .error').length === 2")
    page.errors[:] = [e for e in page.errors if "status of 4" not in e]  # the browser's own lines


@needs_browser
def test_many_files_are_listed_in_their_order(start, browse):
    """The lines that move are the first ones of the newest files."""
    daemon, page = start(*PUBLIC), browse()
    page.open(daemon.url)
    data = SAMPLES[0].read_bytes()
    paste(page, (data, "z.jpg", "image/jpeg"))
    paste(page, *((data, f"{i}.jpg", "image/jpeg") for i in range(6)))
    names = page.js("[...document.querySelectorAll('#uploads .name')].map((e) => e.textContent)")
    assert names == [*(f"{i}.jpg" for i in range(6)), "z.jpg"]


@needs_browser
def test_gallery_loads_as_one_scrolls(start, browse):
    """Newest first, each image once, and no more than the screen needs."""
    daemon, page = start(*PUBLIC), browse(width=390, height=844)
    tiny = pictures.photo_jpeg(200, 200, 2)
    ids = [daemon.image(tiny)["id"] for _ in range(60)]
    page.open(daemon.url)
    items = "document.querySelectorAll('#gallery li')"
    assert page.wait(f"{items}.length >= 24")
    page.js("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
    assert page.js(f"{items}.length") < 60
    assert page.wait(f"(scrollTo(0, document.body.scrollHeight), {items}.length === 60)")
    assert page.js("document.getElementById('more').hidden")
    links = page.js(f"[...{items}].map((i) => i.querySelector('a').pathname.split('/')[2])")
    assert links == sorted(ids, reverse=True)


@needs_browser
def test_gallery_waits_for_a_click_when_the_server_cannot_be_reached(start, browse):
    daemon, page = start(*PUBLIC), browse(width=390, height=844)
    tiny = pictures.photo_jpeg(200, 200, 2)
    for _ in range(40):
        daemon.image(tiny)
    page.open(daemon.url)
    items = "document.querySelectorAll('#gallery li')"
    assert page.wait(f"{items}.length >= 24")
    page.call("Network.setBlockedURLs", urls=["*/images?*"])
    page.js("(() => { const real = fetch; window.reads = 0;"
            " window.fetch = (...all) => { window.reads++; return real(...all); }; })()")
    assert page.wait("(scrollTo(0, document.body.scrollHeight),"
                     " !document.getElementById('gallery-error').hidden)")
    page.js("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
    assert page.js("window.reads") == 1
    page.call("Network.setBlockedURLs", urls=[])
    page.js("document.getElementById('more').click()")
    assert page.wait(f"{items}.length === 40")
    assert page.js("document.getElementById('gallery-error').hidden")


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
