"""Files that are damaged, unsupported, not JPEGs, or made to exhaust a server."""

import time

import numpy as np
import pytest

import jpegfile
import pictures
from client import check_problem
from control import ctl
from darkroom import load, slow
from jpegfile import SAMPLINGS, planes

SMALL = pictures.photo_jpeg(320, 240, 2)


def refused(daemon, source, status, slug, content_type="image/jpeg"):
    answer = daemon.upload(source, content_type)
    assert (answer.status, answer.slug) == (status, slug), answer
    return answer.json()


# ---- damage ----

@pytest.mark.every_policy
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("progressive", [False, True])
def test_truncated_file_is_refused(daemon, keep, progressive):
    source = pictures.photo_jpeg(800, 600, 3, progressive=progressive)
    problem = refused(daemon, source[:int(len(source) * keep)], 422, "damaged-image")
    assert len(problem["detail"]) > 10


def test_file_truncated_in_the_header_is_refused(daemon):
    """Lengths from the three bytes of a JPEG signature to the first byte of pixels."""
    end = jpegfile.entropy_start(SMALL)
    with daemon.client() as c:
        for length in sorted({3, 4, 5, 6, 19, 20, 21, *range(22, end, 23), end - 1, end, end + 1}):
            answer = c.request("POST", "/images", SMALL[:length], [("Content-Type", "image/jpeg")])
            assert (answer.status, answer.slug) == (422, "damaged-image"), f"{length}: {answer}"


def test_damage_that_libjpeg_does_not_notice_is_found(start):
    """A byte of a file is doubled. experiment.pixel_own=no leaves the file to libjpeg."""
    daemon = start()
    at = SMALL.index(b"\xff\0", jpegfile.entropy_start(SMALL) + 1000)
    source = SMALL[:at] + b"\xff" + SMALL[at:]
    assert "premature end" in refused(daemon, source, 422, "damaged-image")["detail"]
    assert ctl(daemon, "set", "server.damaged", "accept").returncode == 0
    assert daemon.image(source)["damaged"] is True
    library = start("experiment.pixel_own=no", "server.damaged=accept")
    assert "damaged" not in library.image(source)


