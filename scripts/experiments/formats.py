"""Bytes of the AVIFs and WebPs that the daemon makes, at the SSIM of its JPEGs. Each photograph is
scaled to a box and uploaded as a PNG, so that the variants have its size. The daemon encodes it in
each format and with a ladder of qualities. The bytes at the SSIM of the JPEG are interpolated:
log(bytes) over -log(1 - SSIM). SSIM is of luma (Wang 2004: windows of 11 pixels, Gaussian of 1.5).
No times are measured, so other programs do not disturb it. Prints a table, and writes one JSON line
per photograph and kind. Runs by itself:

    tests/bench/photographs --whole build/photographs
    /usr/bin/python3 scripts/experiments/formats.py build/photographs/whole --out build/formats
"""

import argparse
import io
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np
import PIL.Image

import machine
import markdown
import run
import worktree

QUALITIES = 55, 66, 75, 82, 88, 93, 97
QUALITY = 82  # of the JPEG that is compared
KINDS = "jpeg", "avif fast", "avif small", "webp"
DRAWS = 5000


# ---- pictures ----

def luma(image):
    return np.asarray(image.convert("RGB"), float) @ (0.299, 0.587, 0.114)


def windows(plane):
    """Returns the weighted mean of each window."""
    at = np.arange(-5, 6)
    weights = np.exp(-at ** 2 / 4.5)
    for axis in (0, 1):
        plane = np.moveaxis(plane, axis, -1)
        plane = np.lib.stride_tricks.sliding_window_view(plane, 11, -1) @ (weights / weights.sum())
        plane = np.moveaxis(plane, -1, axis)
    return plane


def statistics_of(plane):
    """Returns the plane, and the mean and the variance of each window."""
    mean = windows(plane)
    return plane, mean, windows(plane * plane) - mean ** 2


def ssim(one, other):
    """Of two statistics_of()."""
    (a, mean_a, var_a), (b, mean_b, var_b) = one, other
    both = windows(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(np.mean((2 * mean_a * mean_b + c1) * (2 * both + c2)
                         / ((mean_a ** 2 + mean_b ** 2 + c1) * (var_a + var_b + c2))))


def decode(kind, data):
    if not kind.startswith("avif"):
        return PIL.Image.open(io.BytesIO(data))
    with tempfile.TemporaryDirectory() as folder:
        source, target = (pathlib.Path(folder) / name for name in ("x.avif", "x.png"))
        source.write_bytes(data)
        subprocess.run(["avifdec", source, target], check=True, capture_output=True)
        return PIL.Image.open(io.BytesIO(target.read_bytes()))


# ---- the daemon ----

def options(effort, side):
    found = ["server.durability=process"]
    formats = "jpeg, avif, webp" if effort == "fast" else "jpeg, avif"
    for quality in QUALITIES:
        found += [f"variant.q{quality}.{setting}" for setting in (
            f"operations=scale {side}x{side} inside", f"quality={quality}", f"formats={formats}",
            f"effort={effort}")]
    return found


def files(daemon, image, effort):
    """Yields (kind, quality, bytes of the file)."""
    for quality in QUALITIES:
        variant = image["variants"][f"q{quality}"]
        urls = {"jpeg": variant["url"]} if effort == "fast" else {}
        for source in variant["sources"]:
            kind = source["type"].removeprefix("image/")
            urls[f"avif {effort}" if kind == "avif" else kind] = source["srcset"].split()[0]
        for kind, url in urls.items():
            with urllib.request.urlopen(daemon.url + url) as answer:
                yield kind, quality, answer.read()


def measure(daemon, path, side, effort):
    """Returns the lines of one photograph."""
    with PIL.Image.open(path) as image:
        picture = image.convert("RGB")
    picture.thumbnail((side, side), PIL.Image.LANCZOS)
    png = io.BytesIO()
    picture.save(png, "png", compress_level=1)
    original, lines = statistics_of(luma(picture)), {}
    for kind, quality, data in files(daemon, daemon.upload(png.getvalue(), "image/png"), effort):
        decoded = decode(kind, data)
        if decoded.size != picture.size:
            raise run.Failed(f"{path}: {kind} has another size: {decoded.size}")
        line = lines.setdefault(kind, {"kind": kind, "photograph": path.stem,
                                       "size": picture.size, "points": []})
        line["points"].append((quality, len(data), round(ssim(original, statistics_of(luma(decoded))), 6)))
    return list(lines.values())


# ---- figures ----

def bytes_at(points, wanted):
    """Returns the bytes at an SSIM, and whether that lies beyond the ladder."""
    curve = sorted((-math.log(1 - each[2]), math.log(each[1])) for each in points)
    at = -math.log(1 - wanted)
    i = next((i for i in range(1, len(curve)) if curve[i][0] >= at), len(curve) - 1)
    (x0, y0), (x1, y1) = curve[i - 1], curve[i]
    return math.exp(y0 + (y1 - y0) * (at - x0) / (x1 - x0)), not curve[0][0] <= at <= curve[-1][0]


def ratios(lines, kind):
    """Returns [(photograph, ratio of bytes to the JPEG's at the same SSIM, with the same quality,
    whether it is extrapolated)]."""
    by = {(line["kind"], line["photograph"]): line["points"] for line in lines}
    found = []
    for photograph in sorted(photograph for each, photograph in by if each == kind):
        _, jpeg, wanted = next(p for p in by["jpeg", photograph] if p[0] == QUALITY)
        same = next(p[1] for p in by[kind, photograph] if p[0] == QUALITY)
        needed, is_beyond = bytes_at(by[kind, photograph], wanted)
        found.append((photograph, needed / jpeg, same / jpeg, is_beyond))
    return found


def interval(values, statistic):
    """Returns the bounds of the 95 % interval of a bootstrap over photographs."""
    draw = random.Random(1)
    found = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return found[DRAWS // 40], found[-DRAWS // 40 - 1]


HEAD = ("kind", "photographs", "median", "95 % interval", "geometric mean", "least", "most",
        "larger than the JPEG", "with the same `quality`")


def table(lines):
    rows = []
    for kind in KINDS[1:]:
        found = ratios(lines, kind)
        equal = [each[1] for each in found]
        low, high = interval(equal, statistics.median)
        rows.append((kind, str(len(found)), f"{statistics.median(equal):.3f}",
                     f"{low:.3f} to {high:.3f}", f"{statistics.geometric_mean(equal):.3f}",
                     f"{min(equal):.3f}", f"{max(equal):.3f}", str(sum(r > 1 for r in equal)),
                     f"{statistics.median(each[2] for each in found):.3f}"))
    return markdown.table(HEAD, rows)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("photographs", type=pathlib.Path, help="a directory")
    add("--side", type=int, default=800, help="of the box, in pixels (800)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "formats")
    return parser.parse_args(arguments)


def main():
    given = parse(sys.argv[1:])
    given.out.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in given.photographs.iterdir() if path.is_file())
    lines = []
    with worktree.results(given.out / "raw.jsonl") as raw, \
            tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        for effort in ("fast", "small"):
            with run.Daemon(machine.ROOT / "conf" / "drain.ini", work,
                            options(effort, given.side)) as daemon:
                for path in paths:
                    found = measure(daemon, path, given.side, effort)
                    raw.writelines(json.dumps(line) + "\n" for line in found)
                    raw.flush()
                    lines += found
                    print(path.stem, file=sys.stderr)
    print(table(lines))
    for kind in KINDS[1:]:
        print(kind, *(f"{photograph}: {ratio:.3f}{' extrapolated' * beyond}"
                      for photograph, ratio, _, beyond in ratios(lines, kind)), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
