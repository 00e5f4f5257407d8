"""Covers with a gravity, and the focal point of an upload: the field focus. Compared with Pillow's
crop of the upright picture."""

import json
import shutil

import pytest
from PIL import Image

import jpegfile
import pictures
from client import form
from darkroom import eventually, run
from store_files import directory_of, files_of

KEEP = "server.keep_originals=yes"
LANCZOS = Image.Resampling.LANCZOS
# name: (operations, boxes of its covers, the point that each keeps, rotation before and behind)
VARIANTS = {
    "top": ("scale 200x100 cover top", [(200, 100)], [(.5, 0)], 0),
    "bottom": ("scale 200x100 cover bottom", [(200, 100)], [(.5, 1)], 0),
    "left": ("scale 100x160 cover left", [(100, 160)], [(0, .5)], 0),
    "right": ("scale 100x160 cover right", [(100, 160)], [(1, .5)], 0),
    "right_small": ("scale 50x80 cover right", [(50, 80)], [(1, .5)], 0),
    "middle": ("scale 100x160 cover", [(100, 160)], [(.5, .5)], 0),
    "point": ("scale 90x90 cover 62%:41.5%", [(90, 90)], [(.62, .415)], 0),
    "chain": ("scale 160x160 cover left, scale 150x50 cover bottom", [(160, 160), (150, 50)],
              [(0, .5), (.5, 1)], 0),
    "turned": ("rotate 90, scale 100x160 cover 20%:70%", [(100, 160)], [(.2, .7)], 90),
}
SETTINGS = [KEEP] + [f"variant.{name}.{key}" for name, (operations, *_) in VARIANTS.items()
                     for key in (f"operations={operations}", "quality=95")]


def cover(image, box, point):
    """Returns the part of the box's proportions that has the point in its middle, or next to it."""
    scale = min(image.width / box[0], image.height / box[1])
    sides = [min(box[i] * scale, image.size[i]) for i in (0, 1)]
    starts = [min(max(point[i] * image.size[i] - sides[i] / 2, 0), image.size[i] - sides[i])
              for i in (0, 1)]
    part = (*starts, starts[0] + sides[0], starts[1] + sides[1])
    inside = tuple((point[i] * image.size[i] - starts[i]) / sides[i] for i in (0, 1))
    return image.resize(box, LANCZOS, box=part), inside


def expected(source, name, focus=None):
    """focus: of the upload, which replaces each gravity."""
    _, boxes, points, degrees = VARIANTS[name]
    image = pictures.upright(source)
    if degrees == 90:
        image = image.transpose(Image.Transpose.ROTATE_270)
        focus = focus and (1 - focus[1], focus[0])
    for box, point in zip(boxes, points):
        image, inside = cover(image, box, focus or point)
        focus = focus and inside
    return image


def check(daemon, image, source, focus=None, least=33):
    for name in VARIANTS:
        ours, ideal = pictures.decode(daemon.fetch(image, name)), expected(source, name, focus)
        assert ours.size == ideal.size
        assert pictures.psnr(ours, ideal) > least, \
            f"{name}, {focus}: {pictures.psnr(ours, ideal):.1f} dB"


