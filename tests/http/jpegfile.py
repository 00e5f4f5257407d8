"""JPEG files by the byte: a parser of segments, a small baseline encoder, and hand-made headers of
files that a server must refuse. The encoder writes what Pillow cannot: any sampling, YCCK, RGB,
restart intervals, and one scan per component. Knows nothing of HTTP."""

import functools
import io
import struct

import numpy as np
from PIL import Image

from picture_cache import kept

SOI, EOI, SOS, DQT, DHT, DRI, COM = 0xD8, 0xD9, 0xDA, 0xDB, 0xC4, 0xDD, 0xFE
SOF0, SOF1, SOF2, SOF3, SOF9 = 0xC0, 0xC1, 0xC2, 0xC3, 0xC9
APP0, APP1, APP2, APP14 = 0xE0, 0xE1, 0xE2, 0xEE

ZIGZAG = sorted(range(64),
                key=lambda i: (i // 8 + i % 8, (i // 8) if (i // 8 + i % 8) % 2 else (i % 8)))


# ---- reading ----

def segments(data):
    """Returns [(marker, payload, offset of the marker)] up to and including the first SOS."""
    assert data[:2] == b"\xff\xd8", "no SOI"
    found, at = [], 2
    while True:
        assert data[at] == 0xFF, f"no marker at {at}"
        marker = data[at + 1]
        length = struct.unpack(">H", data[at + 2:at + 4])[0]
        found.append((marker, data[at + 4:at + 2 + length], at))
        if marker == SOS:
            return found
        at += 2 + length


def entropy_start(data):
    """Returns the offset of the first byte of entropy-coded data."""
    _, payload, at = segments(data)[-1]
    return at + 4 + len(payload)


def frame(data):
    """Returns (SOF marker, width, height, [(h, v) per component])."""
    for marker, payload, _ in segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in (DHT, 0xC8, 0xCC):
            height, width, count = struct.unpack(">HHB", payload[1:6])
            factors = [divmod(payload[7 + 3 * i], 16) for i in range(count)]
            return marker, width, height, factors
    raise AssertionError("no frame header")


def icc_profile(data):
    """Returns the profile of all APP2 chunks together, or None."""
    chunks = {}
    for marker, payload, _ in segments(data):
        if marker == APP2 and payload[:12] == b"ICC_PROFILE\0":
            assert payload[12] not in chunks, "chunk twice"
            chunks[payload[12]] = payload[14:]
            assert payload[13] >= payload[12] >= 1
    if not chunks:
        return None
    assert sorted(chunks) == list(range(1, len(chunks) + 1))
    return b"".join(chunks[i] for i in sorted(chunks))


# ---- writing ----

def segment(marker, payload=b""):
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def insert_segment(data, marker, payload):
    """Returns the file with one more segment after SOI."""
    return data[:2] + segment(marker, payload) + data[2:]


def sof(marker, width, height, components, precision=8):
    """Returns a frame header. components: [(id, h, v, quantization table)]"""
    body = struct.pack(">BHHB", precision, height, width, len(components))
    for ident, h, v, table in components:
        body += bytes([ident, h << 4 | v, table])
    return segment(marker, body)


def sos(components, start=0, end=63, high=0, low=0):
    """Returns a scan header. components: [(id, DC table, AC table)]"""
    body = bytes([len(components)])
    for ident, dc, ac in components:
        body += bytes([ident, dc << 4 | ac])
    return segment(SOS, body + bytes([start, end, high << 4 | low]))


def adobe(transform):
    return segment(APP14, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, transform))


def exif(orientation, big_endian=False, thumbnail=b""):
    """Returns the payload of an APP1: IFD0 with the orientation, and IFD1 with the thumbnail if
    any."""
    e = ">" if big_endian else "<"
    tiff = (b"MM" if big_endian else b"II") + struct.pack(e + "HI", 42, 8)
    next_ifd = 8 + 2 + 12 + 4 if thumbnail else 0
    tiff += struct.pack(e + "H", 1) + struct.pack(e + "HHIHH", 0x0112, 3, 1, orientation, 0)
    tiff += struct.pack(e + "I", next_ifd)
    if thumbnail:
        at = next_ifd + 2 + 2 * 12 + 4
        tiff += struct.pack(e + "H", 2)
        tiff += struct.pack(e + "HHII", 0x0201, 4, 1, at)
        tiff += struct.pack(e + "HHII", 0x0202, 4, 1, len(thumbnail))
        tiff += struct.pack(e + "I", 0) + thumbnail
    return b"Exif\0\0" + tiff


@functools.lru_cache(maxsize=None)
def standard_tables(quality):
    """Returns the tables that libjpeg writes for a grey picture: (quantisation values in zigzag
    order, DC codes, AC codes as {symbol: bits}, DHT segments)."""
    out = io.BytesIO()
    Image.new("L", (8, 8)).save(out, "JPEG", quality=quality)
    found = segments(out.getvalue())
    quantization = next(p for m, p, _ in found if m == DQT)[1:65]
    codes, raw = {}, b""
    for payload in (p for m, p, _ in found if m == DHT):
        raw += segment(DHT, payload)
        counts, symbols = payload[1:17], iter(payload[17:])
        code, table = 0, {}
        for bits, count in enumerate(counts, 1):
            for _ in range(count):
                table[next(symbols)] = format(code, f"0{bits}b")
                code += 1
            code <<= 1
        codes[payload[0] >> 4] = table
    return quantization, codes[0], codes[1], raw


@functools.lru_cache(maxsize=None)
def dct_matrix():
    k, n = np.mgrid[0:8, 0:8]
    matrix = np.cos((2 * n + 1) * k * np.pi / 16) / 2
    matrix[0] /= np.sqrt(2)
    return matrix


def pack_bits(bits):
    """Returns the bytes of these bits, padded with ones and with a zero byte after each FF."""
    bits += "1" * (-len(bits) % 8)
    packed = int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]
    return packed.replace(b"\xff", b"\xff\0")


