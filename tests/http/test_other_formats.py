"""Pictures that are not JPEGs: each is decoded by a process of its own, which ends with it."""

import contextlib
import io
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import threading
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

import pictures
from darkroom import eventually, run
from store_files import directory_of, files_of
from test_metrics import scrape
from test_tokens import make

MORE = "variant.tiny.operations=scale 40x40 inside"
SMALL = pictures.photo_jpeg(320, 240, 2)
PHOTO = pictures.make_photo(1203, 801, 5)
LARGE = 2 << 20  # bytes of a large page


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def upload(daemon, data):
    """Uploads without a name of the format: the content decides."""
    answer = daemon.upload(data, "application/octet-stream")
    assert answer.status == 201, answer
    return answer.json()["images"][0]


def fetched(daemon, data):
    return pictures.decode(daemon.fetch(upload(daemon, data), "medium"))


def expected(image, box=800):
    image = image.convert("RGB")
    return image.resize(pictures.fit(*image.size, box), Image.Resampling.LANCZOS)


def with_alpha(image):
    alpha = Image.fromarray((np.indices(image.size[::-1]).sum(0) % 256).astype(np.uint8))
    return Image.merge("RGBA", (*image.split(), alpha))


def on(image, colour):
    """Returns a transparent picture on a background."""
    image = image.convert("RGBA")
    ground = Image.new("RGBA", image.size, colour)
    return Image.alpha_composite(ground, image).convert("RGB")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(
        ">I", zlib.crc32(name + data))


