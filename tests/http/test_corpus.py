"""Foreign files: DARKROOM_CORPUS=/path/of/pictures pytest -s tests/http/test_corpus.py

The planes of each PNG, WebP and AVIF below the folder are those of the same library without the
jail, and those of Pillow within one level, or two with 16 bits or an AVIF's alpha. An AVIF is
compared with avifdec. Each refusal has its reason."""

import collections
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import warnings

import numpy as np
import pytest
from PIL import Image

from avif_planes import as_rgb, y4m
from darkroom import ROOT

FOLDER = os.environ.get("DARKROOM_CORPUS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs DARKROOM_CORPUS")
PLANES = "build/plain/tests/tools/planes"
REASONS = re.compile(r"(PNG|WebP|AVIF): (the file is damaged|the header is damaged|"
                     r"[^:]+ are not supported|too many pixels)")


def is_ours(path):
    head = path.read_bytes()[:12] if path.is_file() else b""
    return (head[:8] == b"\x89PNG\r\n\x1a\n" or (head[:4] == b"RIFF" and head[8:] == b"WEBP") or
            head[4:11] == b"ftypavi")


def decoded(files):
    """Returns [(file, words, planes)]."""
    subprocess.run(["make", "-s", PLANES], cwd=ROOT, check=True)
    with subprocess.Popen([ROOT / PLANES, ROOT / "build/darkroom-decode"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for path in files:
            program.stdin.write(f"{path}\n".encode())
            program.stdin.flush()
            words = program.stdout.readline().decode().split(maxsplit=1)
            planes = None
            if words[0] == "equal":
                width, height, count = map(int, words[1].split())
                bits = program.stdout.read(width * height * count)
                planes = np.frombuffer(bits, np.uint8).reshape(count, height, width)
            yield path, words, planes
        program.stdin.close()
        assert program.wait() == 0


def by_pillow(path):
    """Returns planes of samples on white, or None if Pillow refuses the file."""
    if path.read_bytes()[4:11] == b"ftypavi":
        return by_avifdec(path)
    try:
        with warnings.catch_warnings(), Image.open(path) as image:
            warnings.simplefilter("ignore")
            image.load()
            if image.mode.startswith("I"):
                return (np.asarray(image).astype(np.float64) / 257)[None]
            pixels = np.asarray(image.convert("RGBA")).astype(np.float64)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error,
            Image.DecompressionBombError):
        return None
    alpha = pixels[..., 3:] / 255
    return (pixels[..., :3] * alpha + 255 * (1 - alpha)).transpose(2, 0, 1)


# Rows or columns of cells, as they are shown. Chroma is not smoothed between cells. The second file
# refers to its cells in reverse, but avifdec 0.11 shows them in the order of their numbers.
GRIDS = {"sofa_grid1x5_420.avif": (0, range(5)),
         "sofa_grid1x5_420_reversed_dimg_order.avif": (0, range(5)[::-1]),
         "fixtures_pitm.avif": (1, range(4))}


def by_avifdec(path):
    """The same for an AVIF, of planes in YCbCr. The picture is cropped, and not turned."""
    command = ["avifdec", "--no-strict", "-d", "8"]
    told = subprocess.run([*command, "--info", path], capture_output=True, text=True)
    if told.returncode:
        return None
    said = dict(re.findall(r"\* (.+?) *: (.+)", told.stdout))
    planes, depth = y4m(path)
    axis, order = next((v for k, v in GRIDS.items() if path.name.endswith(k)), (0, range(1)))
    cells = [np.array_split(plane, len(order), axis) for plane in planes]
    pixels = np.concatenate([as_rgb([plane[i] for plane in cells], depth,
                                    int(said["Matrix Coeffs."]), said["Range"] == "Full")
                             for i in order], axis + 1)
    if said["Alpha"] != "Absent":
        with tempfile.TemporaryDirectory() as folder:
            png = pathlib.Path(folder) / "x.png"
            subprocess.run([*command, path, png], check=True, capture_output=True)
            alpha = np.asarray(Image.open(png).getchannel("A")) / 255
        pixels = pixels * (1 if said["Alpha"] == "Premultiplied" else alpha) + 255 * (1 - alpha)
    for axis, size, offset in ((2, "W", "hOff"), (1, "H", "vOff")):
        crop = re.search(rf"Aperture\):.* {size}: (\d+)/1,.* {offset}: (-?\d+)/1\b", told.stdout)
        if crop:  # of half a sample, the whole one is shown
            side, center = map(int, crop.groups())
            first = (pixels.shape[axis] - side) // 2 + center
            pixels = np.take(pixels, range(first, first + side), axis)
    return pixels


def is_beyond_pillow(path):
    """Pillow compares the transparent colour of a PNG with 8 bits, whatever its depth. It has its
    own colour for samples that the palette does not have. And it follows a tRNS before the palette,
    which is out of place (PNG, 5.6), so that libpng leaves it out."""
    data = path.read_bytes()
    if data[:4] != b"\x89PNG":
        return False
    at = data.find(b"PLTE")
    with Image.open(path) as image:
        return (data[24] != 8 and b"tRNS" in data and data[25] in (0, 2)) or (
            data[25] == 3 and
            image.getextrema()[1] * 3 >= struct.unpack_from(">I", data, at - 4)[0]) or (
            0 <= data.find(b"tRNS") < at)


def tolerance(path):
    """Pillow cuts samples of 16 bits off. With alpha that is one level more. The alpha of an AVIF is
    rounded by itself."""
    data = path.read_bytes()
    is_deep = data[:4] == b"\x89PNG" and data[24] == 16 and data[25] & 4
    return 2 if is_deep or (data[4:8] == b"ftyp" and b"auxC" in data) else 1


def test_planes_and_refusals(capsys):
    files = sorted(p for p in pathlib.Path(FOLDER).rglob("*") if is_ours(p))
    counts, odd, lost = collections.Counter(), [], []
    for path, words, planes in decoded(files):
        if words[0] == "refused":
            assert REASONS.fullmatch(words[1].strip()), (path, words)
            counts["refused, " + words[1].strip()] += 1
            if "not supported" not in words[1] and by_pillow(path) is not None:
                lost.append((path.name, words[1].strip()))
            continue
        assert words[0] == "equal", path
        counts["equal to the library"] += 1
        other = by_pillow(path)
        if other is None or is_beyond_pillow(path):
            counts["without Pillow"] += 1
        elif other.shape[1:] != planes.shape[1:] or np.abs(other - planes).max() > tolerance(path):
            odd.append(path.name)
        else:
            counts["like Pillow"] += 1
    with capsys.disabled():
        print(f"\n{len(files)} files: {dict(counts)}\nodd: {odd}\nonly Pillow: {lost}")
    assert counts["equal to the library"] and not odd
