"""darkroomd store on a store that an enemy may write: every command, with links and FIFOs at every
place, names that are paths, and names that control a terminal. Nothing outside the store is read,
written, made, given away or removed, nothing waits, and nothing raw is printed."""

import json
import os
import pathlib
import re
import shutil
import socketserver
import subprocess
import tempfile
import threading

import pytest

from darkroom import CONFIG, command, overrides, run, slow
from store_files import directory_of

IDS = [f"01{span}{n:020}" for n, span in enumerate(("J0AA", "J1BB", "J2CC", "J3DD"))]
OTHER = "01H0" + "0" * 22  # only the outside has it
SECRET = "outside-secret"
WILD = "\x1b]0;wild\x07\x9b31m\n\r\x7f\u009b"
OWNERS = [0, 65534] if os.geteuid() == 0 else [os.geteuid()]


def commands():
    return re.search(r"^Commands: (.*)", run("store", "--help").stdout, re.M)[1].split()


# The words of each command. One that is new has to be named here.
WORDS = {
    "list": ["--json"], "find": [*IDS, OTHER], "count": [], "plan": [],
    "check": ["--repair", "--rate", "1G"], "export": [], "import": [], "remake": [],
    "migrate": [],
    "remove": ["--rate", "1M", *IDS, OTHER],
}


def put(store, ident, name="thumb", text="picture", **more):
    """Stores an image as versions before 0.2 did, which wrote no checksums."""
    directory = directory_of(store, ident)
    directory.mkdir(parents=True, exist_ok=True)
    document = {"id": ident, "width": 4, "height": 3, **more,
                "variants": {name: {"bytes": len(text), "width": 4, "height": 3}}}
    (directory / "image.json").write_text(json.dumps(document, ensure_ascii=False))
    for file in ("thumb.jpg", "original.jpg"):
        (directory / file).write_text(text)
    return directory


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def links_in_the_root(store, outside):
    for name in (".check", ".check.new", ".recount", ".usage", ".usage.new"):
        link(store / name, outside / "file")
    for name in (".import", ".remake", ".expiry", ".keys", "01GG", "0A"):
        link(store / name, outside / "directory")


def links_in_its_directories(store, outside):
    for ident in IDS:
        link(store / ".remake" / ident, outside / "file")
        link(store / ".remake" / f"{ident}.new", outside / "file")
        link(store / ".quarantine" / ident, outside / "directory")
        link(store / ".trash" / f"{ident}.0", outside / "directory")
        link(store / ".spool" / ident, outside / "directory")
        (directory_of(store, ident) / "stray.jpg").write_text("stray")
    link(store / ".quarantine" / "strays", outside / "directory")
    link(store / ".import" / "link", outside / "directory")
    (store / "stray").write_text("stray")


def links_in_paths(store, outside):
    """To a store outside: by the directory of a span, of a shard, and of an image."""
    for ident, depth in zip(IDS, (2, 1, 0)):
        put(outside / "store", ident, token=SECRET)
        place = [directory_of(store, ident), *directory_of(store, ident).parents][depth]
        link(place, outside / "store" / place.relative_to(store))
    link(store / OTHER[:4], outside / "store" / OTHER[:4])


def links_in_images(store, outside):
    for ident, name in zip(IDS, ("image.json", "thumb.jpg", "original.jpg", "other.jpg")):
        link(directory_of(store, ident) / name, outside / "store" / IDS[0][:4] / name)


def fifos(store, _outside):
    for ident, name in zip(IDS, ("image.json", "thumb.jpg", "original.jpg", "other.jpg")):
        path = directory_of(store, ident) / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    for name in (".check", ".check.new", ".recount", ".usage", ".expiry", ".import", "fifo",
                 f".remake/{IDS[3]}", f".remake/{IDS[3]}.new", "01GG"):
        os.mkfifo(store / name)


def names(store, outside):
    put(store, IDS[0], f"../../../../{outside.name}/file", SECRET)
    put(store, IDS[1], str(outside / "file")[:-4], SECRET)
    put(store, IDS[2], WILD, record={"upload": {"bytes": 1, "token": WILD}}, filename=WILD)
    put(store, IDS[3]).joinpath("image.json").write_text(
        json.dumps({"id": IDS[0], "width": 4, "height": 3, "filename": WILD, "variants": {}},
                   ensure_ascii=False) + "\x1b")
    put(store, IDS[3][:-1] + "9", filename=WILD, token=WILD)
    for directory in (store, store / IDS[0][:4], directory_of(store, IDS[0])):
        (directory / WILD).write_text("")
    (store / b"\x9b31m".decode("utf-8", "surrogateescape")).write_text("")


def link_at(name):
    def plant(store, outside):
        link(store / name, outside / "directory")
    plant.__name__ = name
    return plant


PLANTS = [links_in_the_root, links_in_its_directories, links_in_paths, links_in_images, fifos, names,
          *map(link_at, (".spool", ".trash", ".quarantine", ".incoming"))]


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        word = self.rfile.readline().decode().split()[0]
        self.server.words.append(word)
        self.wfile.write(b"0\n" + (self.server.dump if word == "dump" else b"{}"))


