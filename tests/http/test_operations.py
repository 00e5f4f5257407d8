"""Operations and keys of variants, compared with Pillow. Shared steps, orientation, the cutoff and
the memory budget must not change the result."""

import concurrent.futures
import math

import numpy as np
import pytest
from PIL import Image, ImageFilter, ImageOps

import jpegfile
import pictures
from darkroom import CONFIG, IS_SANITIZED, Daemon, eventually, overrides, run
from picture_cache import kept

LANCZOS = Image.Resampling.LANCZOS

# name: (operations, other keys, the same with Pillow)
VARIANTS = {
    "cover": ("scale 300x200 cover", {}, lambda i: ImageOps.fit(i, covered(i, 300, 200), LANCZOS)),
    "cover_thumb": ("scale 96x64 cover", {},
                    lambda i: ImageOps.fit(i, covered(i, 96, 64), LANCZOS)),
    "cover_up": ("scale 400x500 cover", {"enlarge": "yes"},
                 lambda i: ImageOps.fit(i, (400, 500), LANCZOS)),
    "exact": ("scale 111x222 exact", {},
              lambda i: i.resize((min(111, i.width), min(222, i.height)), LANCZOS)),
    "exact_up": ("scale 1200x333 exact", {"enlarge": "yes"},
                 lambda i: i.resize((1200, 333), LANCZOS)),
    "inside_up": ("scale 1500x1500 inside", {"enlarge": "yes"},
                  lambda i: i.resize(inside(i, 1500), LANCZOS)),
    "grey": ("scale 800x800 inside, grayscale", {}, lambda i: fitted(i, 800).convert("L")),
    "right": ("scale 800x800 inside, rotate 90", {},
              lambda i: fitted(i, 800).transpose(Image.Transpose.ROTATE_270)),
    "over": ("rotate 180, scale 250x250 inside", {},
             lambda i: fitted(i, 250).transpose(Image.Transpose.ROTATE_180)),
    "left": ("rotate 270, scale 200x100 cover", {},
             lambda i: ImageOps.fit(turned(i), covered(turned(i), 200, 100), LANCZOS)),
    "sharp": ("scale 400x400 inside, sharpen 1.5", {}, lambda i: sharpened(fitted(i, 400), 1.5, 1)),
    "sharper": ("scale 400x400 inside, sharpen 0.5 4", {},
                lambda i: sharpened(fitted(i, 400), 0.5, 4)),
    "fine": ("scale 500x500 inside", {"chroma": "444", "optimize": "no"}, lambda i: fitted(i, 500)),
    "progressive": ("scale 500x500 inside", {"progressive": "yes"}, lambda i: fitted(i, 500)),
    "optimized": ("scale 500x500 inside", {"optimize": "yes"}, lambda i: fitted(i, 500)),
    "all": ("scale 150x150 cover, blur 2, grayscale, rotate 90",
            {"chroma": "444", "progressive": "yes", "optimize": "yes"},
            lambda i: pictures.gaussian(ImageOps.fit(i, covered(i, 150, 150), LANCZOS), 2)
            .convert("L").transpose(Image.Transpose.ROTATE_270))}