def smooth(width, height, seed):
    photo = pictures.photo(width, height, seed)
    return photo.resize((max(1, width // 4), max(1, height // 4))).resize((width, height))


def post(daemon, source, *fields, headers=()):
    content_type, body = form([*[(name, None, None, value.encode()) for name, value in fields],
                               ("file", "a.jpg", "image/jpeg", source)])
    return daemon.upload(body, content_type, headers=list(headers))


def focused(daemon, source, focus, headers=()):
    answer = post(daemon, source, ("focus", focus), headers=headers)
    assert answer.status in (201, 202), answer
    return answer.json()["images"][0]


@pytest.mark.parametrize("width, height", [(701, 403), (300, 520), (1600, 1200)])
def test_cover_keeps_the_part_that_its_gravity_names(share, width, height):
    daemon = share(*SETTINGS)
    source = pictures.jpeg(smooth(width, height, 3), 97)
    check(daemon, daemon.image(source), source)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_gravity_and_focus_apply_to_the_upright_picture(share, orientation):
    daemon = share(*SETTINGS)
    source = jpegfile.insert_segment(pictures.jpeg(smooth(640, 452, 4), 97), jpegfile.APP1,
                                     jpegfile.exif(orientation, False))
    check(daemon, daemon.image(source), source)
    check(daemon, focused(daemon, source, "21%:77%"), source, (.21, .77))


@pytest.mark.parametrize("focus", ["0%:0%", "100%:100%", "33.3%:60%", "5%:95%"])
@pytest.mark.also_with("seda")
def test_focus_of_an_upload_replaces_gravity(share, focus):
    """The decoder reduces the large picture, and the first covers are made from that."""
    daemon = share(*SETTINGS, "variant.whole.operations=scale 100x100 inside")
    source = pictures.jpeg(smooth(2400, 1700, 5), 90)
    image = focused(daemon, source, focus)
    assert image["focus"] == focus == daemon.get(image["url"]).json()["focus"]
    check(daemon, image, source, [float(part[:-1]) / 100 for part in focus.split(":")], 32)
    plain = daemon.image(source)
    assert "focus" not in plain
    assert daemon.fetch(image, "whole") == daemon.fetch(plain, "whole")


def test_all_images_of_a_form_have_its_focus(share):
    daemon = share(*SETTINGS)
    source = pictures.photo_jpeg(400, 300, 2)
    content_type, body = form([("a", "a.jpg", "image/jpeg", source),
                               ("focus", None, None, b"10%:90%"),
                               ("b", "b.jpg", "image/jpeg", source)])
    images = daemon.upload(body, content_type).json()["images"]
    assert [image["focus"] for image in images] == ["10%:90%"] * 2
    for name in VARIANTS:
        assert daemon.fetch(images[0], name) == daemon.fetch(images[1], name)


def test_remade_image_keeps_its_focus(start):
    before = start(KEEP)
    source = pictures.photo_jpeg(600, 400, 7)
    ident = focused(before, source, "12%:80%")["id"]
    before.stop()
    daemon = start(*SETTINGS, store=before.store)
    done = run("-o", f"server.root={daemon.store}", "store", "remake")
    assert done.returncode == 0 and "1 image remade, 0 not" in done.stderr
    fresh = focused(daemon, source, "12%:80%")["id"]
    remade, made = (files_of(daemon.store, i) for i in (ident, fresh))
    assert {name: remade[name] for name in made if name != "image.json"} == {
        name: data for name, data in made.items() if name != "image.json"}
    assert json.loads(remade["image.json"])["focus"] == "12%:80%"


def test_changed_gravity_is_a_changed_variant(start):
    before = start(*SETTINGS)
    source = pictures.jpeg(smooth(600, 400, 7), 95)
    ident = before.image(source)["id"]
    before.stop()
    daemon = start(*SETTINGS, "variant.right.operations=scale 100x160 cover left",
                   store=before.store)
    done = run("-o", f"server.root={daemon.store}", "store", "remake")
    assert "1 image remade, 0 not" in done.stderr
    files = files_of(daemon.store, ident)
    assert files["right.jpg"] == files["left.jpg"]


def test_focus_survives_a_crash_before_the_image_is_stored(start):
    daemon = start(*SETTINGS)
    source = pictures.photo_jpeg(300, 200, 3)
    image = focused(daemon, source, "90%:10%", [("Prefer", "respond-async")])
    ident = image["id"]
    assert eventually(lambda: directory_of(daemon.store, ident).exists())
    expected_files = files_of(daemon.store, ident)
    daemon.kill()
    shutil.rmtree(directory_of(daemon.store, ident))
    spooled = daemon.store / ".spool" / ident
    spooled.mkdir(exist_ok=True)
    (spooled / "original.jpg").write_bytes(source)
    (spooled / "note").write_bytes(b"0\na.jpg\0\0" b"0 90%:10%\0")
    daemon = start(*SETTINGS, store=daemon.store)
    assert eventually(lambda: daemon.get(f"/images/{ident}").status == 200)
    assert files_of(daemon.store, ident) == expected_files


@pytest.mark.parametrize("fields, fault", [
    ([("focus", "30:70")], "the field focus is not a point; expected X%:Y%, each 0%..100%"),
    ([("focus", "30%:170%")], "the field focus is not a point"),
    ([("focus", "")], "the field focus is not a point"),
    ([("focus", "top")], "the field focus is not a point"),
    ([("focus", "1%:2%"), ("focus", "1%:2%")], "the field focus occurs twice")])
def test_wrong_focus_is_refused(daemon, fields, fault):
    answer = post(daemon, pictures.photo_jpeg(60, 40, 3), *fields)
    assert (answer.status, answer.slug) == (400, "malformed-form")
    assert fault in answer.json()["detail"]


def test_focus_is_not_a_name_for_metadata():
    done = run("-t", "-o", "store.metadata=caption, focus")
    assert done.returncode == 78 and "(not focus)" in done.stderr
