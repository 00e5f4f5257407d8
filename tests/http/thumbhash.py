"""ThumbHash by its definition: an encoder in floating point, without shortcuts, and a decoder. The
format is that of Evan Wallace, https://evanw.github.io/thumbhash/; only pictures without
transparency."""

import base64

import numpy as np
from PIL import Image


def frequencies(nx, ny):
    """The pairs of frequencies in the order of the format; the first is the mean."""
    return [(fx, fy) for fy in range(ny) for fx in range(nx) if fx * ny < nx * (ny - fy)]


def cosines(count, side):
    return np.cos(np.pi / side * np.outer(np.arange(count), np.arange(side) + .5))


def rounded(value):
    return int(np.floor(value + .5))


def channel(values, nx, ny):
    """Returns the mean, the largest coefficient and the others in 0..1."""
    height, width = values.shape
    table = cosines(ny, height) @ values @ cosines(nx, width).T / values.size
    mean, *others = [table[fy, fx] for fx, fy in frequencies(nx, ny)]
    scale = max(map(abs, others))
    return mean, scale, [.5 + .5 * v / scale if scale else .5 for v in others]


def sides(width, height):
    longer = max(width, height)
    return [max(1, rounded(7 * side / longer)) for side in (width, height)]


def fields(image):
    """Returns the numbers of a ThumbHash before they are packed."""
    r, g, b = np.moveaxis(np.asarray(image.convert("RGB"), dtype=float) / 255, 2, 0)
    lx, ly = sides(*image.size)
    luma = channel((r + g + b) / 3, max(3, lx), max(3, ly))
    p, q = channel((r + g) / 2 - b, 3, 3), channel(r - g, 3, 3)
    is_landscape = image.width > image.height
    head = [rounded(63 * luma[0]), rounded(31.5 + 31.5 * p[0]), rounded(31.5 + 31.5 * q[0]),
            rounded(31 * luma[1]), 0, ly if is_landscape else lx, rounded(63 * p[1]),
            rounded(63 * q[1]), int(is_landscape)]
    return head, [rounded(15 * v) for v in (*luma[2], *p[2], *q[2])]


def unpack(text):
    """Returns the same numbers of a ThumbHash in base64."""
    data = base64.b64decode(text, validate=True)
    first, second = int.from_bytes(data[:3], "little"), int.from_bytes(data[3:5], "little")
    head = [first & 63, first >> 6 & 63, first >> 12 & 63, first >> 18 & 31, first >> 23,
            second & 7, second >> 3 & 63, second >> 9 & 63, second >> 15]
    return head, [n for byte in data[5:] for n in (byte & 15, byte >> 4)]


def decode(text, longer=64):
    """Returns the picture of a ThumbHash."""
    head, nibbles = unpack(text)
    lx, ly = (7, head[5]) if head[8] else (head[5], 7)
    width, height = (longer, max(1, rounded(longer * ly / lx))) if lx >= ly else (
        max(1, rounded(longer * lx / ly)), longer)
    planes, at = [], 0
    for mean, scale, nx, ny in ((head[0] / 63, head[3] / 31, max(3, lx), max(3, ly)),
                                (head[1] / 31.5 - 1, head[6] / 63, 3, 3),
                                (head[2] / 31.5 - 1, head[7] / 63, 3, 3)):
        table = np.zeros((ny, nx))
        for fx, fy in frequencies(nx, ny)[1:]:
            table[fy, fx] = (nibbles[at] / 7.5 - 1) * scale * (2 if fx else 1) * (2 if fy else 1)
            at += 1
        planes.append(mean + cosines(ny, height).T @ table @ cosines(nx, width))
    luma, p, q = planes
    b = luma - 2 / 3 * p
    r = (3 * luma - b + q) / 2
    pixels = np.clip(np.stack([r, r - q, b], axis=2) * 255, 0, 255)
    return Image.fromarray(np.rint(pixels).astype(np.uint8))