def png(width, height, depth, colour, rows, extra=b"", interlace=0):
    """Makes a PNG of samples as they stand in its rows."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
            + chunk(b"IEND", b""))


# ---- all kinds ----

KINDS = {
    "rgb": (lambda: saved(PHOTO, "PNG"), PHOTO),
    "grey": (lambda: saved(PHOTO.convert("L"), "PNG"), PHOTO.convert("L")),
    "palette": (lambda: saved(PHOTO.quantize(64), "PNG"), PHOTO.quantize(64)),
    "bits": (lambda: saved(PHOTO.convert("1"), "PNG"), PHOTO.convert("1")),
    "alpha": (lambda: saved(with_alpha(PHOTO), "PNG"), on(with_alpha(PHOTO), "white")),
    "grey alpha": (lambda: saved(with_alpha(PHOTO).convert("LA"), "PNG"),
                   on(with_alpha(PHOTO).convert("LA"), "white")),
    "lossless": (lambda: saved(PHOTO, "WEBP", lossless=True), PHOTO),
    "lossy": (lambda: saved(PHOTO, "WEBP", quality=95), PHOTO),
    "lossless alpha": (lambda: saved(with_alpha(PHOTO), "WEBP", lossless=True, exact=True),
                       on(with_alpha(PHOTO), "white")),
    "lossy alpha": (lambda: saved(with_alpha(PHOTO), "WEBP", quality=95, exact=True),
                    on(with_alpha(PHOTO), "white")),
}


@pytest.mark.also_with("seda", "thread-per-connection", "srpt")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_like_pillows(daemon, kind):
    make, image = KINDS[kind]
    stored = upload(daemon, make())
    for variant, box in (("medium", 800), ("thumb", 160)):
        ours = pictures.decode(daemon.fetch(stored, variant))
        assert pictures.psnr(ours, expected(image, box)) > (26 if kind == "bits" else 30)


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_every_depth_of_grey_is_scaled_to_eight_bits(daemon, depth):
    most = (1 << depth) - 1
    values = [[(x // 20 + y // 20) * most // 40 for x in range(400)] for y in range(400)]
    rows = []
    for line in values:
        bits = "".join(f"{v:0{depth}b}" for v in line)
        rows.append(int(bits, 2).to_bytes(len(bits) // 8, "big"))
    image = fetched(daemon, png(400, 400, depth, 0, rows))
    assert image.mode == "L"
    ideal = Image.fromarray(np.array(values) * 255.0 / most).convert("L")
    assert pictures.psnr(image, ideal) > 30


def test_an_interlaced_file_is_whole(daemon):
    """One pass of Adam7 has one pixel of 64: the file has 7 passes of a flat colour."""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2))
    pixels = np.asarray(PHOTO)
    rows = [pixels[y, x0::dx].tobytes() for x0, y0, dx, dy in passes
            for y in range(y0, pixels.shape[0], dy)]
    data = png(*PHOTO.size, 8, 2, rows, interlace=1)
    assert pictures.psnr(fetched(daemon, data), expected(PHOTO)) > 30


def test_transparent_parts_are_on_the_background(start):
    daemon = start("input.background=2060a0")
    flat = Image.new("RGBA", (300, 200), (255, 0, 0, 0))
    grey = Image.new("LA", (300, 200), (255, 0))
    palette = Image.new("P", (300, 200))
    palette.putpalette([255, 0, 0])
    for data in (saved(flat, "PNG"), saved(flat, "WEBP", lossless=True), saved(grey, "PNG"),
                 saved(palette, "PNG", transparency=0)):
        pixel = np.asarray(fetched(daemon, data))[100, 150]
        assert np.abs(pixel.astype(int) - (0x20, 0x60, 0xA0)).max() <= 3


def test_hidden_colours_do_not_show_at_edges(daemon):
    """Stripes of white beside stripes that are transparent and black, on white: all is white, also
    where a pixel of the variant has both."""
    pixels = np.zeros((1200, 2400, 4), np.uint8)
    pixels[:, np.arange(2400) // 8 % 2 == 0] = 255
    image = Image.fromarray(pixels)
    for data in (saved(image, "PNG"), saved(image, "WEBP", lossless=True, exact=True),
                 saved(image, "WEBP", quality=100, exact=True)):
        assert np.asarray(fetched(daemon, data)).min() > 240


@pytest.mark.parametrize("size", [(1, 1), (1, 700), (900, 1), (17, 3), (3001, 2)])
def test_odd_sizes(daemon, size):
    image = PHOTO.resize(size)
    for data in (saved(image, "PNG"), saved(image, "WEBP", lossless=True)):
        stored = upload(daemon, data)
        assert (stored["width"], stored["height"]) == size
        assert pictures.decode(daemon.fetch(stored, "thumb")).size == pictures.fit(*size, 160)


# ---- what comes along ----

@pytest.mark.parametrize("format", ["PNG", "WEBP"])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_orientation_is_applied(daemon, format, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = upload(daemon, saved(PHOTO, format, exif=exif))
    turned = PHOTO.rotate({1: 0, 3: 180, 6: 270}[orientation], expand=True)
    assert (image["width"], image["height"]) == turned.size
    ours = pictures.decode(daemon.fetch(image, "medium"))
    assert pictures.psnr(ours, expected(turned)) > 30 and not ours.getexif()


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_a_colour_profile_is_handed_on(daemon, format):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert fetched(daemon, saved(PHOTO, format, icc_profile=profile)).info["icc_profile"] == profile
    # One of another colour space is dropped, as that of a JPEG.
    other = profile[:16] + b"CMYK" + profile[20:]
    assert "icc_profile" not in fetched(daemon, saved(PHOTO, format, icc_profile=other)).info


def test_the_original_is_kept_with_its_type(start, tmp_path):
    every = {"up": make("up"), "reader": make("reader", "original")}
    (tmp_path / "tokens").write_text("".join(line + "\n" for _, line in every.values()))
    (tmp_path / "tokens").chmod(0o600)
    daemon = start(f"access.tokens_file={tmp_path / 'tokens'}")
    bearer = {name: [("Authorization", f"Bearer {token}")] for name, (token, _) in every.items()}
    for kind, name in (("rgb", "image/png"), ("lossy", "image/webp")):
        data = KINDS[kind][0]()
        image = daemon.image(data, headers=bearer["up"])
        answer = daemon.get(image["url"] + "/original.jpg", headers=bearer["reader"])
        assert (answer.status, answer["content-type"], answer.body) == (200, name, data)
        variant = daemon.get(image["variants"]["thumb"]["url"])
        assert variant["content-type"] == "image/jpeg"
        record = json.loads((directory_of(daemon.store, image["id"]) / "image.json").read_text())
        assert record["record"]["upload"]["format"] == name


@pytest.mark.parametrize("kind", ["alpha", "lossy"])
def test_variants_are_made_from_the_original_again(start, kind):
    daemon = start(MORE)
    image = upload(daemon, KINDS[kind][0]())
    whole = files_of(daemon.store, image["id"])
    daemon.stop()
    less = start()
    image = upload(less, KINDS[kind][0]())
    less.stop()
    daemon = start(MORE, store=less.store)
    assert run("-o", f"server.root={less.store}", "store", "remake").returncode == 0
    assert eventually(lambda: "tiny.jpg" in files_of(less.store, image["id"]))
    daemon.stop()
    made = files_of(less.store, image["id"])
    assert made["tiny.jpg"] == whole["tiny.jpg"] and made["original.jpg"] == whole["original.jpg"]


def test_a_spooled_picture_is_processed_after_a_crash(start):
    daemon = start("server.respond_after=decode")
    answer = daemon.upload(KINDS["rgb"][0](), "image/png")
    assert answer.status == 202
    ident = answer.json()["images"][0]["id"]
    daemon.kill()
    again = start(store=daemon.store)
    assert eventually(lambda: again.get(f"/images/{ident}/thumb.jpg").status == 200)


# ---- refusals ----

def problem(daemon, data, status, slug):
    answer = daemon.upload(data, "application/octet-stream")
    assert (answer.status, answer.slug) == (status, slug), answer
    return answer.json()["detail"]


def test_animations_are_refused_by_name(daemon):
    frames = [PHOTO.resize((90, 60)), PHOTO.resize((90, 60)).rotate(180)]
    for name, data in (("PNG", saved(frames[0], "PNG", save_all=True, append_images=frames[1:])),
                       ("WebP", saved(frames[0], "WEBP", save_all=True,
                                      append_images=frames[1:]))):
        assert problem(daemon, data, 422, "unsupported-image") == (
            f"{name}: animations are not supported")


def test_damaged_files_are_refused(daemon):
    for name, kind in (("PNG", "rgb"), ("PNG", "palette"), ("WebP", "lossy"),
                       ("WebP", "lossless")):
        data = KINDS[kind][0]()
        half = len(data) // 2
        for broken in (data[:half], data[:40], *([data[:half] + bytes(half)] if name == "PNG" else [])):
            assert problem(daemon, broken, 422, "damaged-image").startswith(f"{name}: the ")
    assert problem(daemon, b"\x89PNG\r\n\x1a\n", 422, "damaged-image") == (
        "PNG: the header is damaged")


def test_bombs_are_refused_by_their_header(daemon):
    """No process is asked: there is no memory for it."""
    rows = [bytes(60000 * 3)] * 2
    wide = png(60000, 60000, 8, 2, rows)
    assert "200000000" in problem(daemon, wide, 413, "too-many-pixels").replace("200M", "200000000")
    interlaced = png(10000, 10000, 8, 2, rows, interlace=1)
    assert "pixels_progressive" in problem(daemon, interlaced, 413, "too-many-pixels")
    assert "limits.width" in problem(daemon, png(70000, 1, 8, 2, rows), 413, "image-too-large")


def test_a_refusal_names_the_format_and_the_key(start):
    daemon = start("input.formats=webp")
    assert problem(daemon, KINDS["rgb"][0](), 415, "unsupported-media-type") == (
        "the body is a PNG, which is not accepted here (input.formats); expected a JPEG or WebP")
    assert "GIF" in problem(daemon, saved(PHOTO, "GIF"), 415, "unsupported-media-type")
    assert upload(daemon, KINDS["lossy"][0]())


def test_more_time_than_allowed_is_refused(start):
    daemon = start("limits.image_time=20ms")
    big = saved(pictures.make_photo(3000, 2000, 5), "PNG", compress_level=1)
    assert "limits.image_time" in problem(daemon, big, 413, "too-expensive")
    assert daemon.upload(SMALL).status == 201


# ---- processes ----

def below(pid):
    """Returns the processes of darkroom-decode below a process."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    every = path.read_text().split() if path.exists() else []
    return [int(p) for p in every if b"darkroom-decode" in words_of(p)[:1]]


