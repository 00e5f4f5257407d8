"""The planes of an AVIF by another program, avifdec, and what their matrix makes of them. Its own RGB
of 8 bits is up to 13 levels off, and it takes grey of the limited range for full (0.11)."""

import pathlib
import re
import subprocess
import tempfile

import numpy as np

# Weights of red and blue (H.273, table 4).
MATRICES = {1: (0.2126, 0.0722), 2: (0.299, 0.114), 6: (0.299, 0.114), 9: (0.2627, 0.0593)}


def y4m(path):
    """Returns the planes of an AVIF as another program decodes them."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "x.y4m"
        subprocess.run(["avifdec", "--no-strict", path, out], check=True, capture_output=True)
        head, rest = out.read_bytes().split(b"\n", 1)
    words = {word[:1]: word[1:].decode() for word in head.split()[1:]}
    width, height = int(words[b"W"]), int(words[b"H"])
    kind = words[b"C"]
    depth = int((re.search(r"1[02]$", kind) or "8")[0])
    x, y = (2 if kind[:3] in ("420", "422") else 1), (2 if kind[:3] == "420" else 1)
    sides = [(height, width)] + [(-(-height // y), -(-width // x))] * (0 if "mono" in kind else 2)
    samples = np.frombuffer(rest.split(b"FRAME\n", 1)[1], np.uint16 if depth > 8 else np.uint8)
    planes = []
    for h, w in sides:
        planes.append(samples[:h * w].reshape(h, w).astype(np.float64))
        samples = samples[h * w:]
    return planes, depth


def doubled(plane, axis, count):
    """Samples between two others have 3/4 of the nearer one."""
    plane = np.moveaxis(plane, axis, 0)
    before = np.concatenate([plane[:1], plane[:-1]])
    after = np.concatenate([plane[1:], plane[-1:]])
    both = np.stack([3 * plane + before, 3 * plane + after], 1) / 4
    return np.moveaxis(both.reshape(-1, *plane.shape[1:])[:count], 0, axis)


def as_rgb(planes, depth, matrix, is_full):
    most, step = (1 << depth) - 1, 1 << (depth - 8)
    zero, luma, chroma = (0, most, most) if is_full else (16 * step, 219 * step, 224 * step)
    y = (planes[0] - zero) / luma
    if len(planes) == 1:
        return np.clip(y[None] * 255, 0, 255)
    for axis in (0, 1):
        planes[1:] = [p if p.shape[axis] == y.shape[axis] else doubled(p, axis, y.shape[axis])
                      for p in planes[1:]]
    if matrix == 0:
        return np.clip(np.stack([(planes[i] - zero) / luma for i in (2, 0, 1)]) * 255, 0, 255)
    u, v = ((p - 128 * step) / chroma for p in planes[1:])
    if matrix == 8:
        return np.clip(np.stack([y - u + v, y + u, y - u - v]) * 255, 0, 255)
    red, blue = MATRICES[matrix]
    r, b = y + 2 * (1 - red) * v, y + 2 * (1 - blue) * u
    return np.clip(np.stack([r, (y - red * r - blue * b) / (1 - red - blue), b]) * 255, 0, 255)
