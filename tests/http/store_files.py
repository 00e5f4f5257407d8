"""Files in a store's directory: stored images, and uploads that were acknowledged and are in the
spool."""

import json

import pictures


def directory_of(store, ident):
    """Returns the directory of a stored image."""
    return store / ident[:4] / ident[4:6] / ident


def move_to_old_place(store, ident):
    """Moves an image to where versions before 0.2 stored it."""
    old = store / ident[-2:] / ident
    old.parent.mkdir(exist_ok=True)
    directory_of(store, ident).rename(old)
    return old


def files_of(store, ident):
    """Returns {name: bytes} of the files of a stored image."""
    return {p.name: p.read_bytes() for p in directory_of(store, ident).iterdir()}


def bytes_of(store, ident, source):
    """Returns the bytes of an image that the daemon counts: of its variants and of the original."""
    document = json.loads((directory_of(store, ident) / "image.json").read_bytes())
    return sum(v["bytes"] for v in document["variants"].values()) + len(source)


def made_by(daemon, source):
    """Returns {name: bytes} of the variants that a daemon makes of a source, without crashes."""
    image = daemon.image(source)
    return {f"{v}.jpg": daemon.fetch(image, v) for v in pictures.VARIANTS}


def check_same(files, expected, source, keeps_originals):
    """Checks the bytes of all files of an image, and its JSON."""
    document = json.loads(files["image.json"])
    assert (document["width"], document["height"]) == pictures.size(source)
    assert {f"{v}.jpg": document["variants"][v]["bytes"] for v in document["variants"]} == {
        name: len(data) for name, data in expected.items()}
    names = {"image.json", *expected, *(["original.jpg"] if keeps_originals else [])}
    assert files.keys() == names
    for name, data in expected.items():
        assert files[name] == data, f"{name} has other bytes"
    assert not keeps_originals or files["original.jpg"] == source


def check_stored(store, ident, source):
    """Checks that all files of an image exist and decode to the right sizes."""
    directory = directory_of(store, ident)
    document = json.loads((directory / "image.json").read_bytes())
    width, height = pictures.size(source)
    assert (document["width"], document["height"]) == (width, height)
    assert document["variants"].keys() == pictures.VARIANTS.keys()
    for name, (box, _, _) in pictures.VARIANTS.items():
        data = (directory / f"{name}.jpg").read_bytes()
        assert len(data) == document["variants"][name]["bytes"]
        assert pictures.size(data) == pictures.fit(width, height, box)


# ---- the spool ----

def spool(store, ident, data, note="0\nlake.jpg"):
    """Writes the files that an upload with status 202 leaves if the daemon ends."""
    directory = store / ".spool" / ident
    directory.mkdir(parents=True)
    (directory / "original.jpg").write_bytes(data)
    (directory / "note").write_text(note)