@pytest.mark.every_policy
@pytest.mark.parametrize("progressive", [False, True])
def test_truncated_file_is_accepted_if_configured(start, progressive):
    daemon = start("server.damaged=accept")
    source = pictures.photo_jpeg(800, 600, 3, progressive=progressive)
    image = daemon.image(source[:len(source) * 6 // 10])
    assert image["damaged"] is True and (image["width"], image["height"]) == (800, 600)
    assert daemon.get(image["url"]).json()["damaged"] is True
    ours = pictures.decode(daemon.fetch(image, "medium"))
    whole = pictures.decode(source)
    top = (0, 0, 800, 200)
    least = 15 if progressive else 30
    assert pictures.psnr(ours.crop(top), whole.crop(top)) > least, "the intact part is lost"
    assert "damaged" not in daemon.image(source)
    assert daemon.upload(source[:jpegfile.entropy_start(source) - 20]).status == 422, (
        "it has no pixels")
    assert daemon.upload(b"text").status == 415


@pytest.mark.every_policy
def test_flipped_entropy_bits_are_refused_or_decoded(daemon):
    """Any response is right, but no crash. The response is a picture if the decoder lost no
    pixels."""
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


def test_flipped_header_bytes_are_refused_or_decoded(daemon):
    rng = np.random.default_rng(8)
    sources = [pictures.photo_jpeg(64, 48, 3), pictures.photo_jpeg(64, 48, 3, progressive=True)]
    with daemon.client() as c:
        for i in range(load(150, 40)):
            broken = bytearray(sources[i % 2])
            at = int(rng.integers(2, jpegfile.entropy_start(broken)))
            broken[at] = int(rng.integers(0, 256))
            answer = c.request("POST", "/images", bytes(broken), [("Content-Type", "image/jpeg")])
            assert answer.status in (201, 413, 415, 422), f"byte {at} = {broken[at]}: {answer}"


def test_lost_restart_marker_is_refused(daemon):
    source = jpegfile.encode(planes(pictures.photo(120, 90, 3)), restart=4)
    at = source.index(b"\xff\xd2")
    broken = source[:at] + source[at + 2:]
    assert daemon.upload(broken).status == 422


# ---- harmless errors of cameras ----

@pytest.mark.parametrize("tail", [b"\0", b"\0" * 100000, b"trailer" * 1000, b"\xff\xd8\xff\xe0",
                                  b"\xff\xd9\xff\xd9", SMALL])
def test_trailing_data_is_accepted(daemon, tail):
    assert "damaged" not in daemon.image(SMALL + tail)


def test_extraneous_bytes_before_a_marker_are_accepted(daemon):
    for marker in (jpegfile.DQT, jpegfile.DHT, jpegfile.SOF0, jpegfile.SOS):
        at = next(a for m, _, a in jpegfile.segments(SMALL) if m == marker)
        for junk in (b"\0", b"\xff" * 20, b"junk" * 5):
            assert "damaged" not in daemon.image(SMALL[:at] + junk + SMALL[at:])


def test_extraneous_bytes_before_the_end_are_accepted(daemon):
    """Some Samsung and CCTV firmware writes bytes before EOI."""
    assert SMALL.endswith(b"\xff\xd9")
    assert "damaged" not in daemon.image(SMALL[:-2] + b"\0\0\0\0" + b"\xff\xd9")


def test_bogus_scan_parameters_are_accepted(daemon):
    """A sequential file whose SOS has 0, 0 instead of 0, 63."""
    at = jpegfile.entropy_start(SMALL)
    assert SMALL[at - 3:at] == bytes([0, 63, 0])
    assert "damaged" not in daemon.image(SMALL[:at - 3] + bytes([0, 0, 0]) + SMALL[at:])


def test_ac_scans_before_the_dc_scan_are_accepted(daemon):
    source = (jpegfile.scan_bomb(64, 64, [(0, 0)])[:-2]
              + jpegfile.sos([(1, 0, 0)], 0, 0) + b"\0" * 8 + b"\xff\xd9")
    assert "damaged" not in daemon.image(source)


# ---- unsupported files ----

@pytest.mark.parametrize("source, word", [
    (jpegfile.header_only(64, 64, components=2), "component"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF1, precision=12), "12"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF9), "arithmetic"),
    (jpegfile.header_only(64, 64, marker=0xCA), "arithmetic"),
    (jpegfile.header_only(64, 64, marker=jpegfile.SOF3, components=1), "lossless"),
])
def test_unsupported_file_is_refused_with_the_reason(daemon, source, word):
    problem = refused(daemon, source, 422, "unsupported-image")
    assert word in problem["detail"].lower(), problem


@pytest.mark.parametrize("marker", [0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF])
def test_rare_coding_processes_are_refused(daemon, marker):
    """These are differential, and the other arithmetic and lossless processes."""
    refused(daemon, jpegfile.header_only(64, 64, marker=marker), 422, "unsupported-image")


@pytest.mark.parametrize("components", [0, 5, 10])
def test_odd_component_counts_are_refused(daemon, components):
    assert daemon.upload(jpegfile.header_only(64, 64, components=components)).status == 422


@pytest.mark.parametrize("width, height", [(0, 0), (0, 64), (64, 0)])
def test_picture_without_a_size_is_refused(daemon, width, height):
    assert daemon.upload(jpegfile.header_only(width, height)).status == 422


@pytest.mark.parametrize("source", [
    b"\xff\xd8\xff", b"\xff\xd8\xff\xd9", b"\xff\xd8" + b"\xff" * 1000, b"\xff\xd8\xff\xfe\x00\x00",
    b"\xff\xd8\xff\xfe\x00\x01", b"\xff\xd8\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00",
    SMALL[:2] + SMALL[jpegfile.entropy_start(SMALL):] * 2])
def test_file_with_a_jpeg_start_only_is_refused(daemon, source):
    answer = daemon.upload(source)
    assert answer.status in (415, 422), answer