class Component:
    """One plane as quantised blocks, which are coded one by one."""

    def __init__(self, plane, size, factor, factor_max, quality):
        self.h, self.v = factor
        self.width = -(-size[0] * self.h // factor_max[0])
        self.height = -(-size[1] * self.v // factor_max[1])
        small = np.asarray(Image.fromarray(plane).resize((self.width, self.height),
                                                         Image.Resampling.BOX))
        down, right = -self.height % (8 * self.v), -self.width % (8 * self.h)
        small = np.pad(small, ((0, down), (0, right)), mode="edge").astype(float) - 128
        quantization, self.dc, self.ac, _ = standard_tables(quality)
        table = np.zeros(64)
        table[ZIGZAG] = list(quantization)
        rows, columns = small.shape[0] // 8, small.shape[1] // 8
        blocks = small.reshape(rows, 8, columns, 8).swapaxes(1, 2)
        blocks = dct_matrix() @ blocks @ dct_matrix().T
        self.blocks = np.rint(blocks.reshape(rows, columns, 64) / table).astype(int)[:, :, ZIGZAG]
        self.predicted = 0

    def code(self, row, column):
        row, column = min(row, self.blocks.shape[0] - 1), min(column, self.blocks.shape[1] - 1)
        block = self.blocks[row, column].tolist()
        difference, self.predicted = block[0] - self.predicted, block[0]
        bits = self.dc[abs(difference).bit_length()] + self.magnitude(difference)
        run = 0
        last = max((i for i in range(64) if block[i]), default=0)
        for value in block[1:last + 1]:
            if value == 0:
                run += 1
                continue
            bits += self.ac[0xF0] * (run // 16)
            bits += self.ac[run % 16 << 4 | abs(value).bit_length()] + self.magnitude(value)
            run = 0
        return bits + (self.ac[0] if last < 63 else "")

    @staticmethod
    def magnitude(value):
        size = abs(value).bit_length()
        return format(value if value > 0 else value + (1 << size) - 1, f"0{size}b") if size else ""


def scan_data(units, components, restart):
    """Returns the entropy-coded bytes of one scan. units: for each MCU a list of (component, row,
    column)."""
    out, bits, done = b"", [], 0
    for unit in units:
        if restart and done and done % restart == 0:
            out += pack_bits("".join(bits)) + bytes([0xFF, 0xD0 + (done // restart - 1) % 8])
            bits = []
            for c in components:
                c.predicted = 0
        bits += [c.code(row, column) for c, row, column in unit]
        done += 1
    return out + pack_bits("".join(bits))


@kept
def encode(planes, sampling=None, quality=90, transform=None, restart=0,
           interleaved=True, ids=None):
    """Returns a baseline file of full-size planes. sampling: (h, v) for each plane. transform: that
    of an Adobe marker."""
    size = planes[0].shape[1], planes[0].shape[0]
    sampling = sampling or [(1, 1)] * len(planes)
    ids = ids or range(1, len(planes) + 1)
    most = max(h for h, _ in sampling), max(v for _, v in sampling)
    parts = [Component(np.ascontiguousarray(p), size, f, most, quality)
             for p, f in zip(planes, sampling)]
    quantization, _, _, huffman = standard_tables(quality)
    out = b"\xff\xd8" + (adobe(transform) if transform is not None else b"")
    out += segment(DQT, b"\0" + quantization)
    out += sof(SOF0, *size, [(i, c.h, c.v, 0) for i, c in zip(ids, parts)]) + huffman
    if restart:
        out += segment(DRI, struct.pack(">H", restart))
    if interleaved and len(parts) > 1:
        across, down = -(-size[0] // (8 * most[0])), -(-size[1] // (8 * most[1]))
        units = ([(c, y * c.v + v, x * c.h + h)
                  for c in parts for v in range(c.v) for h in range(c.h)]
                 for y in range(down) for x in range(across))
        out += sos([(i, 0, 0) for i in ids]) + scan_data(units, parts, restart)
    else:
        for i, c in zip(ids, parts):
            units = ([(c, y, x)] for y in range(-(-c.height // 8)) for x in range(-(-c.width // 8)))
            out += sos([(i, 0, 0)]) + scan_data(units, [c], restart)
    return out + b"\xff\xd9"


def planes(image, mode="YCbCr"):
    pixels = np.asarray(image.convert(mode))
    return [pixels[:, :, i] for i in range(pixels.shape[2])]


SAMPLINGS = {"4:4:4": [(1, 1), (1, 1), (1, 1)], "4:2:2": [(2, 1), (1, 1), (1, 1)],
             "4:2:0": [(2, 2), (1, 1), (1, 1)], "4:4:0": [(1, 2), (1, 1), (1, 1)],
             "4:1:1": [(4, 1), (1, 1), (1, 1)], "4:1:0": [(4, 2), (1, 1), (1, 1)],
             "1x4": [(1, 4), (1, 1), (1, 1)], "2x1 all": [(2, 1), (2, 1), (2, 1)],
             "Cb finer": [(2, 2), (2, 1), (1, 1)], "Cb/Cr differ": [(2, 2), (2, 1), (1, 2)],
             "chroma finer": [(1, 1), (2, 2), (2, 2)]}


# ---- files that only their headers make dangerous or unsupported ----

def header_only(width, height, marker=SOF0, components=3, precision=8, data=b"\x00" * 64):
    """Returns a file of a few hundred bytes that claims to have this size."""
    quantization, _, _, huffman = standard_tables(75)
    if precision == 12 or marker >= SOF9:
        huffman = b""
    ids = range(1, components + 1)
    out = b"\xff\xd8" + segment(DQT, b"\0" + quantization)
    out += sof(marker, width, height, [(i, 1, 1, 0) for i in ids], precision) + huffman
    if marker == SOF3:
        return out + sos([(i, 0, 0) for i in ids], 1, 0) + data + b"\xff\xd9"
    if marker == SOF2:
        return out + sos([(i, 0, 0) for i in ids], 0, 0) + data + b"\xff\xd9"
    return out + sos([(i, 0, 0) for i in ids]) + data + b"\xff\xd9"


def many_scans(count, width=8, height=8):
    """Returns a grey progressive file of this many legal scans: DC, each coefficient alone, and its
    refinement. From scan 128 on the refinements are repeated, which decoders only warn of. All
    coefficients are zero, so that a scan of any size has a few bytes."""
    blocks = -(-width // 8) * -(-height // 8)
    runs = ""
    left = blocks
    while left:
        # EOB14 with 14 bits ends a band for up to 32767 blocks, and EOB0 for one block
        if left >= 16384:
            take = min(left, 32767)
            runs += "0" + format(take - 16384, "014b")
        else:
            exponent = left.bit_length() - 1
            take = 1 << exponent
            runs += END_OF_BAND[exponent]
        left -= take
    out = b"\xff\xd8" + segment(DQT, b"\0" + bytes([1] * 64))
    out += sof(SOF2, width, height, [(1, 1, 1, 0)])
    out += segment(DHT, bytes([0x00]) + bytes([1] + [0] * 15) + bytes([0]))
    symbols = [0xE0] + [n << 4 for n in range(14)]
    out += segment(DHT, bytes([0x10]) + bytes([1, 0, 0, 0, 0, 14] + [0] * 10) + bytes(symbols))
    out += sos([(1, 0, 0)], 0, 0) + pack_bits("0" * blocks)
    for i in range(count - 1):
        k = i % 63 + 1
        out += sos([(1, 0, 0)], k, k, 0 if i < 63 else 1, 1 if i < 63 else 0) + pack_bits(runs)
    return out + b"\xff\xd9"


def scan_bomb(width, height, scans, dc=False, components=1):
    """Returns a progressive file of AC scans without a coefficient: 31 codes for a million blocks.
    scans: [(high, low)] of the successive approximation, for each component. dc: begins with DC
    scans, which have a bit for each block."""
    blocks = -(-width // 8) * -(-height // 8)
    ids = range(1, components + 1)
    left, runs = blocks, ""
    while left > 0:
        run = max(min(left, 32767), 16384)
        runs += "0" + format(run - 16384, "014b")
        left -= run
    data = pack_bits(runs)
    out = b"\xff\xd8" + segment(DQT, b"\0" + bytes([1] * 64))
    out += sof(SOF2, width, height, [(i, 1, 1, 0) for i in ids])
    out += segment(DHT, bytes([0x10, 1] + [0] * 15 + [0xE0]))
    out += segment(DHT, bytes([0x00, 1] + [0] * 15 + [0x00]))
    for i in ids if dc else ():
        out += sos([(i, 0, 0)], 0, 0) + b"\0" * -(-blocks // 8)
    for i in ids:
        for high, low in scans:
            out += sos([(i, 0, 0)], 1, 63, high, low) + data
    return out + b"\xff\xd9"


# Codes of EOB0..EOB13 in the table of many_scans(): 6 bits starting with 100000, then the low bits
# of the run, which are zero.
END_OF_BAND = [format(0b100000 + n, "06b") + "0" * n for n in range(14)]
