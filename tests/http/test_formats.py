"""Every kind of JPEG that a client may send: what cameras, printers and scanners make, what is damaged, what only
pretends, and what is made to hurt."""

import time

import numpy as np
import pytest
from PIL import Image

import jpegfile
import pictures
from client import check_problem
from darkroom import load, slow

SMALL = pictures.photo_jpeg(320, 240, 2)
COLORS = {"red": (230, 30, 30), "green": (30, 200, 40), "blue": (40, 40, 220), "white": (245, 245, 245)}


def marked(width, height):
    """Grey with a mark in each corner: red, green / blue, white."""
    image = Image.new("RGB", (width, height), (128, 128, 128))
    w, h = width // 4, height // 4
    for (x, y), color in zip(((0, 0), (width - w, 0), (0, height - h), (width - w, height - h)), COLORS.values()):
        image.paste(color, (x, y, x + w, y + h))
    return image


def corners(image):
    """Names of the colours in the corners, row by row."""
    pixels = np.asarray(image.convert("RGB"), dtype=int)
    height, width = pixels.shape[:2]
    x, y = max(1, width // 10), max(1, height // 10)
    spots = (pixels[y, x], pixels[y, -x - 1], pixels[-y - 1, x], pixels[-y - 1, -x - 1])
    return [min(COLORS, key=lambda c: np.abs(spot - COLORS[c]).sum()) for spot in spots]


def check_like_pillow(daemon, source, least=30.0, least_thumb=30.0):
    """Accepted, and its variants show what Pillow sees in the file. Returns the image."""
    image = daemon.image(source)
    assert (image["width"], image["height"]) == pictures.upright_size(source)
    for name, limit in (("medium", least), ("thumb", least_thumb)):
        assert pictures.compare(daemon.fetch(image, name), source, name).encoded_psnr > limit, name
    return image


def refused(daemon, source, status, slug, content_type="image/jpeg"):
    answer = daemon.upload(source, content_type)
    assert (answer.status, answer.slug) == (status, slug), answer
    return answer.json()


# ---- orientation ----

@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("big_endian", [False, True])
def test_orientation(daemon, orientation, big_endian):
    tagged = jpegfile.exif(orientation, big_endian, thumbnail=pictures.jpeg(marked(32, 24)))
    source = jpegfile.insert_segment(pictures.jpeg(marked(1200, 700), 90), jpegfile.APP1, tagged)
    upright = pictures.upright(source)
    image = daemon.image(source)
    assert (image["width"], image["height"]) == upright.size == ((1200, 700) if orientation < 5 else (700, 1200))
    for name, (box, _, _) in pictures.VARIANTS.items():
        data = daemon.fetch(image, name)
        ours = pictures.decode(data)
        assert ours.size == pictures.fit(*upright.size, box)
        assert not ours.getexif(), "EXIF is left: viewers would turn it again"
        assert all(m != jpegfile.APP1 for m, _, _ in jpegfile.segments(data))
        assert corners(ours) == corners(upright), name
    assert pictures.compare(daemon.fetch(image, "medium"), source, "medium").ideal_psnr > 30


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("size", [(53, 37), (1001, 3), (401, 333)])
def test_orientation_of_odd_sizes(daemon, orientation, size):
    source = jpegfile.insert_segment(pictures.photo_jpeg(*size, 6), jpegfile.APP1, jpegfile.exif(orientation))
    check_like_pillow(daemon, source, 29, 29)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_senseless_orientation_is_ignored(daemon, orientation):
    source = jpegfile.insert_segment(SMALL, jpegfile.APP1, jpegfile.exif(orientation))
    image = daemon.image(source)
    assert (image["width"], image["height"]) == (320, 240)


@pytest.mark.parametrize("payload", [
    b"Exif\0\0", b"Exif\0\0II*\0", b"Exif\0\0MM\0*\xff\xff\xff\xff", b"Exif\0\0II*\0\xff\xff\xff\x7f" + b"\xff" * 40,
    b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01" * 60, b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0",
    b"Exif\0\0XX*\0\x08\0\0\0\x01\0", b"Exif\0", b""])
def test_broken_exif_is_harmless(daemon, payload):
    image = daemon.image(jpegfile.insert_segment(SMALL, jpegfile.APP1, payload))
    assert (image["width"], image["height"]) == (320, 240)


@pytest.mark.parametrize("grey", [False, True])
def test_orientation_of_gray_and_progressive(daemon, grey):
    picture = pictures.photo(900, 500, 3)
    source = pictures.jpeg(picture.convert("L") if grey else picture, 90, progressive=True)
    check_like_pillow(daemon, jpegfile.insert_segment(source, jpegfile.APP1, jpegfile.exif(6)))


# ---- colour spaces and sampling ----

def test_grey_stays_grey(daemon):
    image = check_like_pillow(daemon, pictures.jpeg(pictures.photo(1000, 800, 3).convert("L")))
    for name in pictures.VARIANTS:
        data = daemon.fetch(image, name)
        assert len(jpegfile.frame(data)[3]) == 1 and pictures.decode(data).mode == "L"


def test_cmyk(daemon):
    image = check_like_pillow(daemon, pictures.jpeg(pictures.photo(1000, 800, 3).convert("CMYK"), 92), 29, 29)
    assert pictures.decode(daemon.fetch(image, "medium")).mode == "RGB"


def test_cmyk_with_black(daemon):
    """As a printer separates: the grey part is in K."""
    pixels = np.asarray(pictures.photo(640, 480, 4), dtype=np.float64)
    key = pixels.max(axis=2, keepdims=True)
    inks = np.concatenate([255 - pixels * 255 / np.maximum(key, 1), 255 - key], axis=2)
    cmyk = Image.fromarray(np.clip(np.rint(inks), 0, 255).astype(np.uint8), "CMYK")
    check_like_pillow(daemon, pictures.jpeg(cmyk, 95), 29, 29)


def planes(image, mode="YCbCr"):
    pixels = np.asarray(image.convert(mode))
    return [pixels[:, :, i] for i in range(pixels.shape[2])]


def ycck(image, key):
    """Planes of an Adobe YCCK file: YCbCr of the complement, K inverted."""
    inverse = Image.fromarray(255 - np.asarray(image))
    return planes(inverse) + [np.full(image.size[::-1], key, np.uint8)]


@pytest.mark.parametrize("key", [255, 160])
@pytest.mark.parametrize("sampling", [[(1, 1)] * 4, [(2, 2), (1, 1), (1, 1), (2, 2)]])
def test_ycck(daemon, key, sampling):
    source = jpegfile.encode(ycck(pictures.photo(200, 150, 3), key), sampling, transform=2)
    assert pictures.decode(source).mode == "CMYK"
    check_like_pillow(daemon, source, 29, 29)


def test_rgb(daemon):
    photo = pictures.photo(200, 150, 3)
    for source in (jpegfile.encode(planes(photo, "RGB"), transform=0),
                   jpegfile.encode(planes(photo, "RGB"), ids=b"RGB")):
        check_like_pillow(daemon, source, 29, 29)


def test_ycc_without_any_marker(daemon):
    check_like_pillow(daemon, jpegfile.encode(planes(pictures.photo(120, 90, 3))), 29, 29)


SAMPLINGS = {
    "4:4:4": [(1, 1), (1, 1), (1, 1)], "4:2:2": [(2, 1), (1, 1), (1, 1)], "4:2:0": [(2, 2), (1, 1), (1, 1)],
    "4:4:0": [(1, 2), (1, 1), (1, 1)], "4:1:1": [(4, 1), (1, 1), (1, 1)], "4:1:0": [(4, 2), (1, 1), (1, 1)],
    "1x4": [(1, 4), (1, 1), (1, 1)], "2x1 all": [(2, 1), (2, 1), (2, 1)], "Cb finer": [(2, 2), (2, 1), (1, 1)],
    "Cb/Cr differ": [(2, 2), (2, 1), (1, 2)], "chroma finer": [(1, 1), (2, 2), (2, 2)],
}


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("size", [(240, 160), (131, 77), (17, 9)])
@pytest.mark.parametrize("layout", [{}, {"interleaved": False, "restart": 5}])
def test_sampling(daemon, name, size, layout):
    photo = pictures.photo(*size, 3).resize((40, 30)).resize(size)  # smooth: how chroma is interpolated shall not count
    check_like_pillow(daemon, jpegfile.encode(planes(photo), SAMPLINGS[name], 92, **layout), 30, 30)


@pytest.mark.parametrize("sampling", [[(3, 1), (1, 1), (1, 1)], [(3, 2), (2, 1), (1, 1)], [(2, 1), (3, 1), (1, 1)],
                                      [(1, 3), (1, 2), (1, 1)], [(2, 2), (2, 2), (1, 1)]])
def test_odd_sampling(daemon, sampling):
    """Whatever the decoder makes of ratios that are no whole numbers, it is an answer."""
    answer = daemon.upload(jpegfile.encode(planes(pictures.photo(131, 77, 3)), sampling))
    assert answer.status in (201, 422), answer
    if answer.status == 201:
        (image,) = answer.json()["images"]
        ours = pictures.decode(daemon.fetch(image, "medium"))
        assert pictures.luma_rms(ours, pictures.photo(131, 77, 3)) < 12


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize": True}, {"quality": 100}, {"quality": 10}])
def test_encoder_options(daemon, subsampling, options):
    check_like_pillow(daemon, pictures.jpeg(pictures.photo(850, 620, 3), **{"quality": 90, **options},
                                            subsampling=subsampling), 31)


@pytest.mark.parametrize("width, height", [(1, 1), (1, 9), (8, 8), (9, 7), (15, 17), (33, 31), (257, 129), (1599, 1201)])
def test_odd_sizes(daemon, width, height):
    check_like_pillow(daemon, pictures.photo_jpeg(width, height, 3), 30, 30)


@pytest.mark.parametrize("width, height", [(20000, 3), (3, 20000), (65500, 1), (1, 65500), (30000, 20)])
def test_extreme_strips(daemon, width, height):
    image = daemon.image(pictures.photo_jpeg(width, height, 3))
    assert (image["width"], image["height"]) == (width, height)
    for name, (box, _, _) in pictures.VARIANTS.items():
        assert pictures.size(daemon.fetch(image, name)) == pictures.fit(width, height, box)


# ---- damage ----

@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("progressive", [False, True])
def test_truncated(daemon, keep, progressive):
    source = pictures.photo_jpeg(800, 600, 3, progressive=progressive)
    problem = refused(daemon, source[:int(len(source) * keep)], 422, "damaged-image")
    assert len(problem["detail"]) > 10


def test_truncated_in_the_header(daemon):
    """Every length from the three bytes that make it a JPEG to the first byte of pixels."""
    end = jpegfile.entropy_start(SMALL)
    with daemon.client() as c:
        for length in sorted({3, 4, 5, 6, 19, 20, 21, *range(22, end, 23), end - 1, end, end + 1}):
            answer = c.request("POST", "/images", SMALL[:length], [("Content-Type", "image/jpeg")])
            assert (answer.status, answer.slug) == (422, "damaged-image"), f"{length}: {answer}"


@pytest.mark.parametrize("progressive", [False, True])
def test_truncated_is_accepted_on_request(start, progressive):
    daemon = start("server.damaged=accept")
    source = pictures.photo_jpeg(800, 600, 3, progressive=progressive)
    image = daemon.image(source[:len(source) * 6 // 10])
    assert image["damaged"] is True and (image["width"], image["height"]) == (800, 600)
    assert daemon.get(image["url"]).json()["damaged"] is True
    ours = pictures.decode(daemon.fetch(image, "medium"))
    whole = pictures.decode(source)
    top = (0, 0, 800, 200)
    assert pictures.psnr(ours.crop(top), whole.crop(top)) > (15 if progressive else 30), "the sound part is kept"
    assert "damaged" not in daemon.image(source)
    assert daemon.upload(source[:jpegfile.entropy_start(source) - 20]).status == 422, "nothing of it can be shown"
    assert daemon.upload(b"text").status == 415


def test_flipped_entropy_bits(daemon):
    """Any answer but a crash; a picture if no pixels were lost, in the eyes of the decoder."""
    rng = np.random.default_rng(7)
    sources = [pictures.photo_jpeg(160, 120, 3), pictures.photo_jpeg(160, 120, 3, progressive=True),
               jpegfile.encode(planes(pictures.photo(80, 60, 3)), SAMPLINGS["4:1:1"], restart=4)]
    seen = set()
    with daemon.client() as c:
        for i in range(load(90, 30)):
            broken = bytearray(sources[i % 3])
            start = jpegfile.entropy_start(broken)
            for _ in range(1 + i % 4):
                broken[int(rng.integers(start, len(broken)))] ^= 1 << int(rng.integers(0, 8))
            answer = c.request("POST", "/images", bytes(broken), [("Content-Type", "image/jpeg")])
            seen.add(answer.status)
            assert answer.status in (201, 422), answer
            if answer.status == 201:
                image = answer.json()["images"][0]
                for variant in image["variants"].values():
                    pictures.decode(c.request("GET", variant["url"]).body)
    assert 422 in seen


def test_flipped_header_bytes(daemon):
    rng = np.random.default_rng(8)
    sources = [pictures.photo_jpeg(64, 48, 3), pictures.photo_jpeg(64, 48, 3, progressive=True)]
    with daemon.client() as c:
        for i in range(load(150, 40)):
            broken = bytearray(sources[i % 2])
            at = int(rng.integers(2, jpegfile.entropy_start(broken)))
            broken[at] = int(rng.integers(0, 256))
            answer = c.request("POST", "/images", bytes(broken), [("Content-Type", "image/jpeg")])
            assert answer.status in (201, 413, 415, 422), f"byte {at} = {broken[at]}: {answer}"


def test_lost_restart_marker(daemon):
    source = jpegfile.encode(planes(pictures.photo(120, 90, 3)), restart=4)
    at = source.index(b"\xff\xd2")
    broken = source[:at] + source[at + 2:]
    assert daemon.upload(broken).status == 422


# ---- what cameras do wrong harmlessly ----

@pytest.mark.parametrize("tail", [b"\0", b"\0" * 100000, b"trailer" * 1000, b"\xff\xd8\xff\xe0", b"\xff\xd9\xff\xd9", SMALL])
def test_trailing_data_is_accepted(daemon, tail):
    assert "damaged" not in daemon.image(SMALL + tail)


def test_extraneous_bytes_before_a_marker(daemon):
    for marker in (jpegfile.DQT, jpegfile.DHT, jpegfile.SOF0, jpegfile.SOS):
        at = next(a for m, _, a in jpegfile.segments(SMALL) if m == marker)
        for junk in (b"\0", b"\xff" * 20, b"junk" * 5):
            assert "damaged" not in daemon.image(SMALL[:at] + junk + SMALL[at:])


def test_extraneous_bytes_at_the_end(daemon):
    """Before EOI, as some Samsung and CCTV firmware writes them."""
    assert SMALL.endswith(b"\xff\xd9")
    assert "damaged" not in daemon.image(SMALL[:-2] + b"\0\0\0\0" + b"\xff\xd9")


def test_bogus_scan_parameters(daemon):
    """A sequential file whose SOS says 0, 0 in place of 0, 63."""
    at = jpegfile.entropy_start(SMALL)
    assert SMALL[at - 3:at] == bytes([0, 63, 0])
    assert "damaged" not in daemon.image(SMALL[:at - 3] + bytes([0, 0, 0]) + SMALL[at:])


def test_bogus_progression(daemon):
    assert "damaged" not in daemon.image(jpegfile.many_scans(90)[:-2] + jpegfile.sos([(1, 0, 0)], 1, 1, 1, 0) + b"\x83\xff\xd9")


# ---- what is not supported ----

@pytest.mark.parametrize("source, word", [
    (jpegfile.header_only(64, 64, components=2), "component"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF1, precision=12), "12"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF9), "arithmetic"),
    (jpegfile.header_only(64, 64, marker=0xCA), "arithmetic"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF3, components=1), "lossless"),
])
def test_unsupported(daemon, source, word):
    problem = refused(daemon, source, 422, "unsupported-image")
    assert word in problem["detail"].lower(), problem


