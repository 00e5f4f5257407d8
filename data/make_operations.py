#!/usr/bin/python3
"""Makes data/operations.jpg: what each operation of a variant makes of data/sample/lake.jpg, made by build/darkroomd itself.

usage: make_operations.py [FILE]        (needs build/darkroomd and python3-pil)
"""

import io
import json
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

# what the caption says, and what is done for it
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
    """The files that the daemon makes of the picture, in the order of OPERATIONS."""
    with tempfile.TemporaryDirectory() as directory:
        ini = pathlib.Path(directory) / "operations.ini"
        ini.write_text(f"[server]\nlisten = 127.0.0.1:0\nroot = {directory}/store\n" + "".join(
            f"[variant.v{i}]\noperations = {operations}\nenlarge = {enlarge}\nquality = 95\n"
            for i, (_, operations, enlarge) in enumerate(OPERATIONS)))
        daemon = subprocess.Popen([ROOT / "build" / "darkroomd", "-c", ini], stderr=subprocess.PIPE, text=True)
        try:
            log = ""
            for line in daemon.stderr:
                log += line
                ready = re.search(r"ready on (http://\S+)", line)
                if ready:
                    break
            else:
                sys.exit(log)
            upload = urllib.request.Request(ready[1] + "/images", source, {"Content-Type": "image/jpeg"})
            (image,) = json.load(urllib.request.urlopen(upload))["images"]
            return [urllib.request.urlopen(ready[1] + image["variants"][f"v{i}"]["url"]).read()
                    for i in range(len(OPERATIONS))]
        finally:
            daemon.terminate()
            daemon.wait()


def caption_under(draw, caption, x, y):
    """Lines of text in the middle of the cell's width."""
    for line in caption.split("\n"):
        left, top, right, bottom = draw.textbbox((0, 0), line)
        draw.text((x + (CELL - (right - left)) // 2, y), line, INK)
        y += bottom - top + 4


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data" / "operations.jpg"
    files = variants((ROOT / "data" / "sample" / "lake.jpg").read_bytes())
    rows = -(-len(files) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * (CELL + GAP) + GAP, rows * (CELL + CAPTION + GAP) + GAP), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, ((caption, _, _), data) in enumerate(zip(OPERATIONS, files)):
        x, y = GAP + i % COLUMNS * (CELL + GAP), GAP + i // COLUMNS * (CELL + CAPTION + GAP)
        picture = Image.open(io.BytesIO(data))
        sheet.paste(picture.convert("RGB"), (x + (CELL - picture.width) // 2, y + (CELL - picture.height) // 2))
        caption_under(draw, caption, x, y + CELL + 3)
    sheet.save(out, "JPEG", quality=85, optimize=True)
    print(f"{out}: {sheet.width}x{sheet.height}, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