# ---- files made to exhaust a server ----

@pytest.mark.parametrize("source, slug, limit, configured, actual", [
    (jpegfile.header_only(65000, 65000), "too-many-pixels", "limits.pixels",
     200_000_000, 65000 * 65000),
    (jpegfile.header_only(20000, 10001), "too-many-pixels", "limits.pixels",
     200_000_000, 200_020_000),
    (jpegfile.header_only(10000, 10000, jpegfile.SOF2), "too-many-pixels",
     "limits.pixels_progressive", 64_000_000, 100_000_000),
    (jpegfile.header_only(65535, 10), "image-too-large", "limits.width", 65500, 65535),
    (jpegfile.header_only(10, 65535), "image-too-large", "limits.height", 65500, 65535),
    (jpegfile.many_scans(31), "too-many-scans", "limits.scans", 30, 31)])
def test_bombs_are_refused_without_cost(daemon, source, slug, limit, configured, actual):
    started, before = time.monotonic(), daemon.resident_bytes()
    problem = refused(daemon, source, 413, slug)
    assert (problem["limit"], problem["configured"]) == (limit, configured)
    assert problem["actual"] == actual if slug != "too-many-scans" else problem["actual"] > 30
    assert time.monotonic() - started < slow(20)
    assert daemon.resident_bytes() - before < 64 << 20


def test_file_with_the_most_scans_allowed_is_accepted(daemon):
    assert (daemon.image(jpegfile.many_scans(30))["width"]) == 8


def test_scan_bomb_of_many_pixels_costs_no_cpu_time(daemon):
    """1000 scans of 14 megapixels in 57 KB. Decoding them takes a minute of CPU time."""
    source = jpegfile.many_scans(1000, 4672, 3000)
    before = daemon.cpu_seconds()
    problem = refused(daemon, source, 413, "too-many-scans")
    assert "scans visit" in problem["detail"]
    assert daemon.cpu_seconds() - before < slow(5)


REFINE, FIRST = [(1, 0)] * 99, [(0, 0)] * 99
EACH_BIT = [(0, 13)] + [(bit, bit - 1) for bit in range(13, 0, -1)]


@pytest.mark.parametrize("scans, components", [(REFINE, 1), (FIRST, 1), (EACH_BIT, 3)])
def test_scans_without_data_cost_neither_cpu_time_nor_memory(daemon, scans, components):
    """Files of 4 to 10 KB that claim 64 megapixels. They took up to 8 seconds, and 390 MB."""
    source = jpegfile.scan_bomb(8000, 8000, scans, components=components)
    assert len(source) < 10000
    cpu, resident = daemon.cpu_seconds(), daemon.resident_bytes()
    refused(daemon, source, 422, "damaged-image")
    assert daemon.cpu_seconds() - cpu < slow(0.5)
    assert daemon.resident_bytes() - resident < 16 << 20


@pytest.mark.parametrize("scans, components", [(FIRST, 1), (EACH_BIT, 3)])
def test_scans_without_data_are_few_in_complete_files(daemon, scans, components):
    """The DC scans are complete, so that no pixel is missing."""
    source = jpegfile.scan_bomb(8000, 8000, scans, dc=True, components=components)
    cpu = daemon.cpu_seconds()
    problem = refused(daemon, source, 413, "too-many-scans")
    assert "scans visit" in problem["detail"]
    assert daemon.cpu_seconds() - cpu < slow(5)


@pytest.mark.parametrize("scans, components", [(REFINE, 1), (FIRST, 1), (EACH_BIT, 3)])
def test_scans_without_data_are_few_where_damage_is_accepted(start, scans, components):
    daemon = start("server.damaged=accept")
    source = jpegfile.scan_bomb(8000, 8000, scans, components=components)
    cpu = daemon.cpu_seconds()
    refused(daemon, source, 413, "too-many-scans")
    assert daemon.cpu_seconds() - cpu < slow(5)


