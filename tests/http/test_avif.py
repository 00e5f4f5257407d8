"""AVIFs that are uploaded: their planes, what their boxes say, and what is refused."""

import json
import random
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image, ImageCms

import pictures
from avif_planes import as_rgb, y4m
from store_files import directory_of
from test_corpus import decoded
from test_metrics import scrape
from test_other_formats import PHOTO, expected, fetched, on, problem, upload, with_alpha
from test_tokens import make as token_of

pytestmark = pytest.mark.skipif(not shutil.which("avifenc"), reason="no avifenc: libavif-bin")

SMALL = PHOTO.resize((203, 147))
MIDDLE = PHOTO.resize((903, 601))


def avif(folder, image, *options, name="x"):
    """Makes a file, and returns its path."""
    sources = []
    for i, each in enumerate(image if isinstance(image, list) else [image]):
        sources.append(folder / f"{name}{i}.png")
        each.save(sources[-1])
    path = folder / f"{name}.avif"
    subprocess.run(["avifenc", "-s", "9", "--min", "8", "--max", "10", *options, *sources, path],
                   check=True, capture_output=True)
    return path


def made(folder, image, *options):
    return avif(folder, image, *options).read_bytes()


# ---- planes ----

PLANES = [(yuv, depth, 6, "full") for yuv in (400, 420, 422, 444) for depth in (8, 10, 12)] + [
    (yuv, depth, matrix, "limited")
    for yuv, depth, matrix in ((400, 10, 6), (420, 8, 1), (420, 10, 9), (444, 8, 6), (422, 12, 1))
] + [(444, 8, 0, "full"), (444, 10, 0, "limited"), (444, 8, 8, "full"), (420, 8, 2, "full")]


def test_planes_are_those_of_another_program(tmp_path):
    """Within one level, and equal to those of the same code without the jail."""
    cases = {}
    for yuv, depth, matrix, span in PLANES:
        path = avif(tmp_path, SMALL, "-y", str(yuv), "-d", str(depth), "-r", span,
                    "--cicp", f"1/13/{matrix}", name=f"{yuv}-{depth}-{matrix}-{span}")
        cases[path] = as_rgb(*y4m(path), matrix, span == "full")
    seen = 0
    for path, words, planes in decoded(list(cases)):
        assert words[0] == "equal", (path, words)
        assert planes.shape == cases[path].shape, path
        assert np.abs(planes - cases[path]).max() <= 1, path
        seen += 1
    assert seen == len(PLANES)


# ---- pictures ----

def left(image, turns):
    return image.rotate(90 * turns, expand=True)


