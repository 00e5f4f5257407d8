#!/usr/bin/python3
"""Makes data/sample/*.jpg: small photograph-like pictures, each a different kind of JPEG.

The pictures are computed, so their origin and licence are plain. Like photographs they have a 1/f spectrum, hard edges,
smooth gradients and a little sensor noise; flat colour or white noise would decode and compress quite differently.
The same seeds give the same pixels; with Debian 12's python3-pil and libjpeg-turbo also the same bytes.

usage: make_sample.py [DIRECTORY]        (needs python3-numpy and python3-pil)
"""

import pathlib
import sys

import numpy as np
from PIL import Image

ORIENTATION = 0x0112  # EXIF tag


def noise(rng, height, width, slope, stretch=1.0):
    """Random field with a 1/f^slope amplitude spectrum, mean 0, variance 1; stretch > 1 draws it out sideways."""
    fy = np.fft.fftfreq(height)[:, None] * max(height, width)
    fx = np.fft.rfftfreq(width)[None, :] * max(height, width) * stretch
    radius = np.hypot(fy, fx)
    radius[0, 0] = 1.0
    spectrum = np.fft.rfft2(rng.standard_normal((height, width))) / radius**slope
    spectrum[0, 0] = 0.0
    field = np.fft.irfft2(spectrum, s=(height, width))
    return field / field.std()


def ridge(rng, width, slope):
    """One line of a mountain chain, -1..1."""
    line = noise(rng, 4, width * 2, slope)[0, :width]
    line = line - np.linspace(line[0], line[-1], width) * 0.5
    return line / np.abs(line).max()


