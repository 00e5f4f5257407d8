"""The object of an image with store.kind = s3, read as darkroom-store(7) describes it."""

import ctypes
import hashlib

REMOVED, FAILED = b"removed 1\n", b"failed 1 \n"


class Sum(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def sum_of(content):
    """Returns the checksum, as xxh128sum prints it."""
    function = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    function.restype, function.argtypes = Sum, [ctypes.c_char_p, ctypes.c_size_t]
    result = function(content, len(content))
    return f"{result.high:016x}{result.low:016x}"


def key_of(ident):
    return f"image/{hashlib.sha256(ident.encode()).hexdigest()[:2]}/{ident}"


def files_of(content):
    """Returns the files of an object by their names; None if the image was removed, or failed."""
    if content in (REMOVED, FAILED):
        return None
    first, rest = content.split(b"\n", 1)
    word, version, length, _, total = first.decode().split(" ")
    assert (word, version) == ("image", "1"), first
    head = rest[:int(length) - len(first) - 1]
    assert sum_of(head) == total
    files = {}
    for line in head.split(b"\n\n", 1)[0].decode().split("\n"):
        name, at, size, total = line.split(" ")
        files[name] = content[int(at):int(at) + int(size)]
        assert sum_of(files[name]) == total and len(files[name]) == int(size)
    return files


def renamed(content, ident, other):
    """Returns the object of an image as that of another one, with right checksums of its head."""
    first, rest = content.split(b"\n", 1)
    *words, _ = first.split(b" ")
    length = int(words[2]) - len(first) - 1
    head, files = rest[:length].replace(ident.encode(), other.encode()), rest[length:]
    lines, document = head.split(b"\n\n", 1)
    document, _ = document.rsplit(b',"xxh128":"', 1)
    document += f',"xxh128":"{sum_of(document)}"}}}}\n'.encode()
    lines = lines.replace(lines.split(b"\n")[0].split(b" ")[3], sum_of(document).encode())
    head = lines + b"\n\n" + document
    return b" ".join([*words, sum_of(head).encode()]) + b"\n" + head + files