@pytest.mark.parametrize("marker", [0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF])
def test_rare_processes(daemon, marker):
    """Differential and the remaining arithmetic and lossless processes."""
    refused(daemon, jpegfile.header_only(64, 64, marker=marker), 422, "unsupported-image")


@pytest.mark.parametrize("components", [0, 5, 10])
def test_odd_component_counts(daemon, components):
    assert daemon.upload(jpegfile.header_only(64, 64, components=components)).status == 422


@pytest.mark.parametrize("width, height", [(0, 0), (0, 64), (64, 0)])
def test_no_size(daemon, width, height):
    assert daemon.upload(jpegfile.header_only(width, height)).status == 422


@pytest.mark.parametrize("source", [
    b"\xff\xd8\xff", b"\xff\xd8\xff\xd9", b"\xff\xd8" + b"\xff" * 1000, b"\xff\xd8\xff\xfe\x00\x00", b"\xff\xd8\xff\xfe\x00\x01",
    b"\xff\xd8\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00", SMALL[:2] + SMALL[jpegfile.entropy_start(SMALL):] * 2])
def test_hardly_a_jpeg(daemon, source):
    answer = daemon.upload(source)
    assert answer.status in (415, 422), answer


# ---- what is made to hurt ----

@pytest.mark.parametrize("source, slug, limit, configured, actual", [
    (jpegfile.header_only(65000, 65000), "too-many-pixels", "limits.pixels", 200_000_000, 65000 * 65000),
    (jpegfile.header_only(20000, 10001), "too-many-pixels", "limits.pixels", 200_000_000, 200_020_000),
    (jpegfile.header_only(10000, 10000, jpegfile.SOF2), "too-many-pixels", "limits.pixels_progressive",
     64_000_000, 100_000_000),
    (jpegfile.header_only(65535, 10), "image-too-large", "limits.width", 65500, 65535),
    (jpegfile.header_only(10, 65535), "image-too-large", "limits.height", 65500, 65535),
    (jpegfile.many_scans(101), "too-many-scans", "limits.scans", 100, 101),
])
def test_bombs(daemon, source, slug, limit, configured, actual):
    started, before = time.monotonic(), daemon.resident_bytes()
    problem = refused(daemon, source, 413, slug)
    assert (problem["limit"], problem["configured"]) == (limit, configured)
    assert problem["actual"] == actual if slug != "too-many-scans" else problem["actual"] > 100
    assert time.monotonic() - started < slow(20)
    assert daemon.resident_bytes() - before < 64 << 20


