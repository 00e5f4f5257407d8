"""Variants of an upload: sizes, pixels, file formats, profiles and metadata."""

import struct

import numpy as np
import pytest
from PIL import Image

import jpegfile
import pictures
from uploads import check_image, check_stored

SMALL = pictures.photo_jpeg(320, 240, 2)


# ---- pixels ----

@pytest.mark.parametrize("width, height",
                         [(1600, 1200), (1200, 1600), (1001, 667), (799, 801), (801, 800),
                          (1333, 4001), (4000, 3000), (803, 17), (800, 800)])
def test_variants_fit_their_boxes(daemon, width, height):
    image = daemon.image(pictures.photo_jpeg(width, height, 4))
    check_image(image, width, height)
    check_stored(daemon, image)


@pytest.mark.parametrize("width, height", [(1, 1), (2, 3), (100, 50), (160, 160), (159, 7)])
def test_small_pictures_are_not_enlarged(daemon, width, height):
    image = daemon.image(pictures.photo_jpeg(width, height, 4))
    assert all((v["width"], v["height"]) == (width, height) for v in image["variants"].values())
    check_stored(daemon, image)


@pytest.mark.parametrize("width, height, seed, progressive",
                         [(1600, 1200, 1, False), (4000, 3000, 5, False), (1333, 999, 6, True),
                          (900, 2000, 7, False), (810, 610, 8, False)])
def test_pixels_match_pillow(daemon, width, height, seed, progressive):
    """A variant is about as close to Pillow's ideal picture as Pillow's own file of the same
    quality. It is also close to that file."""
    source = pictures.photo_jpeg(width, height, seed, progressive=progressive)
    image = daemon.image(source)
    for name, least in (("medium", 33), ("thumb", 34)):
        ours = pictures.compare(daemon.fetch(image, name), source, name)
        assert ours.ideal_psnr > ours.best_psnr - 1.2, name
        assert ours.encoded_psnr > least, name


@pytest.mark.parametrize("width, height, seed", [(1600, 1200, 1), (700, 900, 9), (60, 45, 10),
                                                (13, 40, 11), (7, 30, 12), (3, 20, 13)])
def test_blur_is_a_gaussian(daemon, width, height, seed):
    """The difference from a Gaussian by definition is below one grey level (rms) after the same
    encoding. Outside the picture the pixels of its border go on, which decides narrow ones."""
    source = pictures.photo_jpeg(width, height, seed)
    ours = pictures.compare(daemon.fetch(daemon.image(source), "blurred"), source, "blurred")
    assert ours.encoded_luma_rms < 1.0
    assert ours.ideal_rms < ours.best_rms + 1.0


def test_flat_picture_stays_flat(daemon):
    source = pictures.jpeg(Image.new("RGB", (1000, 700), (200, 120, 40)), 95)
    image = daemon.image(source)
    for name in pictures.VARIANTS:
        pixels = np.asarray(pictures.decode(daemon.fetch(image, name)), dtype=int)
        assert np.abs(pixels - (200, 120, 40)).max() <= 4, name


def test_variants_are_baseline_420_without_metadata(daemon):
    image = daemon.image(pictures.jpeg(pictures.photo(1600, 1200, 1), 90, subsampling=0,
                                       comment=b"who took it",
                                       exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"))
    for name, (_, quality, _) in pictures.VARIANTS.items():
        data = daemon.fetch(image, name)
        marker, _, _, factors = jpegfile.frame(data)
        assert marker in (jpegfile.SOF0, jpegfile.SOF1), "not baseline"
        assert factors == [(2, 2), (1, 1), (1, 1)], "not 4:2:0"
        markers = {m for m, _, _ in jpegfile.segments(data)}
        assert not markers & {jpegfile.APP1, jpegfile.APP2, jpegfile.APP14,
                              jpegfile.COM}, "it has metadata"
        assert data.endswith(b"\xff\xd9") and b"who took it" not in data
        pillow = pictures.decode(pictures.jpeg(Image.new("RGB", (16, 16)), quality)).quantization
        ours = pictures.decode(data).quantization
        for table in (0, 1):
            wanted, got = np.array(pillow[table], float), np.array(ours[table], float)
            assert np.abs(got - wanted).max() <= 1 + 0.1 * wanted.max(), f"{name}: table {table}"


def icc(size, space=b"RGB "):
    """Returns a profile with a valid header and arbitrary contents."""
    body = np.random.default_rng(size).bytes(size)
    return struct.pack(">I", size) + body[4:16] + space + body[20:36] + b"acsp" + body[40:]


@pytest.mark.parametrize("size", [128, 3144, 200000])
@pytest.mark.parametrize("mode, space", [("RGB", b"RGB "), ("L", b"GRAY")])
def test_icc_profile_is_kept(daemon, size, mode, space):
    """The profile is kept byte by byte, also in several chunks."""
    profile = icc(size, space)
    image = daemon.image(pictures.jpeg(pictures.photo(900, 600, 3).convert(mode), 90,
                                       icc_profile=profile))
    for name in pictures.VARIANTS:
        assert jpegfile.icc_profile(daemon.fetch(image, name)) == profile, name


def test_icc_profile_of_other_inks_is_dropped(daemon):
    """The variants of a CMYK file are YCbCr, and its profile would be wrong for them."""
    source = pictures.jpeg(pictures.photo(900, 600, 3).convert("CMYK"), 90,
                           icc_profile=icc(3000, b"CMYK"))
    image = daemon.image(source)
    assert all(jpegfile.icc_profile(daemon.fetch(image, v)) is None for v in pictures.VARIANTS)


@pytest.mark.parametrize("payload", [
    b"ICC_PROFILE\0", b"ICC_PROFILE\0\1", b"ICC_PROFILE\0\0\0", b"ICC_PROFILE\0\2\1" + b"x" * 200,
    b"ICC_PROFILE\0\1\2" + icc(400), b"ICC_PROFILE\0\1\1" + icc(400)[:300], b"ICC_PROFILE\0\1\1"])
def test_broken_icc_profile_is_harmless(daemon, payload):
    image = daemon.image(jpegfile.insert_segment(SMALL, jpegfile.APP2, payload))
    for name in pictures.VARIANTS:
        pictures.decode(daemon.fetch(image, name))


def test_metadata_is_stripped(daemon):
    source = jpegfile.insert_segment(SMALL, jpegfile.APP1,
                                     b"http://ns.adobe.com/xap/1.0/\0<x>SECRET</x>")
    source = jpegfile.insert_segment(source, 0xED, b"Photoshop 3.0\0SECRET")
    source = jpegfile.insert_segment(
        source, jpegfile.APP1, jpegfile.exif(1, thumbnail=pictures.photo_jpeg(32, 32) + b"SECRET"))
    image = daemon.image(source)
    assert all(b"SECRET" not in daemon.fetch(image, v) for v in pictures.VARIANTS)
