"""Files of other formats than JPEG: formats, effort and when of a variant."""

import contextlib
import io
import os
import random
import re
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest
from PIL import Image, ImageCms

import pictures
from darkroom import eventually, run
from store_files import directory_of, files_of
from test_other_formats import processes

PHOTO = pictures.photo_jpeg(1203, 801, 5)
BOTH = "variant.medium.formats=jpeg, avif, webp"
AVIF = "variant.medium.formats=jpeg, avif"
IDLE = "variant.medium.when=idle"
KEEP = "server.keep_originals=yes"

needs_avifdec = pytest.mark.skipif(not shutil.which("avifdec"), reason="no avifdec: libavif-bin")


def decode(data, tmp_path):
    """Returns the pixels of a WebP or, by another program, of an AVIF."""
    if data[:4] == b"RIFF":
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    (tmp_path / "x.avif").write_bytes(data)
    subprocess.run(["avifdec", tmp_path / "x.avif", tmp_path / "x.png"], check=True,
                   capture_output=True)
    return np.asarray(Image.open(tmp_path / "x.png").convert("RGB"))


def sources(image, variant="medium"):
    """Returns {type: URL} of a variant."""
    found = image["variants"][variant].get("sources", [])
    width = image["variants"][variant]["width"]
    urls = {s["type"]: s["srcset"].split() for s in found}
    assert {width for _, width in urls.values()} <= {f"{width}w"}
    return {kind: url for kind, (url, _) in urls.items()}


def source(daemon, image, kind="image/avif", variant="medium"):
    return daemon.get(sources(image, variant)[kind])


@needs_avifdec
@pytest.mark.also_with("seda", "thread-per-connection", "srpt")
@pytest.mark.parametrize("name, make", [
    ("colours", lambda: PHOTO),
    ("grey", lambda: pictures.jpeg(pictures.make_photo(640, 427, 3).convert("L"), 88)),
    ("small and odd", lambda: pictures.photo_jpeg(31, 17, 4))])
def test_each_format_shows_the_picture(start, tmp_path, name, make):
    daemon = start(BOTH)
    image = daemon.image(make())
    assert list(sources(image)) == ["image/avif", "image/webp"]
    jpeg = pictures.decode(daemon.fetch(image, "medium"))
    for kind, url in sources(image).items():
        answer = daemon.get(url)
        assert answer.status == 200 and answer["content-type"] == kind
        pixels = decode(answer.body, tmp_path)
        assert pixels.shape == np.asarray(jpeg.convert("RGB")).shape
        # The colours are signalled right: not even the mean differs.
        difference = pixels.astype(float) - np.asarray(jpeg.convert("RGB"))
        assert abs(difference.mean(axis=(0, 1))).max() < 1.5
        assert pictures.psnr(Image.fromarray(pixels), jpeg.convert("RGB")) > 30


@needs_avifdec
def test_full_chroma_and_a_profile_are_kept(start, tmp_path):
    daemon = start(AVIF, "variant.medium.chroma=444", "variant.thumb.formats=jpeg, webp")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    out = io.BytesIO()
    pictures.make_photo(300, 200, 5).save(out, "JPEG", icc_profile=profile, subsampling=0)
    image = daemon.image(out.getvalue())
    data = source(daemon, image).body
    assert profile in data
    (tmp_path / "y.avif").write_bytes(data)
    told = subprocess.run(["avifdec", "--info", tmp_path / "y.avif"], check=True,
                          capture_output=True, text=True).stdout
    assert "YUV444" in told and "ICC Profile    : Present" in told and "Range          : Full" in told
    webp = Image.open(io.BytesIO(source(daemon, image, "image/webp", "thumb").body))
    assert webp.info["icc_profile"] == profile and webp.size == (160, 107)


def test_a_file_has_one_url_and_no_negotiation(start):
    daemon = start(AVIF)
    image = daemon.image(PHOTO)
    url = sources(image)["image/avif"]
    answer = daemon.get(url)
    assert "immutable" in answer["cache-control"] and answer["vary"] is None
    assert daemon.get(url, headers=[("If-None-Match", answer["etag"])]).status == 304
    jpeg = daemon.get(image["variants"]["medium"]["url"], headers=[("Accept", "image/avif")])
    assert jpeg["content-type"] == "image/jpeg"
    assert jpeg["etag"] != answer["etag"]
    missing = daemon.get(f"/images/{image['id']}/thumb.avif")
    assert missing.status == 404
    assert missing.json()["detail"].endswith("it has blurred, medium.avif, medium, thumb")


def test_effort_makes_files_smaller(start):
    fast = start(AVIF).image(PHOTO)
    small = start(AVIF, "variant.medium.effort=small").image(PHOTO)

    def size(image):
        return image["variants"]["medium"]["sources"][0]["bytes"]
    assert size(small) < size(fast) < image_bytes(fast)


def image_bytes(image):
    return image["variants"]["medium"]["bytes"]


# ---- configuration ----

BAD = {
    "formats=avif": "expected jpeg, and avif, webp or both",
    "formats=jpeg, gif": "expected jpeg, and avif, webp or both",
    "effort=medium": "expected fast or small",
    "when=later": "expected upload or idle",
    "effort=small": "small is of an AVIF: expected fast, or avif among the formats",
    "when=idle": "the JPEG is made at the upload: expected upload",
}


