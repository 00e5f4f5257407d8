#!/usr/bin/python3
"""Makes data/operations.jpg: the result of each operation of a variant on data/sample/lake.jpg.

build/darkroomd makes the variants itself.

usage: make_operations.py [FILE]        (needs build/darkroomd and python3-pil)
"""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

from PIL import Image, ImageDraw

ROOT = pathlib.Path(__file__).resolve().parent.parent
CELL, CAPTION, GAP, COLUMNS = 160, 30, 8, 4
PAPER, INK = (250, 250, 248), (30, 30, 30)

# caption, operations, enlarge
OPERATIONS = [
    ("scale 160x160 inside", "scale 160x160 inside", "no"),
    ("scale 160x160 cover", "scale 160x160 cover", "no"),
    ("scale 160x160 exact", "scale 160x160 exact", "no"),
    ("enlarge = yes\n(from 32x21)", "scale 32x32 inside, scale 160x160 inside", "yes"),
    ("blur 3", "scale 160x160 cover, blur 3", "no"),
    ("sharpen 2", "scale 160x160 cover, sharpen 2", "no"),
    ("grayscale", "scale 160x160 cover, grayscale", "no"),
    ("rotate 90", "scale 160x160 inside, rotate 90", "no"),
]


def variants(source):
    """Returns the daemon's variants of the picture in the order of OPERATIONS."""
    with tempfile.TemporaryDirectory() as directory:
        ini = pathlib.Path(directory) / "operations.ini"
        sections = "".join(
            f"[variant.v{i}]\noperations = {operations}\nenlarge = {enlarge}\nquality = 95\n"
            for i, (_, operations, enlarge) in enumerate(OPERATIONS))
        user = "user = root\n" if os.geteuid() == 0 else ""
        ini.write_text(
            f"[server]\nlisten = 127.0.0.1:0\nroot = {directory}/store\n{user}{sections}")
        daemon = subprocess.Popen([ROOT / "build" / "darkroomd", "-c", ini],
                                  stderr=subprocess.PIPE, text=True)
        try:
            return upload(wait_until_ready(daemon), source)
        finally:
            daemon.terminate()
            daemon.wait()


def wait_until_ready(daemon):
    """Returns the daemon's URL."""
    log = ""
    for line in daemon.stderr:
        log += line
        ready = re.search(r"ready on (http://\S+)", line)
        if ready:
            return ready[1]
    sys.exit(log)


def upload(url, source):
    """Uploads the picture. Returns its variants."""
    request = urllib.request.Request(url + "/images", source, {"Content-Type": "image/jpeg"})
    (image,) = json.load(urllib.request.urlopen(request))["images"]
    return [urllib.request.urlopen(url + image["variants"][f"v{i}"]["url"]).read()
            for i in range(len(OPERATIONS))]


def caption_under(draw, caption, x, y):
    """Centres lines of text below a cell."""
    for line in caption.split("\n"):
        left, top, right, bottom = draw.textbbox((0, 0), line)
        draw.text((x + (CELL - (right - left)) // 2, y), line, INK)
        y += bottom - top + 4


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data" / "operations.jpg"
    files = variants((ROOT / "data" / "sample" / "lake.jpg").read_bytes())
    rows = -(-len(files) // COLUMNS)
    width, height = COLUMNS * (CELL + GAP) + GAP, rows * (CELL + CAPTION + GAP) + GAP
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, ((caption, _, _), data) in enumerate(zip(OPERATIONS, files)):
        x, y = GAP + i % COLUMNS * (CELL + GAP), GAP + i // COLUMNS * (CELL + CAPTION + GAP)
        picture = Image.open(io.BytesIO(data))
        sheet.paste(picture.convert("RGB"),
                    (x + (CELL - picture.width) // 2, y + (CELL - picture.height) // 2))
        caption_under(draw, caption, x, y + CELL + 3)
    sheet.save(out, "JPEG", quality=85, optimize=True)
    print(f"{out}: {sheet.width}x{sheet.height}, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