def words_of(pid):
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return [words[0].rpartition(b"/")[2], *words[1:]]
    return []


def spares_and_zygotes(first):
    """Returns what a first process has started."""
    every = below(first)
    zygotes = [p for p in every if b"zygote" in words_of(p)]
    return [p for p in every if p not in zygotes], zygotes


def processes(daemon):
    """Returns the processes of darkroom-decode, as (first, zygote, children)."""
    first = below(daemon.pid)
    zygote = [p for f in first for p in spares_and_zygotes(f)[1]]
    return first, zygote, [p for z in zygote for p in below(z)]


def test_without_other_formats_there_is_no_process(start):
    daemon = start("input.formats=")
    assert processes(daemon) == ([], [], [])
    assert daemon.upload(SMALL).status == 201
    assert "expected a JPEG" in problem(daemon, KINDS["rgb"][0](), 415, "unsupported-media-type")


def test_processes_end_with_the_daemon(start):
    for how in ("stop", "kill"):
        daemon = start("experiment.decode_processes=3")
        assert eventually(lambda: len(processes(daemon)[2]) == 3)
        every = [p for group in processes(daemon) for p in group]
        getattr(daemon, how)()
        assert eventually(lambda: not any(is_running(p) for p in every)), every


def started(first):
    """Returns the spare, the zygote and the child below a first process, when all are there."""
    assert eventually(lambda: all(spares_and_zygotes(first))), first
    (spare,), (zygote,) = spares_and_zygotes(first)
    assert eventually(lambda: below(zygote)), zygote
    return spare, zygote, below(zygote)[0]


