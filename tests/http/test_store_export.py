"""darkroomd store export and import with tar archives: round trips, the same again, and archives
that are damaged or hostile. DARKROOM_KILLS is the number of kills (6)."""

import io
import os
import random
import subprocess
import tarfile
import threading
import time

import pytest

import pictures
from darkroom import ALARMS, IS_SANITIZED, Daemon, command, eventually, load, slow
from store_files import directory_of, files_of, move_to_old_place

KEEP = "server.keep_originals=yes"
SMALL = [pictures.photo_jpeg(w, h, s) for w, h, s in ((120, 90, 5), (64, 200, 6), (33, 17, 7))]
KILLS = int(os.environ.get("DARKROOM_KILLS", load(6, 2)))


def tool(store, *words, data=b""):
    """Runs a command of the store with this standard input. Its output is bytes."""
    done = subprocess.run(command("-o", f"server.root={store}", "store", *words), input=data,
                          capture_output=True, timeout=slow(180), check=False)
    done.stderr = done.stderr.decode()
    for alarm in ALARMS:
        assert alarm not in done.stderr, done.stderr
    return done


def export(store, *words):
    done = tool(store, "export", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def accept(store, archive, report):
    """Imports an archive that must be accepted."""
    done = tool(store, "import", data=archive)
    assert done.returncode == 0 and report in done.stderr, done.stderr


def members(archive):
    """Returns [(member, data)] of the files."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [(m, tar.extractfile(m).read()) for m in tar]


def pack(entries, form=tarfile.PAX_FORMAT):
    """Returns an archive of [(member, data)]."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for member, data in entries:
            if member.isreg():
                member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member_of(name, kind=tarfile.REGTYPE, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def everything(store, images):
    return {ident: files_of(store, ident) for ident in images}


def empty_store(path):
    """Returns a new store, which no daemon serves any more."""
    daemon = Daemon(path)
    daemon.stop()
    return path


@pytest.fixture
def source(start):
    """A daemon with three images: one of an earlier version, and one that ends."""
    daemon = start(KEEP)
    images = [daemon.image(SMALL[0])["id"]]
    next_millisecond()
    images.append(daemon.image(SMALL[1], headers=[("X-Expires-After", "3600")])["id"])
    next_millisecond()
    images.append(daemon.image(SMALL[2])["id"])
    old = directory_of(daemon.store, images[2]) / "image.json"
    text = old.read_text()
    os.removexattr(old, "user.darkroom.xxh128")
    old.write_text(text[:text.index(',"record"')] + "}\n")
    assert images == sorted(images)
    return daemon, images


def next_millisecond():
    """Ids of the same millisecond are in any order."""
    begin = time.time()
    assert eventually(lambda: time.time() > begin + 0.002)


def test_an_archive_gives_the_same_store(source, start, tmp_path):
    daemon, images = source
    before = everything(daemon.store, images)
    move_to_old_place(daemon.store, images[0])
    archive = export(daemon.store)
    other = start(KEEP, store=tmp_path / "other")
    accept(other.store, archive, "3 images stored, 0 there already, 0 different, 0 refused")
    assert other.stored() == images and everything(other.store, images) == before
    for ident in images:
        assert other.get(f"/images/{ident}/thumb.jpg").body == before[ident]["thumb.jpg"]
        assert (directory_of(other.store, ident) / "original.jpg").stat().st_mode & 0o777 == 0o600
    assert list((other.store / ".expiry").glob("*/*")) and not (other.store / ".import").exists()
    accept(other.store, archive, "0 images stored, 3 there already, 0 different, 0 refused")
    assert tool(other.store, "check").returncode == 0 and not other.leftovers()
    tags = [os.getxattr(directory_of(s, images[1]) / "thumb.jpg", "user.darkroom.xxh128")
            for s in (daemon.store, other.store)]
    assert tags[0] == tags[1] and len(tags[0]) == 43


def test_other_programs_read_the_archive(source, tmp_path):
    daemon, images = source
    archive = export(daemon.store)
    copy = empty_store(tmp_path / "copy")
    done = subprocess.run(["tar", "-C", copy, "--xattrs", "-xf", "-"], input=archive,
                          capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert everything(copy, images) == everything(daemon.store, images)
    assert tool(copy, "check").returncode == 0
    listed = [m.name for m, _ in members(archive)]
    assert len(listed) == len(set(listed)) == 15 and len(archive) % 10240 == 0
    assert listed[0].endswith("/image.json")


def test_an_export_selects_images(source, tmp_path):
    daemon, images = source
    listed = tmp_path / "ids"
    listed.write_text(images[1] + "\n")

    def selected(*words):
        return sorted({m.name.split("/")[2] for m, _ in members(export(daemon.store, *words))})

    assert selected("--since", "1h") == images and selected("--before", "1h") == []
    assert selected("--ids", listed) == [images[1]] and selected(images[2]) == [images[2]]
    assert selected("--after", images[0], "--limit", "1") == [images[1]]
    assert tool(daemon.store, "export", "01K00000000000000000000000").returncode == 1
    for words in (["--since", "1h"], ["--limit", "1"], [images[0], images[1]]):
        assert tool(daemon.store, "import", *words).returncode == 2


def test_damaged_images_are_left_out(source):
    daemon, images = source
    path = directory_of(daemon.store, images[1]) / "thumb.jpg"
    data = bytearray(path.read_bytes())
    data[-9] ^= 4
    path.write_bytes(data)
    (directory_of(daemon.store, images[2]) / "medium.jpg").unlink()
    done = tool(daemon.store, "export")
    assert done.returncode == 1
    assert f"{images[1]}: left out: thumb.jpg: rotten" in done.stderr
    assert f"{images[2]}: left out: medium.jpg: missing" in done.stderr
    assert {m.name.split("/")[2] for m, _ in members(done.stdout)} == {images[0]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a store away")
def test_an_import_by_root_becomes_the_owner_of_the_store(source, tmp_path):
    daemon, images = source
    archive = export(daemon.store)
    other = empty_store(tmp_path / "other")
    for path in [other, *other.rglob("*")]:
        os.chown(path, 65534, 65533)
    accept(other, archive, "3 images stored")
    files = [directory_of(other, images[0]), *directory_of(other, images[0]).iterdir()]
    assert {(p.stat().st_uid, p.stat().st_gid) for p in files} == {(65534, 65533)}


def test_what_differs_stays(source, tmp_path):
    daemon, images = source
    archive = export(daemon.store)
    other = empty_store(tmp_path / "other")
    accept(other, archive, "3 images stored")
    path = directory_of(other, images[1]) / "thumb.jpg"
    path.write_bytes(b"other")
    done = tool(other, "import", data=archive)
    assert done.returncode == 1 and f"{images[1]}: the store has it with other" in done.stderr
    assert "2 there already, 1 different" in done.stderr and path.read_bytes() == b"other"


def test_an_archive_is_complete_under_load(start, tmp_path):
    """Images that are removed and remade meanwhile are in the archive as a whole or not at all."""
    before = start(KEEP, "server.durability=process")
    images = [before.image(SMALL[i % 3])["id"] for i in range(30)]
    before.stop()
    daemon = start(KEEP, "variant.medium.operations=scale 50x50 inside", "server.durability=process",
                   store=before.store)
    remake = subprocess.Popen(command("-o", f"server.root={daemon.store}", "store", "remake"),
                              stderr=subprocess.DEVNULL)

    def disturb():
        with daemon.client() as c:
            for ident in images[::3]:
                assert c.request("DELETE", f"/images/{ident}").status == 204
                assert c.request("POST", "/images", SMALL[0],
                                 [("Content-Type", "image/jpeg")]).status == 201

    thread = threading.Thread(target=disturb)
    thread.start()
    archives = [export(daemon.store) for _ in range(4)]
    thread.join()
    assert remake.wait(slow(60)) == 0
    kept = {i for n, i in enumerate(images) if n % 3}
    for n, archive in enumerate(archives):
        other = empty_store(tmp_path / f"other{n}")
        accept(other, archive, " 0 different, 0 refused")
        assert kept <= {p.name for p in other.glob("0*/*/*")}
        assert tool(other, "check").returncode == 0


def test_an_import_that_is_killed_continues(start, tmp_path):
    daemon = start(KEEP, "server.durability=process")
    images = [daemon.image(SMALL[i % 3])["id"] for i in range(60)]
    archive = tmp_path / "archive.tar"
    archive.write_bytes(export(daemon.store))
    expected = everything(daemon.store, images)
    other = start(KEEP, store=tmp_path / "other")
    rng, partly = random.Random(3), 0
    for _ in range(KILLS):
        count = min(len(other.stored()) + rng.randrange(6), len(images) - 5)
        with archive.open("rb") as f:
            client = subprocess.Popen(command("-o", f"server.root={other.store}", "store",
                                              "import"), stdin=f, stderr=subprocess.DEVNULL)
        assert eventually(lambda c=client, n=count: len(other.stored()) >= n or c.poll() == 0,
                          step=0.001)
        client.kill()
        client.wait()
        for ident in other.stored():
            assert files_of(other.store, ident) == expected[ident]
        partly += 0 < len(other.stored()) < len(images)
    assert partly
    done = tool(other.store, "import", data=archive.read_bytes())
    assert done.returncode == 0, done.stderr
    assert everything(other.store, images) == expected and not (other.store / ".import").exists()


# ---- archives that are damaged or hostile ----

@pytest.fixture
def target(source, tmp_path):
    """An empty store and the members of an archive."""
    daemon, images = source
    daemon.stop()
    return empty_store(tmp_path / "target"), members(export(daemon.store)), images


def refuse(store, archive, *reports):
    """Imports an archive that must be refused. Returns the images that are stored."""
    before = {p for p in store.parent.rglob("*") if p.suffix != ".tar"}
    done = tool(store, "import", data=archive)
    assert done.returncode == 1, done.stderr
    for report in reports:
        assert report in done.stderr, done.stderr
    stored = {p.name for p in store.glob("0*/*/*")}
    made = {p for p in store.parent.rglob("*")} - before
    assert not any(not p.is_relative_to(store) for p in made)
    assert not (store / ".import").exists()
    assert tool(store, "check").returncode == 0
    return stored


def test_names_outside_of_an_image_are_refused(target):
    store, entries, images = target
    good = entries[0][0].name
    shard = good.rpartition("/")[0].rpartition("/")[0]
    names = ["/" + good, "../" + good, good.replace("/", "//"), f"{shard}/../{good}",
             f"{shard}/{images[0]}/../../../x.jpg", f"{shard}/{images[0]}/.jpg",
             f"{shard}/{images[0]}/note", f"{shard}/{images[0]}/A.jpg", ".spool/x/original.jpg",
             f"{shard}/{images[0]}/a/b.jpg", f"00/{images[0]}/image.json", "image.json",
             f"{shard}/{images[0].lower()}/image.json", f"{shard}/{'x' * 40}.jpg\x1b[2J",
             f"{shard}/{images[0]}/{'x' * 32}.jpg", f"{images[0]}/image.json", ".", "./", ""]
    wrong = [(member_of(name), b"x") for name in names]
    assert refuse(store, pack(wrong + entries), f"{len(names)} refused",
                  "3 images stored") == set(images)
    assert not list(store.parent.rglob("x.jpg"))


def test_links_and_devices_are_refused(target):
    store, entries, images = target
    base = entries[0][0].name.rpartition("/")[0]
    kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
    wrong = [(member_of(f"{base}/thumb.jpg", kind, "/etc/passwd"), b"") for kind in kinds]
    # instead of a file of the first image, which then lacks it
    replaced = [e for e in entries if e[0].name != f"{base}/thumb.jpg"]
    assert refuse(store, pack(wrong + replaced), "6 refused", "thumb.jpg: missing") == set(
        images[1:])


@pytest.mark.parametrize("change, report", [
    ("flip", "thumb.jpg: damaged"), ("cut", "thumb.jpg: damaged"), ("twice", "is there twice"),
    ("more", "names other files"), ("tag", "thumb.jpg: damaged"),
    ("document", "image.json: missing or damaged"), ("other", "image.json: missing or damaged"),
    ("untagged", "has no checksum"), ("large", "too large")])
def test_a_damaged_image_is_refused_and_the_others_are_stored(target, change, report):
    store, entries, images = target
    which = images[2] if change == "untagged" else images[0]
    mine = [e for e in entries if which in e[0].name]
    others = [e for e in entries if which not in e[0].name]
    thumb = next(i for i, e in enumerate(mine) if e[0].name.endswith("thumb.jpg"))
    member, data = mine[thumb]
    if change == "flip":
        mine[thumb] = (member, data[:50] + bytes([data[50] ^ 1]) + data[51:])
    elif change == "cut":
        mine[thumb] = (member, data[:-1])
    elif change == "twice":
        mine.append(mine[thumb])
    elif change == "more":
        mine.append((member_of(member.name.replace("thumb", "more")), data))
    elif change == "tag":
        member.pax_headers = {"SCHILY.xattr.user.darkroom.xxh128": "0" * 32}
    elif change == "document":
        mine[0] = (mine[0][0], mine[0][1].replace(b'"width":120', b'"width":121'))
    elif change == "other":  # the files of one image under the id of another
        mine = [(member_of(e[0].name.replace(which, "01KAX200000000000000000000").replace(
            which[:4] + "/" + which[4:6], "01KA/X2")), e[1]) for e in mine]
    elif change == "untagged":
        for m, _ in mine:
            m.pax_headers = {}
    else:
        mine[thumb] = (member, bytes(1 << 20))
        config = ["-o", "limits.body_bytes=64K"]
        archive = pack(mine + others)
        done = subprocess.run(command(*config, "-o", f"server.root={store}", "store", "import"),
                              input=archive, capture_output=True, check=False)
        assert done.returncode == 1 and report in done.stderr.decode(), done.stderr
        assert {p.name for p in store.glob("0*/*/*")} == set(images[1:])
        return
    assert refuse(store, pack(mine + others), report, "2 images stored") == set(
        images) - {which}


def test_an_archive_that_ends_early_gives_whole_images(target):
    store, entries, images = target
    archive = pack(entries)
    ends = [len(archive) - 10240 - 512 * n for n in range(0, 40, 7)]
    for n, end in enumerate([*ends, 100, 0]):
        other = empty_store(store.parent / f"cut{n}")
        assert refuse(other, archive[:end], "ends too early") <= set(images)
    rng = random.Random(9)
    noise = rng.randbytes(5000)
    assert refuse(store, noise, "expected an archive") == set()


def test_sizes_that_lie_are_refused(target):
    store, entries, _ = target
    archive = bytearray(pack(entries[:1], tarfile.USTAR_FORMAT))
    for size in (b"77777777777\0", b"\x80" + b"\0" * 10 + b"\x05", b"-0000000001\0", b"00000x00000\0"):
        changed = bytearray(archive)
        changed[124:136] = size
        changed[148:156] = b" " * 8
        changed[148:156] = b"%06o\0 " % sum(changed[:512])
        assert refuse(store, bytes(changed)) == set()
    linked = pack([(member_of("a", tarfile.SYMTYPE, "b"), b"")], tarfile.USTAR_FORMAT)
    changed = bytearray(linked)
    changed[124:136] = b"00000001000\0"
    changed[148:156] = b" " * 8
    changed[148:156] = b"%06o\0 " % sum(changed[:512])
    assert refuse(store, bytes(changed), "expected an archive") == set()
    for key in ("path", "size", "GNU.sparse.major", "linkpath"):
        member = member_of(entries[0][0].name)
        member.pax_headers = {key: "1"}
        assert refuse(store, pack([(member, b"x")]), "expected an archive") == set()


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer needs more memory than the limit")
def test_memory_is_bounded_whatever_the_archive_says(target, tmp_path):
    """An image that announces 200 MB and sends them is refused, with 64 MB of memory."""
    store, entries, _ = target
    huge = tmp_path / "huge.tar"
    with tarfile.open(huge, "w") as tar, open("/dev/zero", "rb") as zeros:
        for n, (member, data) in enumerate(entries):
            member.size = len(data) if n != 1 else 200 << 20
            tar.addfile(member, io.BytesIO(data) if n != 1 else zeros)
    with huge.open("rb") as f:
        done = subprocess.run(
            ["prlimit", f"--data={64 << 20}", *command(
                "-o", "limits.body_bytes=8M", "-o", f"server.root={store}", "store", "import")],
            stdin=f, stderr=subprocess.PIPE, timeout=slow(60), check=False)
    assert done.returncode == 1 and b"too large" in done.stderr, done.stderr
    assert b"2 images stored" in done.stderr, done.stderr


def test_one_import_at_a_time(target):
    store, entries, images = target
    first = subprocess.Popen(command("-o", f"server.root={store}", "store", "import"),
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert eventually((store / ".import").exists)
    first.stdin.write(pack(entries)[:512])
    second = tool(store, "import", data=pack(entries))
    assert second.returncode == 1 and "another import" in second.stderr
    _, said = first.communicate(pack(entries)[512:], slow(60))
    assert first.returncode == 0, said
    assert {p.name for p in store.glob("0*/*/*")} == set(images)
