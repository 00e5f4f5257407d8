"""Files in a store's directory: stored images, and uploads that were acknowledged and are in the
spool."""

import json

import pictures


def check_stored(store, ident, source):
    """Checks that all files of an image exist and decode to the right sizes."""
    directory = store / ident[-2:] / ident
    document = json.loads((directory / "image.json").read_bytes())
    width, height = pictures.size(source)
    assert (document["width"], document["height"]) == (width, height)
    assert document["variants"].keys() == pictures.VARIANTS.keys()
    for name, (box, _, _) in pictures.VARIANTS.items():
        data = (directory / f"{name}.jpg").read_bytes()
        assert len(data) == document["variants"][name]["bytes"]
        assert pictures.size(data) == pictures.fit(width, height, box)


def check_whole(store, ident):
    """Checks that an image has all of its files, although no response may have reported it."""
    names = {p.name for p in (store / ident[-2:] / ident).iterdir()}
    assert {"image.json", *(f"{v}.jpg" for v in pictures.VARIANTS)} <= names, (ident, names)


# ---- the spool ----

def spool(store, ident, data, note="0\nlake.jpg"):
    """Writes the files that an upload with status 202 leaves if the daemon ends."""
    directory = store / ".spool" / ident
    directory.mkdir(parents=True)
    (directory / "original.jpg").write_bytes(data)
    (directory / "note").write_text(note)
