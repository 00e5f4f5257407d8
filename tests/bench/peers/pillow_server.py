"""The work of conf/drain.ini with Flask and Pillow under gunicorn, as a Python team would write it.

Used by make bench-peers only. Stores STORE/<id>/<variant>.jpg; STORE is an environment variable.
"""
import io
import os
import pathlib
import uuid

from flask import Flask, jsonify, request, send_file
from PIL import Image, ImageFilter, ImageOps

Image.MAX_IMAGE_PIXELS = 100_000_000
STORE = pathlib.Path(os.environ["STORE"])
INCOMING = STORE / ".incoming"
INCOMING.mkdir(parents=True, exist_ok=True)
app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 32 << 20


def process(data):
    img = Image.open(io.BytesIO(data), formats=["JPEG"])
    width, height = img.size
    if img.getexif().get(0x0112, 1) in (5, 6, 7, 8):
        width, height = height, width
    icc = img.info.get("icc_profile")
    # draft() decodes at 1/2, 1/4 or 1/8 in the DCT domain, to at least the given size
    img.draft(None, (1600, 1600))
    img = ImageOps.exif_transpose(img)
    if img.mode not in ("RGB", "L"):
        img = img.convert("RGB")
    img.thumbnail((800, 800), Image.Resampling.LANCZOS)
    thumb = img.copy()
    thumb.thumbnail((160, 160), Image.Resampling.LANCZOS)
    blurred = img.filter(ImageFilter.GaussianBlur(8))
    name = str(uuid.uuid4())
    (INCOMING / name).mkdir()
    variants = {}
    for variant, pixels, quality in (
            ("medium", img, 82), ("thumb", thumb, 80), ("blurred", blurred, 75)):
        file = INCOMING / name / f"{variant}.jpg"
        pixels.save(file, "JPEG", quality=quality, icc_profile=icc, exif=b"")
        variants[variant] = {"url": f"/images/{name}/{variant}.jpg", "width": pixels.width,
                             "height": pixels.height, "bytes": file.stat().st_size}
    (INCOMING / name).rename(STORE / name)
    return {"id": name, "width": width, "height": height, "variants": variants}


def problem(status, title):
    return jsonify(title=title, status=status), status, {"Content-Type": "application/problem+json"}


@app.post("/images")
def post_images():
    files = [f.read() for f in request.files.values()]
    if not files and request.mimetype == "image/jpeg":
        files = [request.get_data()]
    if not files:
        return problem(400, "no file in the form")
    try:
        images = [process(data) for data in files]
    except Image.DecompressionBombError as e:
        return problem(413, str(e))
    except Image.UnidentifiedImageError as e:
        return problem(415, str(e))
    except (OSError, SyntaxError, ValueError) as e:
        return problem(422, str(e))
    headers = {"Location": f"/images/{images[0]['id']}"} if len(images) == 1 else {}
    return jsonify(images=images), 201, headers


@app.get("/images/<uuid:name>/<any(medium, thumb, blurred):variant>.jpg")
def get_variant(name, variant):
    file = STORE / str(name) / f"{variant}.jpg"
    if not file.exists():
        return problem(404, "no such variant")
    return send_file(file, mimetype="image/jpeg")


@app.get("/healthz")
def healthz():
    return jsonify(status="ok")