def test_every_process_that_is_killed_is_started_again(start):
    daemon = start("experiment.decode_processes=1")
    (first,) = below(daemon.pid)
    picture = KINDS["rgb"][0]()
    for victim in ("zygote", "spare", "child", "first", "zygote", "first"):
        spare, zygote, child = started(first)
        os.kill({"zygote": zygote, "spare": spare, "child": child, "first": first}[victim],
                signal.SIGKILL)
        if victim == "spare":
            assert eventually(lambda: spares_and_zygotes(first)[0] not in ([spare], []))
        else:
            assert eventually(lambda: not is_running(child))
        first = spare if victim == "first" else first
        assert daemon.upload(picture, "image/png").status == 201, victim
    assert daemon.says("the process that starts children has ended; it was started again")


def test_processes_that_are_killed_by_their_name_are_started_again(start):
    """As pkill and killall do it. All are stopped first, so that they end together."""
    daemon = start("experiment.decode_processes=1")
    (first,) = below(daemon.pid)
    every = [first, *started(first)]
    named = [p for p in every if pathlib.Path(f"/proc/{p}/comm").read_text() == "darkroom-decode\n"]
    assert len(named) == 3
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in named:
            os.kill(pid, number)
    assert eventually(lambda: not any(is_running(p) for p in named))
    assert daemon.upload(KINDS["rgb"][0](), "image/png").status == 201


def test_without_its_program_a_picture_is_refused_in_words(start):
    daemon = start("experiment.decode_processes=1")
    (first,) = below(daemon.pid)
    spare, zygote, child = started(first)
    for pid in (first, spare):
        os.kill(pid, signal.SIGSTOP)
    for pid in (first, spare):
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not is_running(zygote) and not is_running(child))
    assert problem(daemon, KINDS["rgb"][0](), 503, "overloaded") == (
        "PNG: no process is ready to decode it")
    assert daemon.says("no process is ready to decode a PNG")
    assert daemon.upload(SMALL).status == 201


