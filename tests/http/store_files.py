"""What lies in a store's directory: stored images, and uploads that were acknowledged and wait in the spool."""

import json

import pictures


def check_stored(store, ident, source):
    """All of its files are there and decode to the right sizes."""
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
    """An image that nobody was told of, but which is visible, has all of its files."""
    names = {p.name for p in (store / ident[-2:] / ident).iterdir()}
    assert {"image.json", *(f"{v}.jpg" for v in pictures.VARIANTS)} <= names, (ident, names)


# ---- the spool ----

def spool(store, ident, data, note="0\nlake.jpg"):
    """What an upload that was answered 202 leaves behind if the daemon ends."""
    directory = store / ".spool" / ident
    directory.mkdir(parents=True)
    (directory / "original.jpg").write_bytes(data)
    (directory / "note").write_text(note)