def step(x):
    """Smooth step from 0 to 1."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def mix(a, b, t):
    """Blends colours or pictures a and b; t has no colour axis."""
    return a + (b - a) * t[..., None]


def rgb(*values):
    return np.array(values, dtype=float)


def gradient(stops, t):
    """Colour at t in 0..1 along evenly spaced stops."""
    stops = np.array(stops, dtype=float)
    x = np.linspace(0.0, 1.0, len(stops))
    return np.stack([np.interp(t, x, stops[:, c]) for c in range(3)], axis=-1)


def grid(height, width):
    y, x = np.mgrid[0:height, 0:width].astype(float)
    return y / height, x / width


def clouds(rng, picture, y, colour, horizon, amount):
    """Lays drawn-out clouds over the sky, thinner and flatter towards the horizon."""
    height, width = y.shape
    field = noise(rng, height, width, 1.75, 2.2)
    cover = step((field - 0.15) / 1.6) * step((horizon - y) / horizon * 1.6) * amount
    return mix(picture, colour, cover)


def mountains(rng, picture, y, base, top, count, far, near, light):
    """Chains of mountains one behind the other, the far ones pale; lit from the right."""
    height, width = y.shape
    for i in range(count):
        t = i / max(count - 1, 1)
        line = base - (top * (1.0 - 0.75 * t)) * (0.6 + 0.4 * ridge(rng, width, 1.35)) + 0.10 * t
        mask = np.clip((y - line[None, :]) * height / 1.5, 0.0, 1.0)
        relief = noise(rng, height, width, 1.3)
        slope = np.gradient(relief, axis=1)
        slope = slope / slope.std()
        rock = mix(far, near, np.full(y.shape, t))
        rock = rock * (1.0 + (0.05 + 0.13 * t) * slope + 0.05 * relief)[..., None]
        snow = step((0.10 - (y - line[None, :])) / 0.08 + 0.5 * relief) * (1.0 - t) * (0.75 + 0.2 * np.clip(slope, -1, 1))
        rock = mix(rock, light, np.clip(snow, 0.0, 1.0) * 0.75)
        haze = step((y - line[None, :]) / 0.25) * (1.0 - t) * 0.45
        rock = mix(rock, far * 1.15, haze)
        picture = mix(picture, rock, mask)
    return picture


def reflect(rng, picture, y, shore, tint, strength):
    """Water below the shore mirrors what is above it, broken by waves that grow towards the viewer."""
    height, width = y.shape
    first = int(shore * height)
    rows = np.arange(first, height)
    depth = (rows - first) / max(height - first, 1)
    waves = noise(rng, height, width, 1.1, 8.0)[rows]
    source = first - 1 - (rows - first)[:, None] * 0.9 + waves * (0.5 + 9.0 * depth[:, None])
    source = np.clip(source, 0, first - 1).astype(int)
    columns = np.arange(width)[None, :] + (waves * 2.0 * depth[:, None]).astype(int)
    mirrored = picture[source, np.clip(columns, 0, width - 1)]
    keep = strength * (1.0 - 0.55 * depth)[:, None] * np.ones(width) + 0.05 * waves * depth[:, None]
    out = picture.copy()
    out[first:] = mix(np.broadcast_to(tint, mirrored.shape), mirrored, np.clip(keep, 0.0, 1.0))
    out[first : first + 2] *= 0.6
    return out


def firs(rng, picture, y, x, ground, count, size, colour):
    """A row of dark firs: hard, fine edges."""
    height, width = y.shape
    aspect = width / height
    shade = noise(rng, height, width, 0.6)
    for position in np.sort(rng.uniform(-0.02, 1.02, count)):
        tall = size * rng.uniform(0.5, 1.0)
        foot = ground + rng.uniform(0.0, 0.03)
        t = (y - (foot - tall)) / tall
        jag = 0.65 + 0.35 * np.abs(((t * 11.0) % 1.0) * 1.4)
        inside = (np.abs(x - position) * aspect < 0.21 * tall * t * jag + 0.002) & (t > 0.0) & (t < 1.0)
        picture = np.where(inside[..., None], colour + (8.0 * shade)[..., None], picture)
    return picture


def lake():
    rng = np.random.RandomState(1)
    height, width = 640, 960
    y, x = grid(height, width)
    picture = gradient([(64, 104, 168), (128, 166, 208), (222, 216, 206), (246, 214, 172)], np.clip(y / 0.58, 0, 1))
    picture = clouds(rng, picture, y, rgb(252, 244, 236), 0.55, 0.8)
    picture = mountains(rng, picture, y, 0.52, 0.30, 4, rgb(150, 166, 190), rgb(58, 76, 66), rgb(250, 246, 240))
    picture = firs(rng, picture, y, x, 0.60, 90, 0.11, rgb(26, 44, 36))
    return reflect(rng, picture, y, 0.62, rgb(44, 78, 100), 0.92)


def sunset():
    rng = np.random.RandomState(12)
    height, width = 960, 720
    y, x = grid(height, width)
    picture = gradient([(38, 42, 92), (104, 68, 126), (214, 98, 92), (252, 170, 86), (255, 214, 132)], np.clip(y / 0.62, 0, 1))
    away = np.hypot((x - 0.62) * width, (y - 0.50) * height)
    picture = clouds(rng, picture, y, rgb(248, 134, 106), 0.62, 0.75)
    picture = mix(picture, rgb(255, 244, 205), np.exp(-((away / 120.0) ** 2)) * 0.6)
    picture = mix(picture, rgb(255, 250, 228), np.clip(36.0 - away, 0, 1))
    picture = mountains(rng, picture, y, 0.60, 0.09, 3, rgb(150, 84, 98), rgb(46, 32, 52), rgb(232, 140, 110))
    picture = reflect(rng, picture, y, 0.66, rgb(70, 44, 78), 0.85)
    return firs(rng, picture, y, x, 1.0, 16, 0.34, rgb(14, 12, 22))


def fog():
    rng = np.random.RandomState(23)
    height, width = 560, 840
    y, x = grid(height, width)
    picture = np.ones((height, width, 3)) * (236.0 - 22.0 * y)[..., None]
    for i in range(5):
        t = i / 4.0
        picture = firs(rng, picture, y, x, 0.42 + 0.15 * i, 60 - 9 * i, 0.16 + 0.10 * t, np.full(3, 205.0 - 172.0 * t))
        drift = step((y - 0.25 - 0.15 * i) / 0.28) + 0.18 * noise(rng, height, width, 1.7, 3.0)
        picture = mix(picture, np.full(3, 230.0 - 30.0 * t), np.clip(drift * (0.85 - 0.5 * t), 0.0, 1.0))
    return picture


def dunes():
    rng = np.random.RandomState(34)
    height, width = 675, 900
    y, x = grid(height, width)
    picture = gradient([(58, 118, 190), (118, 168, 216), (206, 220, 226)], np.clip(y / 0.42, 0, 1))
    for i in range(5):
        t = i / 4.0
        line = 0.36 + 0.13 * i + (0.035 + 0.05 * t) * noise(rng, 4, width * 2, 2.1)[0, :width]
        depth = y - line[None, :]
        mask = np.clip(depth * height / 1.2, 0.0, 1.0)
        bend = noise(rng, height, width, 2.2)
        ripple = np.sin((depth * (150 - 70 * t) + bend * 2.5 + x * 9.0) * 2.2) * 0.5 * t
        crest = step((0.10 - depth - 0.05 * bend) / 0.11)
        sand = mix(rgb(176, 104, 58), rgb(246, 198, 132), np.clip(crest * 0.75 + 0.12 * bend + 0.10 * ripple, 0.0, 1.0))
        sand = mix(sand, rgb(222, 206, 190), np.full(y.shape, 0.5 * (1.0 - t)))
        sand = sand * (1.0 + 0.03 * noise(rng, height, width, 0.4))[..., None]
        picture = mix(picture, sand, mask)
    return picture


def marbles():
    rng = np.random.RandomState(45)
    height, width = 600, 800
    y, x = grid(height, width)
    px, py = x * width, y * height
    grain = noise(rng, height, width, 1.1, 0.04)
    picture = rgb(146, 104, 68) * (0.78 + 0.35 * y + 0.10 * grain)[..., None]
    picture = mix(picture, rgb(64, 70, 84) * (1.0 + 0.06 * noise(rng, height, width, 2.0))[..., None], step((0.36 - y) / 0.05))
    balls = [(170, 300, 92), (330, 250, 70), (480, 330, 104), (660, 285, 84), (250, 440, 80), (600, 455, 96), (410, 500, 62)]
    colours = [(206, 40, 44), (240, 176, 28), (30, 104, 186), (44, 150, 82), (236, 236, 228), (150, 58, 160), (232, 112, 36)]
    for (cx, cy, r), colour in zip(balls, colours):
        shadow = np.hypot((px - cx + 0.45 * r) / 1.35, (py - cy - 0.82 * r) / 0.40) / r
        picture = picture * (1.0 - 0.6 * step(1.15 - shadow))[..., None]
        dx, dy = (px - cx) / r, (py - cy) / r
        inside = np.clip((1.0 - np.hypot(dx, dy)) * r, 0.0, 1.0)
        dz = np.sqrt(np.clip(1.0 - dx * dx - dy * dy, 0.0, 1.0))
        lit = np.clip(0.55 * dx - 0.62 * dy + 0.56 * dz, 0.0, 1.0)
        swirl = np.sin(5.0 * (dx * 0.8 + dy * 0.6 + 0.3 * noise(rng, height, width, 1.9)) + cx)
        body = mix(np.array(colour, dtype=float) * 0.72, np.array(colour, dtype=float) * 1.15, step(swirl * 2.0 + 0.5))
        body = body * (0.22 + 0.9 * lit)[..., None]
        body = mix(body, rgb(255, 255, 252), np.clip(lit - 0.90, 0.0, 1.0) ** 2 * 90.0 * (lit > 0.9))
        picture = mix(picture, body, inside)
    return picture


def harbour():
    rng = np.random.RandomState(56)
    height, width = 400, 1200
    y, x = grid(height, width)
    picture = gradient([(10, 16, 40), (28, 42, 84), (88, 78, 110), (196, 132, 104)], np.clip(y / 0.60, 0, 1) ** 1.4)
    picture = clouds(rng, picture, y, rgb(70, 70, 104), 0.58, 0.7)
    left = -0.01
    while left < 1.0:
        wide, tall = rng.uniform(0.012, 0.040), rng.uniform(0.10, 0.42) * (0.55 + 0.45 * np.sin(left * 7.0 + 1.0) ** 2)
        inside = (x >= left) & (x < left + wide) & (y > 0.62 - tall) & (y < 0.64)
        wall = rgb(20, 22, 34) + rng.uniform(0, 16)
        picture = np.where(inside[..., None], wall, picture)
        cells_x, cells_y = ((x - left) * width / 7.0).astype(int), (y * height / 9.0).astype(int)
        lamps = rng.uniform(0, 1, (int(height / 9) + 2, 64)) < 0.33
        window = inside & lamps[np.clip(cells_y, 0, lamps.shape[0] - 1), np.clip(cells_x, 0, 63)]
        window &= (((x - left) * width) % 7.0 > 2.0) & ((y * height) % 9.0 > 4.0) & ((x - left) * width > 2.0)
        picture = np.where(window[..., None], rgb(255, 214, 140) * rng.uniform(0.75, 1.0), picture)
        left += wide * rng.uniform(0.75, 1.1)
    return reflect(rng, picture, y, 0.64, rgb(16, 24, 46), 0.85)


def finish(picture, seed, grain=1.2):
    """A little light fall-off and sensor noise, then eight bits."""
    height, width = picture.shape[:2]
    y, x = grid(height, width)
    picture = picture * (1.0 - 0.28 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))[..., None]
    picture = picture + np.random.RandomState(seed).normal(0.0, grain, picture.shape)
    return Image.fromarray(np.clip(picture + 0.5, 0, 255).astype(np.uint8), "RGB")


def main():
    to = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "sample")
    to.mkdir(parents=True, exist_ok=True)

    finish(lake(), 101).save(to / "lake.jpg", quality=76, subsampling="4:2:0")
    # As a phone held upright writes it: the rows are columns, and EXIF says how to turn them.
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    finish(sunset(), 102).transpose(Image.Transpose.ROTATE_90).save(to / "sunset-rotated.jpg", quality=77, exif=exif)
    finish(fog(), 103).convert("L").save(to / "fog-grey.jpg", quality=78)
    finish(dunes(), 104).save(to / "dunes-progressive.jpg", quality=78, progressive=True)
    finish(marbles(), 105).save(to / "marbles-444.jpg", quality=84, subsampling="4:4:4")
    finish(harbour(), 106).save(to / "harbour-422.jpg", quality=74, subsampling="4:2:2")


if __name__ == "__main__":
    main()