def test_as_many_scans_as_allowed(daemon):
    assert (daemon.image(jpegfile.many_scans(100))["width"]) == 8


def test_scan_bomb_of_many_pixels(daemon):
    """1000 scans of 14 megapixels in 57 KB; decoding them all takes a minute of a processor, refusing them hardly anything."""
    source = jpegfile.many_scans(1000, 4672, 3000)
    before = daemon.cpu_seconds()
    problem = refused(daemon, source, 413, "too-many-scans")
    assert problem["limit"] == "limits.scans" and problem["actual"] > problem["configured"] == 100
    assert daemon.cpu_seconds() - before < slow(10)


def test_limits_of_size_and_scans_are_configurable(start):
    daemon = start("limits.width=300", "limits.height=200", "limits.pixels=50K", "limits.scans=12",
                   "limits.pixels_progressive=10K")
    cases = [((301, 10, False), "image-too-large", "limits.width", 300, 301),
             ((10, 201, False), "image-too-large", "limits.height", 200, 201),
             ((300, 200, False), "too-many-pixels", "limits.pixels", 50000, 60000),
             ((150, 100, True), "too-many-pixels", "limits.pixels_progressive", 10000, 15000)]
    for (width, height, progressive), slug, limit, configured, actual in cases:
        problem = refused(daemon, pictures.photo_jpeg(width, height, 3, progressive=progressive), 413, slug)
        assert (problem["limit"], problem["configured"], problem["actual"]) == (limit, configured, actual)
        assert str(configured) in problem["detail"] and str(actual) in problem["detail"]
    refused(daemon, jpegfile.many_scans(13), 413, "too-many-scans")
    daemon.image(jpegfile.many_scans(12))
    daemon.image(pictures.photo_jpeg(250, 200, 3))
    daemon.image(pictures.photo_jpeg(100, 100, 3, progressive=True))


