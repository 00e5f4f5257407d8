"""The average colour and the ThumbHash of an image: store.placeholder."""

import json

import numpy as np
import pytest
from PIL import Image

import jpegfile
import pictures
import thumbhash
from darkroom import run
from store_files import files_of

KEEP = "server.keep_originals=yes"


def painted(width, height):
    """A picture with a colour of its own in each corner, on a soft background."""
    image = pictures.photo(width, height, 5).resize((8, 6)).resize((width, height))
    image.paste((230, 60, 20), (0, 0, width // 3, height // 3))
    image.paste((20, 60, 230), (width * 2 // 3, height // 2, width, height))
    image.paste((240, 240, 200), (0, height * 2 // 3, width // 4, height))
    return image


def color_of(text):
    assert text[0] == "#" and len(text) == 7
    return np.array([int(text[i:i + 2], 16) for i in (1, 3, 5)])


def check(image, source):
    """Checks colour and hash against those of the upright source."""
    ideal = pictures.upright(source).convert("RGB")
    assert np.abs(color_of(image["color"]) - np.asarray(ideal, float).mean((0, 1))).max() < 3
    small = ideal.resize(pictures.fit(*ideal.size, 160), Image.Resampling.BOX)
    (head, nibbles), (ideal_head, ideal_nibbles) = (thumbhash.unpack(image["thumbhash"]),
                                                    thumbhash.fields(small))
    assert np.abs(np.subtract(head, ideal_head)).max() <= 1 and head[8] == ideal_head[8]
    assert len(nibbles) - len(ideal_nibbles) in (0, 1)
    off = np.abs(np.subtract(nibbles[:len(ideal_nibbles)], ideal_nibbles))
    assert off.max() <= 2 and (off > 0).mean() < .5, off
    seen = thumbhash.decode(image["thumbhash"])
    shown = ideal.resize(seen.size, Image.Resampling.BOX)
    flat = Image.new("RGB", seen.size, tuple(int(c) for c in color_of(image["color"])))
    assert pictures.rms(seen, shown) < .75 * pictures.rms(flat, shown)


@pytest.mark.parametrize("width, height", [(640, 480), (300, 500), (901, 300), (200, 200),
                                           (90, 60), (160, 640)])
@pytest.mark.also_with("seda")
def test_placeholder_looks_like_the_picture(daemon, width, height):
    source = pictures.jpeg(painted(width, height), 95, subsampling=0)
    image = daemon.image(source)
    check(image, source)
    assert daemon.get(image["url"]).json() == image


def test_placeholder_shows_the_upright_picture(daemon):
    source = jpegfile.insert_segment(pictures.jpeg(painted(500, 300), 95, subsampling=0),
                                     jpegfile.APP1, jpegfile.exif(6, False))
    check(daemon.image(source), source)


def test_grey_picture_has_a_grey_placeholder(daemon):
    source = pictures.jpeg(painted(300, 200).convert("L"), 95)
    image = daemon.image(source)
    check(image, source)
    assert len(set(color_of(image["color"]))) == 1


@pytest.mark.parametrize("width, height", [(1, 1), (1, 900), (900, 1), (7, 3)])
def test_smallest_pictures_have_placeholders(daemon, width, height):
    image = daemon.image(pictures.jpeg(Image.new("RGB", (width, height), (200, 100, 50)), 97,
                                       subsampling=0))
    assert np.abs(color_of(image["color"]) - (200, 100, 50)).max() < 4
    seen = np.asarray(thumbhash.decode(image["thumbhash"]), float)
    assert np.abs(seen.mean((0, 1)) - (200, 100, 50)).max() < 6


def test_placeholder_is_of_the_smallest_variant_that_shows_all_in_colour(start):
    daemon = start("variant.square.operations=scale 64x64 cover left",
                   "variant.grey.operations=scale 80x80 inside, grayscale",
                   "variant.turned.operations=scale 90x90 inside, rotate 90")
    source = pictures.jpeg(painted(600, 300), 95, subsampling=0)
    check(daemon.image(source), source)


def test_any_variant_has_a_placeholder_if_none_shows_all(start, tmp_path):
    path = tmp_path / "site.ini"
    path.write_text("[variant.square]\noperations = scale 64x64 cover left\n")
    source = pictures.jpeg(painted(600, 300), 95, subsampling=0)
    left = pictures.jpeg(painted(600, 300).crop((0, 0, 300, 300)), 95, subsampling=0)
    check(start(config=path).image(source), left)


def test_placeholder_can_be_turned_off(start):
    daemon = start("store.placeholder=no")
    image = daemon.image(pictures.photo_jpeg(60, 40, 3))
    assert "color" not in image and "thumbhash" not in image


def test_remake_keeps_a_placeholder_and_adds_a_missing_one(start):
    before = start(KEEP, "store.placeholder=no")
    plain = before.image(pictures.photo_jpeg(200, 100, 3))["id"]
    before.stop()
    before = start(KEEP, store=before.store)
    image = before.image(pictures.photo_jpeg(200, 100, 3))
    before.stop()
    daemon = start(KEEP, "variant.thumb.operations=scale 100x100 inside", store=before.store)
    done = run("-o", f"server.root={daemon.store}", "store", "remake")
    assert "2 images remade, 0 not" in done.stderr
    kept = daemon.get(image["url"]).json()
    assert (kept["color"], kept["thumbhash"]) == (image["color"], image["thumbhash"])
    added = json.loads(files_of(daemon.store, plain)["image.json"])
    assert np.abs(color_of(added["color"]) - color_of(kept["color"])).max() < 4
    assert len(added["thumbhash"]) == len(kept["thumbhash"])
    assert run("-o", f"server.root={daemon.store}", "store", "check").returncode == 0