class Server(socketserver.UnixStreamServer):
    """A daemon that takes images from the queue of remakes, and makes nothing."""

    def service_actions(self):
        if not self.queue.is_symlink():
            for path in self.queue.glob("*"):
                path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def place():
    """A directory with the store, and the outside. Everybody may change all of it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="hostile-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def make(place, plant, owner):
    store, outside = place / "store", place / "outside"
    for path in (store, outside):
        shutil.rmtree(path, ignore_errors=True)
    for name in (".spool", ".trash", ".quarantine", ".incoming", ".remake"):
        (store / name).mkdir(parents=True)
    for ident in IDS:
        put(store, ident)
    (outside / "directory").mkdir(parents=True)
    (outside / "directory" / "kept").write_text(SECRET)
    (outside / "file").write_text(SECRET)
    (outside / "file.jpg").write_text(SECRET)
    put(outside / "store", OTHER, token=SECRET, text=SECRET)
    for name in ("image.json", "thumb.jpg", "original.jpg", "other.jpg"):
        put(outside / "store", IDS[0], text=SECRET, token=SECRET)
        shutil.copy(directory_of(outside / "store", IDS[0]) / "image.json",
                    outside / "store" / IDS[0][:4] / name)
    plant(store, outside)
    for path in [store, *store.rglob("*")]:
        os.chown(path, owner, -1, follow_symlinks=False)
    for path in [outside, *outside.rglob("*")]:
        path.chmod(0o777)
    return store, outside


def state(outside):
    """Returns all that can be changed outside."""
    return {str(p): (s.st_mode, s.st_uid, s.st_nlink, s.st_mtime_ns,
                     p.read_bytes() if p.is_file() else b"")
            for p in [outside, *outside.rglob("*")] for s in [p.lstat()]}


def serve(store):
    """Answers the store's commands as a daemon does."""
    server = Server(str(store / "control.sock"), Answers)
    os.chmod(store / "control.sock", 0o777)
    server.queue, server.words = store / ".remake", []
    server.dump = subprocess.run(command("-c", CONFIG, "-T"), capture_output=True,
                                 check=True).stdout
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


def printable(data):
    """Returns whether the bytes do nothing to a terminal."""
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", data.decode("utf-8"))


@pytest.fixture(scope="module")
def archive(place):
    """Images that the stores have, and one of a span that they have as a link."""
    store, _ = make(place, lambda store, outside: put(store, OTHER), OWNERS[0])
    return subprocess.run(command(*overrides(f"server.root={store}"), "store", "export"),
                          capture_output=True, check=True).stdout


def test_a_document_of_another_image_is_damaged(place):
    store, _ = make(place, lambda store, outside: put(store, IDS[0], id=IDS[1]), OWNERS[0])
    for word, expected in (("check", f"{IDS[0]}/image.json: rotten"),
                           ("export", f"{IDS[0]}: left out: image.json: rotten")):
        done = subprocess.run(command(*overrides(f"server.root={store}"), "store", word),
                              capture_output=True, check=False)
        assert done.returncode == 1 and expected.encode() in done.stdout + done.stderr


def test_the_words_of_all_commands_are_known():
    assert sorted(commands()) == sorted(WORDS)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_no_command_leaves_the_store(place, archive, plant, owner):
    store, outside = make(place, plant, owner)
    before = state(outside)
    assert len(before) > 10
    server = serve(store)
    try:
        for word in sorted(commands(), key="check remove".find):  # these change most
            done = subprocess.run(
                command(*overrides(f"server.root={store}"), "store", word, *WORDS[word]),
                input=archive, capture_output=True, timeout=slow(20), check=False)
            # migrate is for store.kind = s3
            assert done.returncode in ([2] if word == "migrate" else [0, 1]), (word, done)
            assert state(outside) == before, (word, done)
            assert SECRET.encode() not in done.stdout + done.stderr, (word, done)
            assert printable(done.stderr), (word, done)
            assert word == "export" or printable(done.stdout), (word, done)
    finally:
        server.shutdown()
        server.server_close()
    for path in store.rglob("*"):  # nothing is root's
        assert path.lstat().st_uid == owner or path.name == "control.sock", path


def test_remake_calls_the_daemon_for_each_image(place):
    """The daemon sleeps until it is called."""
    store, _ = make(place, lambda store, outside: None, OWNERS[0])
    server = serve(store)
    try:
        done = run("-o", f"server.root={store}", "store", "remake")
        assert done.stderr.count("the daemon's log has the cause") == len(IDS), done
    finally:
        server.shutdown()
        server.server_close()
    assert server.words.count("remake") >= 2 + len(IDS)  # two before the first image


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_the_owner_reaches_the_daemon_below_a_private_directory(place):
    """As with DynamicUser= of systemd: only root can use the path of the store."""
    store, _ = make(place, lambda store, outside: None, 65534)
    server = serve(store)
    place.chmod(0o700)
    try:
        done = run("-o", f"server.root={store}", "store", "remake")
        assert done.stderr.count("the daemon's log has the cause") == len(IDS), done
    finally:
        place.chmod(0o755)
        server.shutdown()
        server.server_close()