KINDS = {
    "colour": ((), MIDDLE, lambda p: p),
    "grey": (("-y", "400"), MIDDLE, lambda p: p.convert("L")),
    "10 bits": (("-d", "10", "-y", "420"), MIDDLE, lambda p: p),
    "alpha": ((), with_alpha(MIDDLE), lambda p: on(p, "white")),
    "alpha that is multiplied": (("-p",), with_alpha(MIDDLE), lambda p: on(p, "white")),
    "grey with alpha, 12 bits": (("-y", "400", "-d", "12"), with_alpha(MIDDLE),
                                 lambda p: on(p, "white").convert("L")),
    "turned": (("--irot", "1"), MIDDLE, lambda p: left(p, 1)),
    "turned and mirrored": (("--irot", "3", "--imir", "1"), MIDDLE,
                            lambda p: left(p, 3).transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    "mirrored": (("--imir", "0"), MIDDLE, lambda p: p.transpose(Image.Transpose.FLIP_TOP_BOTTOM)),
    "cropped": (("-y", "420", "--crop", "2,4,890,580"), MIDDLE,
                lambda p: p.crop((2, 4, 892, 584))),
    "a grid": (("-g", "4x3"), PHOTO.resize((1024, 768)), lambda p: p),
    "a grid with alpha": (("-g", "2x2"), with_alpha(PHOTO.resize((1024, 768))),
                          lambda p: on(p, "white")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_like_pillows(daemon, tmp_path, kind):
    options, source, shown = KINDS[kind]
    stored = upload(daemon, made(tmp_path, source, *options))
    for variant, box in (("medium", 800), ("thumb", 160)):
        ours, ideal = pictures.decode(daemon.fetch(stored, variant)), expected(shown(source), box)
        assert ours.size == ideal.size
        assert pictures.psnr(ours, ideal) > 30
        assert abs(pictures.difference(ours, ideal).mean(axis=(0, 1))).max() < 1.5


@pytest.mark.parametrize("size", [(1, 1), (1, 700), (900, 1), (17, 3), (3001, 2)])
def test_odd_sizes(daemon, tmp_path, size):
    for yuv in ("420", "444"):
        stored = upload(daemon, made(tmp_path, PHOTO.resize(size), "-y", yuv))
        assert (stored["width"], stored["height"]) == size
        assert pictures.decode(daemon.fetch(stored, "thumb")).size == pictures.fit(*size, 160)


def test_transparent_parts_are_on_the_background(start, tmp_path):
    daemon = start("input.background=2060a0")
    for options in ((), ("-y", "400")):  # grey becomes coloured
        data = made(tmp_path, Image.new("RGBA", (300, 200), (255, 0, 0, 0)), *options)
        pixel = np.asarray(fetched(daemon, data))[100, 150]
        assert np.abs(pixel.astype(int) - (0x20, 0x60, 0xA0)).max() <= 3


def test_a_profile_and_the_original_are_kept(start, tmp_path):
    daemon = start()
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    (tmp_path / "icc").write_bytes(profile)
    data = made(tmp_path, PHOTO, "--icc", str(tmp_path / "icc"))
    image = upload(daemon, data)
    assert pictures.decode(daemon.fetch(image, "medium")).info["icc_profile"] == profile
    folder = directory_of(daemon.store, image["id"])
    assert (folder / "original.jpg").read_bytes() == data
    record = json.loads((folder / "image.json").read_text())
    assert record["record"]["upload"]["format"] == "image/avif"


def test_an_avif_of_another_brand_is_served_as_one(start, tmp_path):
    """Its own brand is only a compatible one."""
    data = made(tmp_path, PHOTO)
    assert data[8:12] == b"avif" and b"avif" in data[16:64]
    data = data[:8] + b"mif1" + data[12:]
    token, line = token_of("admin", "upload", "original")
    (tmp_path / "tokens").write_text(line + "\n")
    (tmp_path / "tokens").chmod(0o600)
    daemon = start(f"access.tokens_file={tmp_path / 'tokens'}")
    bearer = [("Authorization", f"Bearer {token}")]
    image = daemon.image(data, headers=bearer)
    answer = daemon.get(f"/images/{image['id']}/original.jpg", headers=bearer)
    assert (answer.status, answer["content-type"], answer.body) == (200, "image/avif", data)


def test_many_associations_are_refused(daemon, tmp_path):
    """Each item's are looked for, so that a large box of them would take seconds."""
    data = made(tmp_path, PHOTO)
    at = data.index(b"ipma") - 4
    size = int.from_bytes(data[at:at + 4], "big")
    spare = 2 << 20
    box = (size + spare).to_bytes(4, "big") + data[at + 4:at + size] + bytes(spare)
    data = data[:at] + box + data[at + size:]
    for name in (b"iprp", b"meta"):
        at = data.index(name) - 4
        length = int.from_bytes(data[at:at + 4], "big") + spare
        data = data[:at] + length.to_bytes(4, "big") + data[at + 4:]
    assert problem(daemon, data, 422, "damaged-image") == "AVIF: the header is damaged"


def test_the_daemons_own_avif_can_be_uploaded(start):
    daemon = start("variant.medium.formats=jpeg, avif")
    image = daemon.image(pictures.photo_jpeg(1203, 801, 5))
    made_avif = daemon.get(f"/images/{image['id']}/medium.avif").body
    jpeg = pictures.decode(daemon.fetch(image, "medium"))
    assert pictures.psnr(fetched(daemon, made_avif), jpeg) > 30


# ---- refusals ----

def patched(data, box, content):
    """Returns the file with the first content of the box replaced."""
    at = data.index(box) + 4
    return data[:at] + content + data[at + len(content):]


def test_what_is_not_supported_is_refused_by_name(daemon, tmp_path):
    frames = [SMALL, SMALL.rotate(180)]
    cases = {"animations": made(tmp_path, frames),
             "HDR pictures (PQ and HLG)": made(tmp_path, SMALL, "--cicp", "9/16/9"),
             "some of its essential properties":
                 made(tmp_path, SMALL, "--irot", "1").replace(b"irot", b"wxyz")}
    for what, data in cases.items():
        assert problem(daemon, data, 422, "unsupported-image") == f"AVIF: {what} are not supported"
    hlg = made(tmp_path, SMALL, "--cicp", "9/18/9")
    assert "HLG" in problem(daemon, hlg, 422, "unsupported-image")
    # The box does not say it, but the stream does.
    assert "HDR" in problem(daemon, hlg.replace(b"nclx", b"none"), 422, "unsupported-image")
    rare = made(tmp_path, SMALL, "--cicp", "1/13/6")
    codes = bytes([0, 1, 0, 13, 0, 14])
    assert "rare kind" in problem(daemon, patched(rare, b"nclx", codes), 422, "unsupported-image")
    assert scrape(daemon)("darkroom_decode_failures_total", format="avif",
                          reason="unsupported") == 2


def test_bombs_are_refused_by_their_header(daemon, tmp_path):
    data = made(tmp_path, Image.new("L", (64, 64)), "-y", "400")

    def sized(width, height):
        return patched(data, b"ispe", bytes(4) + width.to_bytes(4, "big") + height.to_bytes(4, "big"))
    before = scrape(daemon)("darkroom_decode_cpu_seconds_total", format="avif")
    assert "limits.pixels" in problem(daemon, sized(17000, 17000), 413, "too-many-pixels")
    assert "pixels_progressive" in problem(daemon, sized(10000, 10000), 413, "too-many-pixels")
    assert "limits.width" in problem(daemon, sized(65536, 1), 413, "image-too-large")
    assert scrape(daemon)("darkroom_decode_cpu_seconds_total", format="avif") == before


def test_damaged_files_are_refused(daemon, tmp_path):
    data = made(tmp_path, PHOTO, "-y", "420")
    at = data.index(b"mdat") + 4
    size = (1203).to_bytes(4, "big") + (801).to_bytes(4, "big")
    for broken in (data[:at + 100], data[:-500], data[:at] + bytes(len(data) - at),
                   patched(data, b"ispe", bytes(4) + size[:3] + b"\0" + size[4:]),  # 1024 x 801
                   patched(data, b"av1C", b"\x81\0\x1c\0")):  # grey, it says
        assert problem(daemon, broken, 422, "damaged-image") == "AVIF: the file is damaged"
    for broken in (data[:100], data.replace(b"pitm", b"pitx"), data.replace(b"av01", b"hvc1")):
        assert problem(daemon, broken, 422, "damaged-image") == "AVIF: the header is damaged"


def test_changed_files_cost_at_most_themselves(start, tmp_path):
    daemon = start()
    choice = random.Random(6)
    for options in (("-g", "2x2", "-y", "420"), ("-y", "444")):
        data = made(tmp_path, with_alpha(PHOTO.resize((256, 192))), *options)
        end = data.index(b"mdat")
        for _ in range(60):
            broken = bytearray(data)
            for _ in range(choice.randrange(1, 6)):
                broken[choice.choice((choice.randrange(end), choice.randrange(len(data))))] = (
                    choice.randrange(256))
            answer = daemon.upload(bytes(broken), "application/octet-stream")
            assert answer.status in (201, 413, 415, 422), answer
    upload(daemon, data)
    memory = daemon.get("/stats").json()["memory"]
    assert memory["reserved_image_bytes"] == memory["reserved_body_bytes"] == 0
    assert scrape(daemon)("darkroom_decode_failures_total", format="avif", reason="crashed") == 0


def test_a_refusal_names_the_format_and_the_key(start, tmp_path):
    daemon = start("input.formats=png")
    assert problem(daemon, made(tmp_path, SMALL), 415, "unsupported-media-type") == (
        "the body is an AVIF, which is not accepted here (input.formats); expected a JPEG or PNG")
    heic = bytes([0, 0, 0, 24]) + b"ftypheic" + bytes(4) + b"mif1heic" + bytes(100)
    assert problem(start(), heic, 415, "unsupported-media-type") == (
        "the body looks like HEIC; expected a JPEG, PNG, AVIF or WebP")
