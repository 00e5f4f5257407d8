"""Foreign files: DARKROOM_CORPUS=/path/of/pictures pytest -s tests/http/test_corpus.py

The planes of each PNG and WebP below the folder are those of the same library without the jail, and
those of Pillow within one level. Each refusal has its reason."""

import collections
import os
import pathlib
import re
import struct
import subprocess
import warnings

import numpy as np
import pytest
from PIL import Image

from darkroom import ROOT

FOLDER = os.environ.get("DARKROOM_CORPUS")
pytestmark = pytest.mark.skipif(not FOLDER, reason="needs DARKROOM_CORPUS")
PLANES = "build/plain/tests/tools/planes"
REASONS = re.compile(r"(PNG|WebP): (the file is damaged|the header is damaged|"
                     r"animations are not supported|too many pixels)")


def is_ours(path):
    head = path.read_bytes()[:12] if path.is_file() else b""
    return head[:8] == b"\x89PNG\r\n\x1a\n" or (head[:4] == b"RIFF" and head[8:] == b"WEBP")


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


def has_key_of_16_bits(path):
    """Pillow compares the transparent colour of such a PNG with 8 bits."""
    data = path.read_bytes()
    return data[:4] == b"\x89PNG" and data[24] == 16 and b"tRNS" in data


def test_planes_and_refusals(capsys):
    files = sorted(p for p in pathlib.Path(FOLDER).rglob("*") if is_ours(p))
    counts, odd, lost = collections.Counter(), [], []
    for path, words, planes in decoded(files):
        if words[0] == "refused":
            assert REASONS.fullmatch(words[1].strip()), (path, words)
            counts["refused, " + words[1].strip()] += 1
            if by_pillow(path) is not None and "animations" not in words[1]:
                lost.append((path.name, words[1].strip()))
            continue
        assert words[0] == "equal", path
        counts["equal to the library"] += 1
        other = by_pillow(path)
        if other is None or has_key_of_16_bits(path):
            counts["without Pillow"] += 1
        elif other.shape[1:] != planes.shape[1:] or np.abs(other - planes).max() > 1:
            odd.append(path.name)
        else:
            counts["like Pillow"] += 1
    with capsys.disabled():
        print(f"\n{len(files)} files: {dict(counts)}\nodd: {odd}\nonly Pillow: {lost}")
    assert counts["equal to the library"] and not odd