def test_image_that_needs_more_than_the_memory_budget(start):
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=8M")
    source = pictures.photo_jpeg(4000, 3000, 1, progressive=True)
    problem = refused(daemon, jpegfile.header_only(7800, 8000, jpegfile.SOF2), 413, "memory")
    assert problem["limit"] == "limits.memory_budget" and problem["actual"] > problem["configured"] == 64 << 20
    assert daemon.upload(source).status in (201, 413)
    daemon.image(SMALL)


# ---- what is no JPEG ----

@pytest.mark.parametrize("name, source", [
    ("text", b"hello"), ("two bytes", b"\xff\xd8"), ("one byte", b"\xff"), ("SOI alone", b"\xff\xd8\0\0\0"),
    ("GIF", b"GIF89a" + b"\0" * 100), ("zeros", b"\0" * 100000), ("garbage first", b"\0" + SMALL)])
def test_not_a_jpeg(daemon, name, source):
    problem = refused(daemon, source, 415, "unsupported-media-type")
    assert "jpeg" in (problem["detail"] + problem["title"]).lower()


def test_png(daemon, tmp_path):
    pictures.photo(64, 48).save(tmp_path / "x.png")
    refused(daemon, (tmp_path / "x.png").read_bytes(), 415, "unsupported-media-type")


def test_empty_body(daemon):
    answer = daemon.upload(b"")
    assert (answer.status, answer.slug) == (400, "no-image")
    check_problem(answer)
