"""darkroomd store plan and remake: stored images get the variants that a changed configuration asks
for. DARKROOM_KILLS is the number of kills (6)."""

import json
import os
import random
import subprocess
import threading
import time

import pictures
from darkroom import Daemon, command, eventually, load, run
from store_files import directory_of, files_of, move_to_old_place

KEEP = "server.keep_originals=yes"
SMALLER = "variant.medium.operations=scale 300x300 inside"
MORE = "variant.tiny.operations=scale 40x40 inside"
SOURCES = [pictures.photo_jpeg(w, h, s)
           for w, h, s in ((320, 240, 1), (200, 300, 2), (400, 300, 3), (90, 60, 4))]
KILLS = int(os.environ.get("DARKROOM_KILLS", load(6, 2)))
SUMS = {"medium.jpg", "thumb.jpg", "blurred.jpg", "tiny.jpg", "original.jpg"}


def tool(daemon, *words):
    return run("-o", f"server.root={daemon.store}", "store", *words)


def plan(daemon, *words):
    """Returns {variant: (missing, other settings)}, and the total."""
    done = tool(daemon, "plan", "--json", *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {r["variant"]: (r["missing"], r["other_settings"]) for r in rows[:-1]}, rows[-1]


def remake(daemon, *words):
    done = tool(daemon, "remake", *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def made_by(daemon, source):
    """Returns the files that an upload gives to this daemon."""
    return files_of(daemon.store, daemon.image(source)["id"])


def check_image(daemon, ident, expected):
    """Checks all files of an image, and that its JSON tells the same of them."""
    files = files_of(daemon.store, ident)
    assert files.keys() == expected.keys()
    for name in expected.keys() & SUMS:
        assert files[name] == expected[name], name
    document, other = json.loads(files["image.json"]), json.loads(expected["image.json"])
    for variant, facts in other["variants"].items():
        assert document["variants"][variant] == {
            **facts, "url": facts["url"].replace(other["id"], ident)}
    assert document["record"]["variants"] == other["record"]["variants"]
    assert document["record"]["original"] == other["record"]["original"]


def test_remake_gives_the_files_of_an_upload(start):
    before = start(KEEP)
    images = [before.image(source) for source in SOURCES]
    kept = {i["id"]: json.loads(files_of(before.store, i["id"])["image.json"]) for i in images}
    before.stop()
    daemon = start(KEEP, SMALLER, MORE, store=before.store)
    assert plan(daemon) == (
        {"medium": (0, 4), "thumb": (0, 0), "blurred": (0, 0), "tiny": (4, 0)},
        {"total": "all", "images": 4, "remade": 4, "without_original": 0,
         "original_bytes": sum(map(len, SOURCES)), "pixels": 262200,
         "estimated_cpu_s": plan(daemon)[1]["estimated_cpu_s"]})
    assert plan(daemon, "--missing")[0]["medium"] == (0, 0)
    assert "4 images remade, 0 not" in remake(daemon, "--missing")
    assert plan(daemon)[0] == {"medium": (0, 4), "thumb": (0, 0), "blurred": (0, 0),
                               "tiny": (0, 0)}
    assert "4 images remade, 0 not" in remake(daemon, "medium")
    assert plan(daemon)[1]["remade"] == 0 and "0 images remade" in remake(daemon)
    for source, image in zip(SOURCES, images):
        check_image(daemon, image["id"], made_by(daemon, source))
        record = json.loads(files_of(daemon.store, image["id"])["image.json"])["record"]
        assert record["uploaded"] == kept[image["id"]]["record"]["uploaded"]
    assert tool(daemon, "check").returncode == 0 and not daemon.leftovers()
    assert not list((daemon.store / ".remake").iterdir())
    stats = daemon.get("/stats").json()
    assert stats["images"]["stored"] == 4 and stats["images"]["in_flight"] == 0
    assert stats["memory"]["reserved_body_bytes"] == stats["memory"]["reserved_image_bytes"] == 0
    assert tool(daemon, "remake", "lost").returncode == 2


def test_urls_change_with_the_content_and_old_ones_work(start):
    before = start(KEEP)
    image = before.image(SOURCES[2])
    old = image["variants"]["medium"]["url"]
    answer = before.get(old)
    assert "immutable" in answer["cache-control"]
    before.stop()
    daemon = start(KEEP, SMALLER, store=before.store)
    remake(daemon)
    new = daemon.get(image["url"]).json()["variants"]["medium"]["url"]
    assert new != old and new.split("?")[0] == old.split("?")[0]
    assert "immutable" in daemon.get(new)["cache-control"]
    again = daemon.get(old, headers=[("If-None-Match", answer["etag"])])
    assert again.status == 200 and again.body == daemon.get(new).body != answer.body
    assert again["cache-control"] == "public, max-age=3600, must-revalidate"
    kept = image["variants"]["thumb"]["url"]
    assert daemon.get(image["url"]).json()["variants"]["thumb"]["url"] == kept


def test_images_without_an_original_stay(start):
    before = start("server.keep_originals=no")
    lost = before.image(SOURCES[0])["id"]
    before.stop()
    daemon = start(KEEP, SMALLER, store=before.store)
    files = files_of(daemon.store, lost)
    assert plan(daemon)[1]["without_original"] == 1
    assert "1 without an original" in remake(daemon)
    assert files_of(daemon.store, lost) == files


def test_images_of_a_file_of_ids(start, tmp_path):
    before = start(KEEP)
    images = [before.image(source) for source in SOURCES[:3]]
    before.stop()
    daemon = start(KEEP, MORE, store=before.store)
    ids = tmp_path / "ids"
    ids.write_text(f"{images[0]['id']}\n{images[2]['id']}\n")
    assert plan(daemon, "--ids", str(ids))[1]["images"] == 2
    assert "2 images remade, 0 not" in remake(daemon, "--ids", str(ids))
    has_tiny = ["tiny.jpg" in files_of(daemon.store, image["id"]) for image in images]
    assert has_tiny == [True, False, True]
    ids.write_text(f"{images[1]['id']}\n01ARZ3NDEKTSV4RRFFQ69G5FAV\n")
    for command_name in ("plan", "remake"):
        done = tool(daemon, command_name, "--ids", str(ids))
        assert done.returncode == 1
        assert "01ARZ3NDEKTSV4RRFFQ69G5FAV: does not exist" in done.stderr
    assert "tiny.jpg" in files_of(daemon.store, images[1]["id"])
    done = tool(daemon, "remake", "--ids", "-")
    assert done.returncode == 2 and "expected a file, which can be read twice" in done.stderr


def test_an_image_of_an_earlier_version_is_upgraded(start):
    before = start(KEEP)
    image = before.image(SOURCES[0])
    directory = move_to_old_place(before.store, image["id"])
    document = json.loads((directory / "image.json").read_bytes())
    del document["record"]
    (directory / "image.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    before.stop()
    daemon = start(KEEP, SMALLER, store=before.store)
    assert plan(daemon)[0] == {"medium": (0, 1), "thumb": (0, 1), "blurred": (0, 1)}
    remake(daemon, "medium")
    assert "xxh128" in json.loads((directory / "image.json").read_bytes())["record"]["original"]
    remake(daemon)
    expected = made_by(daemon, SOURCES[0])
    assert {p.name: p.read_bytes() for p in directory.iterdir()
            if p.name != "image.json"} == {k: v for k, v in expected.items() if k in SUMS}
    done = tool(daemon, "check")
    assert done.returncode == 0 and "no checksum" not in done.stderr, done.stdout + done.stderr


def test_a_damaged_file_is_made_again(start):
    daemon = start(KEEP)
    ident = daemon.image(SOURCES[1])["id"]
    files = files_of(daemon.store, ident)
    path = directory_of(daemon.store, ident) / "thumb.jpg"
    path.write_bytes(files["thumb.jpg"][:-1] + b"x")
    assert tool(daemon, "check", "--repair").returncode == 1
    assert plan(daemon)[0]["thumb"] == (1, 0)
    assert "1 image remade" in remake(daemon, "--missing")
    assert files_of(daemon.store, ident) == files
    assert tool(daemon, "check").returncode == 0


def test_a_damaged_original_is_not_used(start):
    before = start(KEEP)
    ident = before.image(SOURCES[1])["id"]
    before.stop()
    path = directory_of(before.store, ident) / "original.jpg"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    daemon = start(KEEP, SMALLER, store=before.store)
    files = files_of(daemon.store, ident)
    done = tool(daemon, "remake")
    assert done.returncode == 1 and f"{ident}: not remade" in done.stderr
    assert daemon.says(f"cannot remake image {ident}: its original or its image.json is damaged")
    assert files_of(daemon.store, ident) == files


def test_an_entry_that_failed_three_times_is_dropped(start):
    before = start(KEEP)
    ident = before.image(SOURCES[0])["id"]
    before.stop()
    (before.store / ".remake" / ident).write_text("3a\n")
    daemon = start(KEEP, SMALLER, store=before.store)
    assert daemon.says(f"cannot remake image {ident}: 3 attempts failed")
    assert eventually(lambda: not list((daemon.store / ".remake").iterdir()))


def test_images_that_were_in_progress_at_a_crash_are_remade_last(start):
    before = start(KEEP)
    images = [before.image(SOURCES[0])["id"] for _ in range(12)]
    before.stop()
    for i, ident in enumerate(images):
        (before.store / ".remake" / ident).write_text(f"{i % 2}a\n")
    daemon = start(KEEP, MORE, store=before.store)
    assert eventually(lambda: not list((daemon.store / ".remake").iterdir()))
    made = [(directory_of(daemon.store, ident) / "tiny.jpg").stat().st_mtime_ns
            for ident in images]
    # The file system's clock has steps of some milliseconds.
    assert max(made[::2]) <= min(made[1::2]), "the others were not first"


class Reader(threading.Thread):
    """Reads a variant in a loop. Each body must be the old or the new one, with its tag."""

    def __init__(self, daemon, image, bodies):
        super().__init__(daemon=True)
        self.daemon_, self.path = daemon, image["variants"]["medium"]["url"].split("?")[0]
        self.bodies, self.tags, self.failures = bodies, {}, []
        self.is_over = threading.Event()
        self.start()

    def run(self):
        try:
            with self.daemon_.client() as c:
                while not self.is_over.is_set():
                    answer = c.request("GET", self.path)
                    assert answer.status == 200 and answer.body in self.bodies, answer
                    assert self.tags.setdefault(answer["etag"], answer.body) == answer.body
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)


def test_readers_see_old_or_new_files(start):
    before = start(KEEP)
    images = [before.image(SOURCES[i % 4]) for i in range(24)]
    old = {i["id"]: before.fetch(i, "medium") for i in images}
    before.stop()
    daemon = start(KEEP, SMALLER, store=before.store)
    new = [made_by(daemon, source)["medium.jpg"] for source in SOURCES]
    readers = [Reader(daemon, image, (old[image["id"]], new[i % 4]))
               for i, image in enumerate(images[:4])]
    assert eventually(lambda: all(r.tags for r in readers))
    remake(daemon)
    assert eventually(lambda: all(len(r.tags) == 2 or r.bodies[0] == r.bodies[1]
                                  for r in readers))
    for reader in readers:
        reader.is_over.set()
    for reader in readers:
        reader.join()
        assert not reader.failures
    assert tool(daemon, "check").returncode == 0


def test_images_that_are_removed_meanwhile_stay_removed(start):
    before = start(KEEP)
    images = [before.image(SOURCES[i % 4])["id"] for i in range(40)]
    before.stop()
    daemon = start(KEEP, SMALLER, store=before.store)
    client = subprocess.Popen(command("-o", f"server.root={daemon.store}", "store", "remake"),
                              stderr=subprocess.PIPE, text=True)
    with daemon.client() as c:
        for ident in images[::2]:
            assert c.request("DELETE", f"/images/{ident}").status == 204
    assert client.wait(60) == 0, client.stderr.read()
    assert daemon.stored() == sorted(images[1::2])
    assert eventually(lambda: not daemon.leftovers())
    assert plan(daemon)[1] == {**plan(daemon)[1], "images": 20, "remade": 0}


def test_a_remake_that_is_killed_continues(tmp_path):
    """Daemon and command are killed at random moments. Each image is whole after each kill, and in
    the end all have the files of an upload."""
    rng = random.Random(5)
    before = Daemon(tmp_path / "store", KEEP)
    images = [before.image(SOURCES[i % 4])["id"] for i in range(40)]
    before.stop()
    settings = (KEEP, SMALLER, MORE, f"server.durability={rng.choice(('process', 'power'))}")
    reference = Daemon(tmp_path / "reference", *settings)
    expected = [made_by(reference, source) for source in SOURCES]
    reference.stop()
    was = [files_of(before.store, ident) for ident in images[:4]]
    for _ in range(KILLS):
        daemon = Daemon(before.store, *settings)
        client = subprocess.Popen(
            command("-o", f"server.root={daemon.store}", "store", "remake"),
            stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.12))
        (client.kill if rng.random() < 0.3 else daemon.kill)()
        if not daemon.stopped:
            daemon.kill()
        client.kill()
        client.wait()
        for i, ident in enumerate(images):
            files = files_of(before.store, ident)
            version = expected[i % 4] if "tiny.jpg" in files else was[i % 4]
            for name in files.keys() & SUMS:
                assert files[name] == version[name]
    daemon = Daemon(before.store, *settings)
    try:
        tool(daemon, "remake")  # entries of the last run may reach three attempts
        remake(daemon)
        for i, ident in enumerate(images):
            check_image(daemon, ident, expected[i % 4])
        assert tool(daemon, "check").returncode == 0 and not daemon.leftovers()
        assert eventually(lambda: not list((daemon.store / ".remake").iterdir()))
    finally:
        daemon.stop()
