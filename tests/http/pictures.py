"""Test pictures that resemble photographs, made from fixed seeds, and the variants that Pillow
makes of them. The daemon's variants are compared with those. Knows nothing of HTTP."""

import functools
import io
import math

import numpy as np
from PIL import Image, ImageOps

from picture_cache import kept

# The reference variants of conf/darkroomd.ini: box and quality, blur in pixels.
VARIANTS = {"medium": (800, 82, 0), "thumb": (160, 80, 0), "blurred": (800, 75, 8)}


@functools.lru_cache(maxsize=8)
def tile(seed, size=512):
    """Returns a square of 1/f noise that repeats without seams. Its three channels are correlated
    as in photographs."""
    rng = np.random.default_rng(seed)
    fx, fy = np.meshgrid(np.fft.rfftfreq(size), np.fft.fftfreq(size))
    falloff = np.maximum(np.hypot(fx, fy), 1.0 / size) ** -1.25
    channels = []
    for _ in range(3):
        spectrum = np.fft.rfft2(rng.standard_normal((size, size))) * falloff
        spectrum[0, 0] = 0
        noise = np.fft.irfft2(spectrum, (size, size))
        channels.append(noise / noise.std())
    grey = channels[0]
    return np.stack([grey + 0.15 * c for c in channels], axis=2).astype(np.float32)


def make_photo(width, height, seed):
    base = tile(seed)
    # Huge pictures are coarse, so that they are fast to make.
    scale = max(1, math.ceil(max(width, height) / (4 * base.shape[0])))
    small_w, small_h = -(-width // scale), -(-height // scale)
    rows, columns = np.arange(small_h) % base.shape[0], np.arange(small_w) % base.shape[1]
    pixels = base[np.ix_(rows, columns)] * 42 + 128
    rng = np.random.default_rng(seed + 1000)
    for _ in range(6):
        x, y = int(rng.integers(0, small_w)), int(rng.integers(0, small_h))
        w, h = max(1, small_w // 8), max(1, small_h // 6)
        pixels[y:y + h, x:x + w] += rng.uniform(-60, 60, 3)
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    return image.resize((width, height), Image.Resampling.BICUBIC) if scale > 1 else image


@functools.lru_cache(maxsize=64)
@kept
def photo(width, height, seed=1):
    """Returns an RGB Pillow image: 1/f noise with some hard edges."""
    return make_photo(width, height, seed)


def jpeg(image, quality=92, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, **options)
    return out.getvalue()


@functools.lru_cache(maxsize=256)
@kept
def photo_jpeg(width, height, seed=1, quality=88, progressive=False):
    return jpeg(make_photo(width, height, seed), quality, progressive=progressive)


def decode(data):
    """Returns a decoded Pillow image. Fails if Pillow cannot read the file to its end."""
    image = Image.open(io.BytesIO(data))
    assert image.format == "JPEG"
    image.load()
    return image


@kept
def size(data):
    """Returns the size of a file that can be decoded to its end."""
    return decode(data).size


def fit(width, height, box):
    """Returns the size inside a square box: never larger, rounded to the nearest pixel, at least
    one."""
    scale = min(1.0, box / width, box / height)
    return tuple(max(1, math.floor(side * scale + 0.5)) for side in (width, height))


def upright(data):
    """Returns the picture as a viewer shows it: oriented, and RGB or grey."""
    image = ImageOps.exif_transpose(decode(data))
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


@kept
def upright_size(data):
    return upright(data).size


def gaussian(image, sigma):
    """Returns a Gaussian blur by its definition. Pixels of the border are repeated outwards."""
    radius = math.ceil(4 * sigma)
    weights = np.exp(-np.arange(-radius, radius + 1) ** 2 / (2 * sigma * sigma))
    weights /= weights.sum()
    pixels = np.asarray(image, dtype=np.float64)
    for axis in (0, 1):
        pad = [(0, 0)] * pixels.ndim
        pad[axis] = (radius, radius)
        padded = np.pad(pixels, pad, mode="edge")
        pixels = np.apply_along_axis(lambda line: np.convolve(line, weights, "valid"), axis, padded)
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def reference(data, variant):
    """Returns the ideal variant before it is encoded, by Pillow's Lanczos filter and a true
    Gaussian."""
    box, _, sigma = VARIANTS[variant]
    image = upright(data)
    image = image.resize(fit(*image.size, box), Image.Resampling.LANCZOS)
    return gaussian(image, sigma) if sigma else image


def difference(a, b):
    a, b = (np.asarray(i.convert("RGB"), dtype=np.float64) for i in (a, b))
    assert a.shape == b.shape, f"sizes differ: {a.shape} {b.shape}"
    return a - b


def rms(a, b):
    return float(np.sqrt(np.mean(difference(a, b) ** 2)))


def luma_rms(a, b):
    a, b = (np.asarray(i.convert("L"), dtype=np.float64) for i in (a, b))
    return float(np.sqrt(np.mean((a - b) ** 2)))


def psnr(a, b):
    return 20 * math.log10(255 / max(rms(a, b), 1e-9))


class Likeness:
    """The distance of a file from Pillow's variant of the same source, both before and after Pillow
    encodes it with the same quality."""

    def __init__(self, ours, source, variant):
        ours, ideal = decode(ours), reference(source, variant)
        encoded = decode(jpeg(ideal, VARIANTS[variant][1], subsampling=2))
        self.ideal_psnr, self.ideal_rms = psnr(ours, ideal), rms(ours, ideal)
        self.encoded_psnr, self.encoded_luma_rms = psnr(ours, encoded), luma_rms(ours, encoded)
        self.best_psnr, self.best_rms = psnr(encoded, ideal), rms(encoded, ideal)


@kept
def compare(ours, source, variant):
    return Likeness(ours, source, variant)