def test_repeated_scans_are_damage(daemon):
    source = jpegfile.scan_bomb(64, 64, [(0, 1), (1, 0), (1, 0)], dc=True)
    assert "progression" in refused(daemon, source, 422, "damaged-image")["detail"]
    daemon.image(jpegfile.scan_bomb(64, 64, [(0, 1), (1, 0)], dc=True))


def test_cpu_time_of_an_image_is_limited(start):
    daemon = start("limits.image_time=20ms")
    large = pictures.photo_jpeg(4000, 3000, 1, progressive=True)
    problem = refused(daemon, large, 413, "too-expensive")
    assert (problem["limit"], problem["configured"]) == ("limits.image_time", 20)
    assert problem["actual"] >= 20 and "limits.image_time = 20 ms" in problem["detail"]
    daemon.image(SMALL)
    assert ctl(daemon, "set", "limits.image_time", "1h").returncode == 0
    daemon.image(large)


def test_time_limit_counts_all_visits_of_an_image(start):
    daemon = start("limits.image_time=20ms", "scheduler.service=cutoff", "experiment.cutoff=1ms")
    refused(daemon, pictures.photo_jpeg(4000, 3000, 1, progressive=True), 413, "too-expensive")
    daemon.image(SMALL)


def test_limits_of_size_and_scans_are_configurable(start):
    daemon = start("limits.width=300", "limits.height=200", "limits.pixels=50K", "limits.scans=12",
                   "limits.pixels_progressive=10K")
    cases = [((301, 10, False), "image-too-large", "limits.width", 300, 301),
             ((10, 201, False), "image-too-large", "limits.height", 200, 201),
             ((300, 200, False), "too-many-pixels", "limits.pixels", 50000, 60000),
             ((150, 100, True), "too-many-pixels", "limits.pixels_progressive", 10000, 15000)]
    for (width, height, progressive), slug, limit, configured, actual in cases:
        problem = refused(daemon,
                          pictures.photo_jpeg(width, height, 3, progressive=progressive), 413, slug)
        assert (problem["limit"], problem["configured"], problem["actual"]) == (
            limit, configured, actual)
        assert str(configured) in problem["detail"] and str(actual) in problem["detail"]
    refused(daemon, jpegfile.many_scans(13), 413, "too-many-scans")
    daemon.image(jpegfile.many_scans(12))
    daemon.image(pictures.photo_jpeg(250, 200, 3))
    daemon.image(pictures.photo_jpeg(100, 100, 3, progressive=True))


@pytest.mark.every_policy
def test_image_above_the_memory_budget_is_refused(start):
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=8M")
    source = pictures.photo_jpeg(4000, 3000, 1, progressive=True)
    problem = refused(daemon, jpegfile.header_only(7800, 8000, jpegfile.SOF2), 413, "memory")
    assert problem["limit"] == "limits.memory_budget"
    assert problem["actual"] > problem["configured"] == 64 << 20
    # A progressive file needs all its coefficients at once, and a baseline one does not.
    refused(daemon, source, 413, "memory")
    daemon.image(pictures.photo_jpeg(4000, 3000, 1))
    daemon.image(SMALL)


# ---- not a JPEG ----

@pytest.mark.parametrize("name, source",
                         [("text", b"hello"), ("two bytes", b"\xff\xd8"), ("one byte", b"\xff"),
                          ("SOI alone", b"\xff\xd8\0\0\0"), ("GIF", b"GIF89a" + b"\0" * 100),
                          ("zeros", b"\0" * 100000), ("garbage first", b"\0" + SMALL)])
def test_file_that_is_not_a_jpeg_is_refused(daemon, name, source):
    problem = refused(daemon, source, 415, "unsupported-media-type")
    assert "jpeg" in (problem["detail"] + problem["title"]).lower()


def test_gif_is_refused(daemon, tmp_path):
    pictures.photo(64, 48).save(tmp_path / "x.gif")
    refused(daemon, (tmp_path / "x.gif").read_bytes(), 415, "unsupported-media-type")


def test_empty_body_has_no_image(daemon):
    answer = daemon.upload(b"")
    assert (answer.status, answer.slug) == (400, "no-image")
    check_problem(answer)