def crash_one(daemon, data):
    """Uploads a file whose process has a signal of a crash while it decodes. Returns the answer."""
    assert eventually(lambda: processes(daemon)[2])
    (child,), answers = processes(daemon)[2], []
    os.kill(child, signal.SIGSTOP)
    upload = threading.Thread(target=lambda: answers.append(daemon.upload(data, "image/png")))
    upload.start()
    reserved = "reserved_image_bytes"
    assert eventually(lambda: answers or daemon.get("/stats").json()["memory"][reserved] > 0)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGSEGV)
        os.kill(child, signal.SIGCONT)
    upload.join()
    return answers[0]


def test_a_format_whose_processes_crash_is_off_for_a_minute(start):
    daemon = start("experiment.decode_processes=1")
    data = KINDS["rgb"][0]()
    answer = next(a for a in (crash_one(daemon, data) for _ in range(100)) if a.status == 503)
    assert answer.slug == "overloaded" and 1 <= int(answer["retry-after"]) <= 60
    assert answer.json()["detail"] == (
        "PNG: refused for a minute, because processes that decode it crash")
    assert daemon.says("has ended by SIGSEGV; the picture is refused with 422")
    assert daemon.says("PNG: 20 processes that decode it have crashed within a minute")
    assert daemon.upload(KINDS["lossy"][0](), "image/webp").status == 201
    assert daemon.upload(SMALL).status == 201


def is_running(pid):
    with contextlib.suppress(OSError):
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def test_a_process_has_nothing(start):
    daemon = start("experiment.decode_processes=1")
    _, zygote, child = started(*below(daemon.pid))
    status = pathlib.Path(f"/proc/{zygote}/status").read_text()
    assert re.search(r"NoNewPrivs:\s1", status) and re.search(r"Seccomp:\s2", status)
    assert eventually(lambda: len(os.listdir(f"/proc/{child}/fd")) == 2)
    assert pathlib.Path(f"/proc/{zygote}/environ").read_bytes() == b""
    links = {os.readlink(f"/proc/{zygote}/fd/{fd}") for fd in os.listdir(f"/proc/{zygote}/fd")}
    assert {re.sub(r":.*", "", link) for link in links} == {
        "/dev/null", "socket", "/memfd"}, links


needs_strace = pytest.mark.skipif(not pathlib.Path("/usr/bin/strace").exists(),
                                  reason="needs strace")


def traced(daemon, data, trace, index=0):
    """Uploads a picture. Returns the lines of the system calls of the child of this number."""
    zygote = started(*below(daemon.pid))[1]
    assert eventually(lambda: len(below(zygote)) > index)
    child = below(zygote)[index]
    with subprocess.Popen(["strace", "-p", str(child), "-o", trace],
                          stderr=subprocess.PIPE) as tracer:
        assert b"attached" in tracer.stderr.readline()
        upload(daemon, data)
        tracer.wait(20)
    return trace.read_text()


@needs_strace
@pytest.mark.parametrize("kind, made", [("rgb", "avif"), ("lossy alpha", "avif"), ("avif", "avif"),
                                        ("encode", "avif"), ("encode", "webp")])
def test_a_child_makes_three_system_calls(start, tmp_path, kind, made):
    """Once it has its filter, it reads and writes its socket, and ends."""
    daemon = start("experiment.decode_processes=1", "experiment.core_dumps=yes",
                   f"variant.medium.formats=jpeg, {made}")
    data = KINDS[kind][0]() if kind in KINDS else SMALL
    if kind == "avif":
        source = upload(daemon, SMALL)["variants"]["medium"]["sources"][0]
        data = daemon.get(source["srcset"].split()[0]).body
    # The first child decodes, and the second one encodes.
    trace = traced(daemon, data, tmp_path / "trace", 1 if kind == "encode" else 0)
    calls = re.findall(r"^(\w+)\(", trace, re.M)
    behind = calls[len(calls) - calls[::-1].index("prctl"):]
    assert behind and set(behind) <= {"read", "write", "exit_group"}, calls


