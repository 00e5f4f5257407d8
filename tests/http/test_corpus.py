"""Foreign files: DARKROOM_CORPUS=/path/of/pictures pytest -s tests/http/test_corpus.py

The planes of each PNG, WebP and AVIF below the folder are those of the same library without the
jail, and those of Pillow within one level, or two with 16 bits and alpha. An AVIF is compared with
avifdec. Each refusal has its reason."""

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


def by_avifdec(path):
    """The same. It turns and crops no picture: the planes are not turned either."""
    with tempfile.TemporaryDirectory() as folder:
        png = pathlib.Path(folder) / "x.png"
        done = subprocess.run(["avifdec", "-d", "8", path, png], capture_output=True)
        return by_pillow(png) if done.returncode == 0 else None


def is_beyond_pillow(path):
    """Pillow compares the transparent colour of a PNG with 8 bits, whatever its depth. And it has
    its own colour for samples that the palette does not have."""
    data = path.read_bytes()
    if data[:4] != b"\x89PNG":
        return False
    at = data.find(b"PLTE")
    with Image.open(path) as image:
        return (data[24] != 8 and b"tRNS" in data and data[25] in (0, 2)) or (
            data[25] == 3 and
            image.getextrema()[1] * 3 >= struct.unpack_from(">I", data, at - 4)[0])


def tolerance(path):
    """Pillow cuts samples of 16 bits off. With alpha that is one level more."""
    head = path.read_bytes()[:26]
    return 2 if head[:4] == b"\x89PNG" and head[24] == 16 and head[25] & 4 else 1


def test_planes_and_refusals(capsys):
    files = sorted(p for p in pathlib.Path(FOLDER).rglob("*") if is_ours(p))
    counts, odd, lost = collections.Counter(), [], []
    for path, words, planes in decoded(files):
        if words[0] == "refused":
            assert REASONS.fullmatch(words[1].strip()), (path, words)
            counts["refused, " + words[1].strip()] += 1
            if by_pillow(path) is not None and "not supported" not in words[1]:
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
