"""Every kind of JPEG that cameras, printers and scanners make: orientations, colour spaces,
samplings and sizes."""


import numpy as np
import pytest
from PIL import Image

import jpegfile
import pictures
from jpegfile import SAMPLINGS, planes

SMALL = pictures.photo_jpeg(320, 240, 2)
COLORS = {"red": (230, 30, 30), "green": (30, 200, 40), "blue": (40, 40, 220),
          "white": (245, 245, 245)}


def marked(width, height):
    """Returns a grey picture with marks in its corners: red, green / blue, white."""
    image = Image.new("RGB", (width, height), (128, 128, 128))
    w, h = width // 4, height // 4
    for (x, y), color in zip(((0, 0), (width - w, 0), (0, height - h), (width - w, height - h)),
                             COLORS.values()):
        image.paste(color, (x, y, x + w, y + h))
    return image


def corners(image):
    """Returns the names of the colours in the corners, row by row."""
    pixels = np.asarray(image.convert("RGB"), dtype=int)
    height, width = pixels.shape[:2]
    x, y = max(1, width // 10), max(1, height // 10)
    spots = (pixels[y, x], pixels[y, -x - 1], pixels[-y - 1, x], pixels[-y - 1, -x - 1])
    return [min(COLORS, key=lambda c: np.abs(spot - COLORS[c]).sum()) for spot in spots]


def check_like_pillow(daemon, source, least=30.0, least_thumb=30.0):
    """Uploads a file and compares its variants with those of Pillow. Returns the image."""
    image = daemon.image(source)
    assert (image["width"], image["height"]) == pictures.upright_size(source)
    for name, limit in (("medium", least), ("thumb", least_thumb)):
        assert pictures.compare(daemon.fetch(image, name), source, name).encoded_psnr > limit, name
    return image


# ---- orientation ----

@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("big_endian", [False, True])
def test_orientation_is_applied(daemon, orientation, big_endian):
    tagged = jpegfile.exif(orientation, big_endian, thumbnail=pictures.jpeg(marked(32, 24)))
    source = jpegfile.insert_segment(pictures.jpeg(marked(1200, 700), 90), jpegfile.APP1, tagged)
    upright = pictures.upright(source)
    image = daemon.image(source)
    size = (1200, 700) if orientation < 5 else (700, 1200)
    assert (image["width"], image["height"]) == upright.size == size
    for name, (box, _, _) in pictures.VARIANTS.items():
        data = daemon.fetch(image, name)
        ours = pictures.decode(data)
        assert ours.size == pictures.fit(*upright.size, box)
        assert not ours.getexif(), "EXIF is left: viewers would rotate it again"
        assert all(m != jpegfile.APP1 for m, _, _ in jpegfile.segments(data))
        assert corners(ours) == corners(upright), name
    assert pictures.compare(daemon.fetch(image, "medium"), source, "medium").ideal_psnr > 30


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("size", [(53, 37), (1001, 3), (401, 333)])
def test_orientation_is_applied_to_odd_sizes(daemon, orientation, size):
    source = jpegfile.insert_segment(pictures.photo_jpeg(*size, 6), jpegfile.APP1,
                                     jpegfile.exif(orientation))
    check_like_pillow(daemon, source, 29, 29)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_senseless_orientation_is_ignored(daemon, orientation):
    source = jpegfile.insert_segment(SMALL, jpegfile.APP1, jpegfile.exif(orientation))
    image = daemon.image(source)
    assert (image["width"], image["height"]) == (320, 240)


@pytest.mark.parametrize("payload",
                         [b"Exif\0\0", b"Exif\0\0II*\0", b"Exif\0\0MM\0*\xff\xff\xff\xff",
                          b"Exif\0\0II*\0\xff\xff\xff\x7f" + b"\xff" * 40,
                          b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01" * 60,
                          b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0",
                          b"Exif\0\0XX*\0\x08\0\0\0\x01\0", b"Exif\0", b""])
def test_broken_exif_is_harmless(daemon, payload):
    image = daemon.image(jpegfile.insert_segment(SMALL, jpegfile.APP1, payload))
    assert (image["width"], image["height"]) == (320, 240)


@pytest.mark.parametrize("grey", [False, True])
def test_orientation_is_applied_to_grey_and_progressive_files(daemon, grey):
    picture = pictures.photo(900, 500, 3)
    source = pictures.jpeg(picture.convert("L") if grey else picture, 90, progressive=True)
    check_like_pillow(daemon, jpegfile.insert_segment(source, jpegfile.APP1, jpegfile.exif(6)))


# ---- colour spaces and sampling ----

def test_grey_stays_grey(daemon):
    image = check_like_pillow(daemon, pictures.jpeg(pictures.photo(1000, 800, 3).convert("L")))
    for name in pictures.VARIANTS:
        data = daemon.fetch(image, name)
        assert len(jpegfile.frame(data)[3]) == 1 and pictures.decode(data).mode == "L"


def test_cmyk_becomes_rgb(daemon):
    source = pictures.jpeg(pictures.photo(1000, 800, 3).convert("CMYK"), 92)
    image = check_like_pillow(daemon, source, 29, 29)
    assert pictures.decode(daemon.fetch(image, "medium")).mode == "RGB"


def test_cmyk_with_black_becomes_rgb(daemon):
    """The grey part is in K, as printers separate it."""
    pixels = np.asarray(pictures.photo(640, 480, 4), dtype=np.float64)
    key = pixels.max(axis=2, keepdims=True)
    inks = np.concatenate([255 - pixels * 255 / np.maximum(key, 1), 255 - key], axis=2)
    cmyk = Image.fromarray(np.clip(np.rint(inks), 0, 255).astype(np.uint8), "CMYK")
    check_like_pillow(daemon, pictures.jpeg(cmyk, 95), 29, 29)


def ycck(image, key):
    """Returns the planes of an Adobe YCCK file: YCbCr of the complement, and K inverted."""
    inverse = Image.fromarray(255 - np.asarray(image))
    return planes(inverse) + [np.full(image.size[::-1], key, np.uint8)]


@pytest.mark.parametrize("key", [255, 160])
@pytest.mark.parametrize("sampling", [[(1, 1)] * 4, [(2, 2), (1, 1), (1, 1), (2, 2)]])
def test_ycck_becomes_rgb(daemon, key, sampling):
    source = jpegfile.encode(ycck(pictures.photo(200, 150, 3), key), sampling, transform=2)
    assert pictures.decode(source).mode == "CMYK"
    check_like_pillow(daemon, source, 29, 29)


def test_rgb_is_decoded(daemon):
    photo = pictures.photo(200, 150, 3)
    for source in (jpegfile.encode(planes(photo, "RGB"), transform=0),
                   jpegfile.encode(planes(photo, "RGB"), ids=b"RGB")):
        check_like_pillow(daemon, source, 29, 29)


def test_ycc_without_a_marker_is_decoded(daemon):
    check_like_pillow(daemon, jpegfile.encode(planes(pictures.photo(120, 90, 3))), 29, 29)


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("size", [(240, 160), (131, 77), (17, 9)])
@pytest.mark.parametrize("layout", [{}, {"interleaved": False, "restart": 5}])
def test_every_usual_sampling_is_decoded(daemon, name, size, layout):
    # The picture is smooth, so that the interpolation of chroma does not matter.
    photo = pictures.photo(*size, 3).resize((40, 30)).resize(size)
    check_like_pillow(daemon, jpegfile.encode(planes(photo), SAMPLINGS[name], 92, **layout), 30, 30)


@pytest.mark.parametrize("sampling", [
    [(3, 1), (1, 1), (1, 1)], [(3, 2), (2, 1), (1, 1)], [(2, 1), (3, 1), (1, 1)],
    [(1, 3), (1, 2), (1, 1)], [(2, 2), (2, 2), (1, 1)]])
def test_odd_sampling_is_refused_or_decoded(daemon, sampling):
    """The decoder may refuse ratios that are not whole numbers."""
    answer = daemon.upload(jpegfile.encode(planes(pictures.photo(131, 77, 3)), sampling))
    assert answer.status in (201, 422), answer
    if answer.status == 201:
        (image,) = answer.json()["images"]
        ours = pictures.decode(daemon.fetch(image, "medium"))
        assert pictures.luma_rms(ours, pictures.photo(131, 77, 3)) < 12


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize": True}, {"quality": 100},
                                     {"quality": 10}])
def test_files_of_all_encoder_options_are_decoded(daemon, subsampling, options):
    options = {"quality": 90, "subsampling": subsampling, **options}
    check_like_pillow(daemon, pictures.jpeg(pictures.photo(850, 620, 3), **options), 31)


@pytest.mark.parametrize("width, height", [(1, 1), (1, 9), (8, 8), (9, 7), (15, 17), (33, 31),
                                           (257, 129), (1599, 1201)])
def test_odd_sizes_are_decoded(daemon, width, height):
    check_like_pillow(daemon, pictures.photo_jpeg(width, height, 3), 30, 30)


@pytest.mark.parametrize("width, height",
                         [(20000, 3), (3, 20000), (65500, 1), (1, 65500), (30000, 20)])
def test_extreme_strips_are_decoded(daemon, width, height):
    image = daemon.image(pictures.photo_jpeg(width, height, 3))
    assert (image["width"], image["height"]) == (width, height)
    for name, (box, _, _) in pictures.VARIANTS.items():
        assert pictures.size(daemon.fetch(image, name)) == pictures.fit(width, height, box)