@needs_strace
def test_a_child_asks_for_large_pages_within_its_memory(start, tmp_path):
    """All that are whole. A lossless WebP holds the picture, which takes more than two of them."""
    daemon = start("experiment.decode_processes=1", "experiment.core_dumps=yes")
    trace = traced(daemon, KINDS["lossless"][0](), tmp_path / "trace")
    (large,) = re.findall(r"^madvise\((\w+), (\d+), MADV_HUGEPAGE\)", trace, re.M)
    begin, size = int(large[0], 16), int(large[1])
    end = int(re.findall(r"^brk\(.*= (\w+)$", trace, re.M)[-1], 16)
    assert size > 0 and begin % LARGE == 0 and size % LARGE == 0
    assert 0 <= end - (begin + size) < LARGE + 8192, trace


def test_a_picture_that_waits_for_a_process_lets_others_end(start):
    """A small client is urgent, and interrupts the picture that has the only process. Then it must
    not keep the worker from that picture while it waits for the process itself."""
    daemon = start("experiment.decode_processes=1", "server.durability=process")
    big = saved(pictures.make_photo(2000, 1500, 5), "PNG", compress_level=1)
    small = saved(PHOTO.resize((90, 60)), "PNG")
    answers = []

    def send(data, client):
        answers.append(daemon.upload(data, "image/png", [("X-Forwarded-For", client)]).status)

    threads = [threading.Thread(target=send, args=(big, "10.0.0.1")) for _ in range(6)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        send(small, "10.0.0.2")
    for t in threads:
        t.join()
    assert len(answers) > 6 and set(answers) == {201}


def test_metrics_tell_the_formats_apart(start):
    daemon = start()
    data = KINDS["rgb"][0]()
    for picture, status in ((data, 201), (data[:-500], 422), (KINDS["lossy"][0](), 201),
                            (SMALL, 201)):
        assert daemon.upload(picture).status == status
    metrics = scrape(daemon)
    for kind, stored, failed in (("png", 1, 1), ("webp", 1, 0), ("jpeg", 1, 0)):
        for result, count in (("stored", stored), ("failed", failed)):
            assert metrics("darkroom_input_images_total", format=kind, result=result) == count
    for reason in ("damaged", "memory", "crashed", "busy", "off"):
        assert metrics("darkroom_decode_failures_total", format="png", reason=reason) == (
            reason == "damaged")
    for kind in ("png", "webp"):
        assert 0.001 < metrics("darkroom_decode_cpu_seconds_total", format=kind) < 10


def test_killed_processes_cost_at_most_their_picture(start):
    """Whatever is killed, a picture is stored or its client is told, and later ones are stored."""
    daemon = start("experiment.decode_processes=2", "server.durability=process")
    choice = random.Random(4)
    data = {kind: KINDS[kind][0]() for kind in ("rgb", "lossy", "lossless")}
    answers, stop = [], threading.Event()

    def send(seed):
        kinds = random.Random(seed)
        while not stop.is_set():
            answers.append(daemon.upload(data[kinds.choice(list(data))], "image/png"))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for _ in range(12):
        assert eventually(lambda: processes(daemon)[2])
        _, zygotes, children = processes(daemon)
        for pid in choice.choice((zygotes, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        count = len(answers)
        assert eventually(lambda: len(answers) > count + 3)
    stop.set()
    for t in threads:
        t.join()
    assert {a.status for a in answers} <= {201, 422, 503}
    stored = [a.json()["images"][0] for a in answers if a.status == 201]
    assert stored and all(daemon.get(i["variants"]["thumb"]["url"]).status == 200 for i in stored)
    assert eventually(lambda: daemon.upload(data["rgb"], "image/png").status == 201, step=1)
    memory = daemon.get("/stats").json()["memory"]
    assert memory["reserved_image_bytes"] == memory["reserved_body_bytes"] == 0