def configuration(path, names=VARIANTS):
    """Writes a configuration with these variants only. Returns its path."""
    lines = []
    for name in names:
        operations, keys, _ = VARIANTS[name]
        lines.append(f"[variant.{name}]")
        lines += [f"{key} = {value}"
                  for key, value in {"operations": operations, "quality": 95, **keys}.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def rounded(side):
    return max(1, math.floor(side + 0.5))


def inside(image, box):
    scale = min(box / image.width, box / image.height)
    return rounded(image.width * scale), rounded(image.height * scale)


def fitted(image, box):
    return image.resize(pictures.fit(*image.size, box), LANCZOS)


def covered(image, width, height):
    """Returns the box, or the largest size of its proportions without enlargement."""
    scale = min(1, image.width / width, image.height / height)
    return rounded(width * scale), rounded(height * scale)


def turned(image):
    return image.transpose(Image.Transpose.ROTATE_90)


def sharpened(image, amount, sigma):
    """Returns the picture after an unsharp mask of its brightness, by definition."""
    y, cb, cr = image.convert("YCbCr").split() if image.mode != "L" else (image, None, None)
    values = np.asarray(y, dtype=float)
    blurred = np.asarray(pictures.gaussian(y, sigma), dtype=float)
    y = Image.fromarray(np.clip(np.rint(values + amount * (values - blurred)), 0,
                                255).astype(np.uint8))
    return Image.merge("YCbCr", (y, cb, cr)).convert("RGB") if cb else y


@pytest.fixture(scope="module")
def all_operations(tmp_path_factory):
    path = tmp_path_factory.mktemp("operations")
    daemon = Daemon(path / "store", config=configuration(path / "site.ini"))
    yield daemon
    daemon.stop()


@kept
def compare(data, source, name):
    """Compares a file with Pillow's variant of the source. Returns (size, is it grey, PSNR)."""
    ours, ideal = pictures.decode(data), VARIANTS[name][2](pictures.upright(source))
    return (ideal.size, ideal.mode == "L",
            pictures.psnr(ours, ideal) if ours.size == ideal.size else 0)


def check(daemon, source, least, names=VARIANTS):
    """Checks that the variants equal Pillow's, up to the losses of JPEG at quality 95."""
    image = daemon.image(source)
    for name in names:
        data = daemon.fetch(image, name)
        size, is_grey, psnr = compare(data, source, name)
        variant = image["variants"][name]
        assert size == (variant["width"], variant["height"]), name
        assert psnr > least, f"{name}: {psnr:.1f} dB"
        marker, width, height, factors = jpegfile.frame(data)
        assert (width, height) == size
        assert marker == (jpegfile.SOF2 if "progressive" in VARIANTS[name][1]
                          else jpegfile.SOF0), name
        assert factors == ([(1, 1)] if is_grey else [(1, 1)] * 3 if "chroma" in VARIANTS[name][1]
                           else [(2, 2), (1, 1), (1, 1)]), name
    return image


SIZES = [(1000, 700), (701, 1003), (401, 67), (300, 200), (97, 301), (33, 17)]
if IS_SANITIZED:
    SIZES = SIZES[3:]


@pytest.mark.parametrize("width, height", SIZES)
@pytest.mark.parametrize("subsampling", [0, 2])
def test_operations_give_the_pictures_of_pillow(all_operations, width, height, subsampling):
    small = max(1, width // 4), max(1, height // 4)
    photo = pictures.photo(width, height, 3).resize(small).resize((width, height))
    check(all_operations, pictures.jpeg(photo, 97, subsampling=subsampling), 33)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_operations_apply_to_the_upright_picture(all_operations, orientation):
    photo = pictures.photo(403, 301, 4).resize((100, 75)).resize((403, 301))
    source = jpegfile.insert_segment(pictures.jpeg(photo, 97), jpegfile.APP1,
                                     jpegfile.exif(orientation, False))
    check(all_operations, source, 33)


@pytest.mark.parametrize("kind", ["grey", "CMYK", "progressive", "4:2:2", "RGB"])
def test_operations_apply_to_every_kind_of_file(all_operations, kind):
    photo = pictures.photo(640, 400, 5).resize((160, 100)).resize((640, 400))
    check(all_operations, {
        "grey": lambda: pictures.jpeg(photo.convert("L"), 97),
        "CMYK": lambda: pictures.jpeg(photo.convert("CMYK"), 97),
        "progressive": lambda: pictures.jpeg(photo, 97, progressive=True),
        "4:2:2": lambda: pictures.jpeg(photo, 97, subsampling=1),
        "RGB": lambda: jpegfile.encode([np.asarray(photo)[:, :, c] for c in range(3)], transform=0),
    }[kind](), 28 if kind == "CMYK" else 32)


def test_unsharp_mask_is_close_to_that_of_pillow(all_operations):
    """Pillow approximates the Gaussian, and also sharpens colours. The results are close, but not
    equal."""
    photo = pictures.photo(800, 600, 6)
    image = all_operations.image(pictures.jpeg(photo, 97, subsampling=0))
    ours = pictures.decode(all_operations.fetch(image, "sharp"))
    small = fitted(photo, 400)
    theirs = small.filter(ImageFilter.UnsharpMask(radius=1, percent=150, threshold=0))
    assert pictures.luma_rms(ours, theirs) < 4 < 2 * pictures.luma_rms(small, theirs)


def test_colours_stay_aligned_with_brightness(all_operations):
    """A coloured disc is cut out of the middle at odd offsets. Its colour must stay where its
    brightness is."""
    image = Image.new("RGB", (601, 403), (60, 60, 60))
    yy, xx = np.mgrid[0:403, 0:601]
    pixels = np.asarray(image).copy()
    pixels[(xx - 300) ** 2 + (yy - 201) ** 2 < 90 ** 2] = (250, 120, 40)
    stored = all_operations.image(pictures.jpeg(Image.fromarray(pixels), 97, subsampling=0))
    for name in ("cover", "cover_thumb", "cover_up", "fine", "right"):
        picture = pictures.decode(all_operations.fetch(stored, name)).convert("YCbCr")
        y, cb, cr = (np.asarray(plane, dtype=float) for plane in picture.split())
        centres = []
        for plane in (y, cb, cr):
            weight = np.abs(plane - np.median(plane[:3]))
            weight[weight < weight.max() / 2] = 0
            centres.append([(weight * axis).sum() / weight.sum()
                            for axis in np.mgrid[0:weight.shape[0], 0:weight.shape[1]]])
        assert np.abs(np.array(centres) - centres[0]).max() < 0.25, f"{name}: {centres}"


@pytest.mark.parametrize("width, height",
                         [(1, 1), (1, 7), (2, 3), (5, 1), (16, 13), (20000, 3), (3, 20000)])
def test_odd_sizes_are_accepted(all_operations, width, height):
    image = all_operations.image(pictures.photo_jpeg(width, height, 3))
    original = Image.new("L", (width, height))
    left_out = {"cover_up"} if max(width, height) == 20000 else set()
    for name in VARIANTS.keys() - left_out:
        size = pictures.size(all_operations.fetch(image, name))
        assert size == VARIANTS[name][2](original).size, name


def test_profile_is_dropped_if_colours_change(all_operations):
    def profile(space):
        return (300).to_bytes(4, "big") + bytes(12) + space + bytes(16) + b"acsp" + bytes(260)

    photo = pictures.photo(200, 150, 2)
    for source, space, names in ((photo, b"RGB ",
                                  {"cover", "fine", "progressive", "right", "sharp"}),
                                 (photo.convert("L"), b"GRAY", set(VARIANTS))):
        image = all_operations.image(pictures.jpeg(source, icc_profile=profile(space)))
        kept = {name for name in VARIANTS
                if jpegfile.icc_profile(all_operations.fetch(image, name)) == profile(space)}
        assert kept >= names
        assert space == b"GRAY" or not kept & {"grey", "all"}


def test_encoding_options_make_smaller_files(all_operations):
    image = all_operations.image(pictures.photo_jpeg(900, 700, 2))
    small = {name: image["variants"][name]["bytes"]
             for name in ("progressive", "optimized", "fine", "grey")}
    assert small["progressive"] < small["optimized"] < small["fine"]


def test_variant_is_the_same_alone_or_with_others(start, all_operations, tmp_path):
    """Variants share steps and are made from each other. Each equals the result of a lone variant,
    except for rounding."""
    source = pictures.photo_jpeg(901, 655, 4)
    together = all_operations.image(source)
    for name in ("cover_thumb", "grey", "left", "all"):
        daemon = start(config=configuration(tmp_path / f"{name}.ini", [name]))
        alone = daemon.image(source)
        a, b = (pictures.decode(d.fetch(i, name))
                for d, i in ((all_operations, together), (daemon, alone)))
        assert pictures.psnr(a, b) > 34, name


def test_parked_operations_give_the_same_files(start, all_operations, tmp_path):
    daemon = start("scheduler.service=cutoff", "experiment.cutoff=1us",
                   config=configuration(tmp_path / "site.ini"))
    photo = pictures.photo(1200, 900, 5)
    sources = [pictures.jpeg(photo, 92), pictures.jpeg(photo.convert("CMYK")),
               pictures.jpeg(photo, progressive=True)]

    def files(d):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            return [{n: d.fetch(i, n) for n in VARIANTS} for i in pool.map(d.image, sources)]

    assert files(daemon) == files(all_operations)
    pieces = {s["name"]: s["events"] for s in daemon.get("/stats").json()["stages"]}
    # This includes passes over coefficients.
    assert pieces["jpeg_encode"] > 3 * len(sources) * len(VARIANTS)


def test_memory_of_coefficients_is_reserved(start):
    """A variant that enlarges an upload needs memory. The upload is refused without it, and the
    memory is released afterwards."""
    daemon = start("limits.memory_budget=64M", "limits.body_bytes=8M",
                   "variant.huge.operations=scale 4000x4000 exact", "variant.huge.enlarge=yes",
                   "variant.huge.chroma=444", "variant.huge.progressive=yes")
    answer = daemon.upload(pictures.photo_jpeg(64, 48))
    assert (answer.status, answer.slug) == (413, "memory"), answer
    assert answer.json()["actual"] > 4000 * 4000 * 6
    roomy = start("limits.memory_budget=1G", "variant.huge.operations=scale 3000x3000 exact",
                  "variant.huge.enlarge=yes", "variant.huge.chroma=444",
                  "variant.huge.progressive=yes")
    assert roomy.image(pictures.photo_jpeg(64, 48))["variants"]["huge"]["width"] == 3000
    assert eventually(lambda: roomy.get("/stats").json()["memory"]["reserved_image_bytes"] == 0)


@pytest.mark.parametrize("setting, says", [
    ("enlarge=maybe", "expected yes or no"), ("progressive=1", "expected yes or no"),
    ("optimize=", "expected yes or no"), ("chroma=422", "expected 420 or 444"),
    ("operations=scale 9x9 fill",
     "scale 9x9 is followed by 'fill'; expected 'inside', 'cover' or 'exact'"),
    ("operations=sharpen 11", "'11' is not an amount for sharpen; expected a number, 0.05..10"),
    ("operations=rotate 45", "'45' is not an angle for rotate; expected 90, 180 or 270")])
def test_bad_operation_is_reported(setting, says):
    done = run("-t", "-c", CONFIG, *overrides(f"variant.medium.{setting}"))
    assert done.returncode == 78 and says in done.stderr, done.stderr


def test_bad_operation_is_reported_with_its_line(tmp_path):
    ini = tmp_path / "site.ini"
    ini.write_text(
        "[limits]\nwidth = 2000\n[variant.big]\nenlarge = yes\noperations = scale 3000x20 exact\n")
    done = run("-t", "-c", ini)
    assert done.returncode == 78
    assert f"{ini}:5: variant.big: operations: scale 3000x20 with enlarge = yes exceeds " \
           "limits.width = 2000; " \
           "expected no more than that" in done.stderr, done.stderr