@pytest.mark.parametrize("setting", BAD)
def test_what_nobody_needs_is_refused(setting):
    done = run("-t", "-o", f"variant.medium.{setting}")
    assert done.returncode == 78
    assert f"variant.medium.{setting.split('=')[0]}" in done.stderr
    assert BAD[setting] in done.stderr, done.stderr


@pytest.mark.parametrize("others, expected", [
    ([AVIF, IDLE, "server.keep_originals=no"], "server.keep_originals = yes"),
    ([BOTH, "variant.medium.chroma=444"], "expected 420, or no webp")])
def test_combinations_that_cannot_be_are_refused(others, expected):
    done = run("-t", *(word for other in others for word in ("-o", other)))
    assert done.returncode == 78 and expected in done.stderr, done.stderr


# ---- the store ----

def store(daemon, *words):
    done = run("-o", f"server.root={daemon.store}", "-o", AVIF, "store", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_know_the_files(start):
    daemon = start(AVIF, KEEP)
    image = daemon.image(PHOTO)
    assert "medium.avif" in files_of(daemon.store, image["id"])
    store(daemon, "check")
    assert re.search(r"medium\.avif +1 ", store(daemon, "count"))
    with daemon.client() as c:
        assert c.request("DELETE", f"/images/{image['id']}").status == 204
    assert source(daemon, image).status == 404


def test_a_damaged_file_is_made_again(start):
    daemon = start(AVIF, KEEP)
    image = daemon.image(PHOTO)
    good = source(daemon, image).body
    path = directory_of(daemon.store, image["id"]) / "medium.avif"
    path.write_bytes(b"x" * len(good))
    assert daemon.get(f"/images/{image['id']}/medium.avif").status == 503
    assert eventually(lambda: source(daemon, image).status == 200)
    assert source(daemon, image).body == good


def test_old_images_get_the_format_when_it_is_asked_for(start):
    daemon = start(KEEP, "input.formats=")
    image = daemon.image(PHOTO)
    before = files_of(daemon.store, image["id"])
    daemon.stop()
    daemon = start(AVIF, KEEP, "store.make_missing=yes", store=daemon.store)
    assert daemon.get(f"/images/{image['id']}/medium.avif").status == 200
    now = daemon.get(f"/images/{image['id']}").json()
    assert list(sources(now)) == ["image/avif"]
    after = files_of(daemon.store, image["id"])
    assert {name: after[name] for name in before if name != "image.json"} == \
        {name: data for name, data in before.items() if name != "image.json"}
    store(daemon, "check")


def test_one_file_of_a_variant_is_made_again(start):
    daemon = start(KEEP)
    image = daemon.image(PHOTO)
    daemon.stop()
    daemon = start(BOTH, KEEP, store=daemon.store)
    told = store(daemon, "plan", "medium.avif")
    assert "medium.avif" in told and "medium.webp" not in told
    store(daemon, "remake", "medium.avif")
    files = files_of(daemon.store, image["id"])
    assert "medium.avif" in files and "medium.webp" not in files
    bad = run("-o", f"server.root={daemon.store}", "-o", BOTH, "store", "remake", "medium.gif")
    assert bad.returncode and "one of its files such as medium.avif" in bad.stderr


def test_idle_files_are_made_after_the_answer(start):
    daemon = start(BOTH, IDLE, KEEP)
    image = daemon.image(PHOTO)
    assert sources(image) == {}

    def now():
        return daemon.get(f"/images/{image['id']}").json()
    assert eventually(lambda: sources(now()))
    assert list(sources(now())) == ["image/avif", "image/webp"]
    assert source(daemon, now())["content-type"] == "image/avif"
    assert now()["variants"]["medium"]["url"] == image["variants"]["medium"]["url"]
    assert eventually(lambda: not list((daemon.store / ".remake").iterdir()))
    store(daemon, "check")


# ---- faults ----

def test_a_file_that_cannot_be_made_is_left_out(start):
    """The CPU time is too short for the AVIF, and enough for the JPEGs."""
    daemon = start(AVIF, "variant.medium.effort=small", "limits.image_time=80ms",
                   "variant.medium.enlarge=yes", "variant.medium.operations=scale 3000x3000 inside")
    image = daemon.image(pictures.photo_jpeg(320, 240, 2))
    assert sources(image) == {} and daemon.fetch(image, "medium")
    assert daemon.get(f"/images/{image['id']}/medium.avif").status == 404
    assert eventually(lambda: "medium.avif cannot be made: " in daemon.log)
    assert "darkroom_files_left_out_total 1" in daemon.get("/metrics").body.decode()
    memory = daemon.get("/stats").json()["memory"]
    assert memory["reserved_image_bytes"] == memory["reserved_body_bytes"] == 0


def test_killed_processes_cost_at_most_their_file(start):
    daemon = start(BOTH, "experiment.decode_processes=2")
    choice = random.Random(4)
    images, stop = [], threading.Event()

    def send():
        while not stop.is_set():
            images.append(daemon.image(PHOTO))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(8):
        assert eventually(lambda: processes(daemon)[2])
        _, zygotes, children = processes(daemon)
        for pid in choice.choice((zygotes, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        count = len(images)
        assert eventually(lambda: len(images) > count + 2)
    stop.set()
    for t in threads:
        t.join()
    for image in images:
        assert daemon.fetch(image, "medium")
        assert {daemon.get(url).status for url in sources(image).values()} <= {200}
    assert eventually(lambda: len(sources(daemon.image(PHOTO))) == 2, step=1)
    memory = daemon.get("/stats").json()["memory"]
    assert memory["reserved_image_bytes"] == memory["reserved_body_bytes"] == 0
