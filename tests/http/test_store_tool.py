"""darkroomd store: list, find, count and remove, with and without a daemon that serves the store."""

import itertools
import json
import os
import re
import subprocess
import threading
import time

import pytest

import pictures
from darkroom import BINARY, ROOT, eventually, every_key, run
from store_files import directory_of, files_of, move_to_old_place, spool
from test_tokens import File

SMALL = pictures.photo_jpeg(120, 90, 5)


def tool(store, *words):
    return run("-o", f"server.root={store}", "store", *words)


def lines(store, *words):
    """Runs a command that must succeed. Returns its lines."""
    done = tool(store, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def ids(store, *words):
    return [json.loads(line)["id"] for line in lines(store, *words, "--json")]


@pytest.fixture
def five(start):
    """A daemon with five images, of which an earlier version has stored the second."""
    daemon = start()
    images = [daemon.image(SMALL)["id"] for _ in range(5)]
    move_to_old_place(daemon.store, images[1])
    return daemon, images


def test_a_list_is_in_the_order_of_time(five):
    daemon, images = five
    store = daemon.store
    images.sort()
    assert ids(store, "list") == images
    assert ids(store, "list", "--newest") == images[::-1]
    assert ids(store, "list", "--limit", "2") == images[:2]
    assert ids(store, "list", "--after", images[1], "--limit=2") == images[2:4]
    assert ids(store, "list", "--newest", "--after", images[1]) == images[:1]
    assert ids(store, "list", "--since", "1h") == images
    assert ids(store, "list", "--since", "2026-01-01", "--before", "2026-01-02T10:00:00Z") == []
    assert ids(store, "list", "--before", "1h") == []
    table = lines(store, "list")
    assert [line.split()[0] for line in table] == ["ID", *images]
    stored = sum((directory_of(store, images[0]) / f"{v}.jpg").stat().st_size
                 for v in (*pictures.VARIANTS, "original"))
    assert table[1].split()[2:] == ["120x90", str(len(SMALL)), str(stored), "-"]


def test_find_tells_which_token_uploaded(start, tmp_path):
    file = File(tmp_path / "access")
    daemon = start(f"access.tokens_file={file.path}")
    of = {name: daemon.upload(SMALL, headers=[file.bearer(name)]).json()["images"][0]["id"]
          for name in ("up", "all")}
    assert ids(daemon.store, "find", "--token", "up") == [of["up"]]
    found = json.loads(lines(daemon.store, "find", of["all"], "--json")[0])
    assert found["record"]["upload"]["token"] == "all"
    assert tool(daemon.store, "find").returncode == 2
    absent = tool(daemon.store, "find", "01K00000000000000000000000")
    assert absent.returncode == 1 and "does not exist" in absent.stderr


def test_count_sums_days_and_variants(five):
    daemon, images = five
    rows = [json.loads(line) for line in lines(daemon.store, "count", "--json")]
    documents = [daemon.get(f"/images/{i}").json() for i in images]
    size = {v: sum(d["variants"][v]["bytes"] for d in documents) for v in pictures.VARIANTS}
    size["original"] = len(images) * len(SMALL)
    assert {r["variant"]: r["bytes"] for r in rows if "variant" in r} == size
    total = {"images": 5, "upload_bytes": 5 * len(SMALL), "bytes": sum(size.values())}
    assert rows[-1] == {"total": "all", **total}
    days = [r for r in rows if "day" in r]
    assert sum(r["images"] for r in days) == 5
    assert lines(daemon.store, "count")[-1].split() == ["all", *map(str, total.values())]


def test_remove_works_beside_the_daemon(five, tmp_path):
    daemon, images = five
    store = daemon.store
    assert lines(store, "remove", "--dry-run", *images[:2]) == images[:2]
    assert lines(store, "remove", "--before", "1h") == []
    assert sorted(lines(store, "remove", *images[:2])) == images[:2]
    listed = tmp_path / "ids"
    listed.write_text(f"# gone already, and another\n{images[0]}{' ' * 9000}{images[4]}\n{images[2]}\n")
    done = tool(store, "remove", "--ids", listed)
    assert done.returncode == 0 and done.stdout.split() == [images[2]]
    assert "1 image removed, 1 did not exist" in done.stderr
    assert [daemon.get(f"/images/{i}").status for i in images] == [404] * 3 + [200] * 2
    assert daemon.stored() == sorted(images[3:]) and not daemon.leftovers()
    assert lines(store, "remove", "--since", "1h", "--limit", "1") == [min(images[3:])]
    for words in ([], ["--ids", "/no/such"], ["no-id"], ["--before", "soon"], ["--since"]):
        assert tool(store, "remove", *words).returncode in (1, 2)
    assert len(daemon.stored()) == 1


def test_ids_are_within_the_bounds(five, tmp_path):
    """So a list of ids removes nothing that the other options leave out."""
    daemon, images = five
    store, listed = daemon.store, tmp_path / "ids"
    images.sort()
    listed.write_text("\n".join(images[:3]))
    assert lines(store, "remove", "--before", "1h", "--ids", listed) == []
    assert lines(store, "remove", "--before", "1h", *images) == []
    assert ids(store, "list", "--ids", listed, "--after", images[0]) == images[1:3]
    assert ids(store, "find", "--since", "1h", "--limit", "2", *images) == images[:2]
    assert ids(store, "find", "--ids", listed, "--limit", "4", *images[3:]) == images[:4]
    assert ids(store, "list") == images


def test_a_command_refuses_the_options_of_others(five):
    daemon, images = five
    stray = directory_of(daemon.store, images[0]) / "notes.txt"
    stray.write_text("mine")
    for words in (["check", "--repair", "--dry-run"], ["check", "--token", "up"],
                  ["export", "--json"], ["import", "--limit", "1"], ["plan", "--token", "up"]):
        done = tool(daemon.store, *words)
        assert done.returncode == 2 and f"{words[0]} does not have --" in done.stderr, done.stderr
    assert stray.exists()


def test_remove_keeps_to_its_rate(five):
    daemon, images = five
    begin = time.monotonic()
    lines(daemon.store, "remove", "--rate", "4", *images)
    assert time.monotonic() - begin >= 5 / 4


def test_remove_ends_an_acknowledged_upload(start, tmp_path):
    ident = "01K00000000000000000000000"
    daemon = start()
    daemon.stop()
    spool(daemon.store, ident, SMALL)
    assert lines(daemon.store, "remove", ident) == [ident]
    again = start(store=daemon.store)
    assert again.get(f"/images/{ident}").status == 404


def test_empty_directories_go_with_the_last_image(start):
    daemon = start()
    ident = daemon.image(SMALL)["id"]
    old = "01J0000000" + ident[10:]
    directory_of(daemon.store, old).parent.mkdir(parents=True)
    directory_of(daemon.store, ident).rename(directory_of(daemon.store, old))
    assert daemon.get(f"/images/{old}").status == 200
    assert lines(daemon.store, "remove", "--before", "2026-01-01") == [old]
    assert not (daemon.store / "01J0").exists() and (daemon.store / ident[:4]).exists()


def test_uploads_and_removals_do_not_disturb_each_other(start):
    daemon = start()
    made, gone, failures = set(), set(), []
    is_over = threading.Event()

    def upload():
        try:
            while not is_over.wait(0.02):  # a disk that is always flushed takes minutes for one more
                made.add(daemon.image(SMALL)["id"])
        except AssertionError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=upload) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        seen = len(gone) + 5
        assert eventually(lambda count=seen: len(made) >= count)
        gone.update(lines(daemon.store, "remove", "--since", "1h", "--limit", "5"))
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(gone) == 25 and gone <= made
    assert ids(daemon.store, "list") == sorted(made - gone) == daemon.stored()


def test_what_is_not_a_store_is_refused(tmp_path):
    done = tool(tmp_path, "list")
    assert done.returncode == 1 and "is not a store" in done.stderr
    assert not list(tmp_path.iterdir())
    assert tool(tmp_path, "lost").returncode == 2
    assert run("store").returncode == 2


def test_a_copy_without_empty_directories_is_a_store(five):
    daemon, images = five
    daemon.stop()
    for name in (".incoming", ".trash", ".quarantine"):
        (daemon.store / name).rmdir()
    assert ids(daemon.store, "list") == sorted(images)
    assert lines(daemon.store, "remove", images[0]) == [images[0]]
    assert lines(daemon.store, "check") == [] and ids(daemon.store, "list") == sorted(images[1:])


def test_a_damaged_document_is_reported(five):
    daemon, images = five
    path = directory_of(daemon.store, images[0]) / "image.json"
    path.write_text("{}")
    done = tool(daemon.store, "list", "--json")
    assert done.returncode == 1 and f"{images[0]}: image.json is damaged" in done.stderr
    assert len(done.stdout.splitlines()) == 4


# ---- recipes of darkroom-store(7); install/test_commands.py runs all of them ----

def recipes():
    """Returns {title: script} of the manual's recipes."""
    page = (ROOT / "stages/store/darkroom-store.7").read_text()
    page = page.split(".Sh RECIPES")[1].split(".Sh ")[0].replace("\\e", "\\")
    return {part.split("\n", 1)[0]: "\n".join(re.findall(r"^\.Bd.*\n((?:.*\n)*?)\.Ed", part, re.M))
            for part in page.split(".Ss ")[1:]}


@pytest.fixture
def recipe(start, tmp_path):
    """recipe(title, **variables) runs a recipe of the manual as it stands. recipe.daemon serves the
    store."""
    file = File(tmp_path / "access")
    daemon = start(f"access.tokens_file={file.path}", "server.durability=process")
    config = tmp_path / "site.ini"

    def run_recipe(title, store=daemon.store, conf=config, port=daemon.port, may_find=False,
                   **variables):
        if conf == config:
            config.write_text(every_key().replace("root = /var/lib/darkroom",
                                                         f"root = {store}"))
        script = recipes()[title].replace("/etc/darkroom/darkroomd.ini", str(conf)).replace(
            "/var/lib/darkroom", str(store)).replace("127.0.0.1:8080", f"{daemon.host}:{port}")
        if part := variables.pop("part", None):
            script = script.split("\n\n")[part - 1]
        result = subprocess.run(["sh", "-ec", script], capture_output=True, text=True,
                                cwd=tmp_path, timeout=60, check=False,
                                env={**os.environ, **variables,
                                     "PATH": f"{BINARY.parent}:{os.environ['PATH']}"})
        expected = 1 if may_find and result.stdout else 0  # of a check, if it finds something
        assert result.returncode == expected, result.stderr
        return result.stdout

    run_recipe.daemon, run_recipe.file = daemon, file
    run_recipe.upload = lambda name: daemon.upload(
        SMALL, headers=[file.bearer(name)]).json()["images"][0]["id"]
    return run_recipe


def test_recipe_move_to_a_new_machine(recipe, start, tmp_path):
    new, archive = start(store=tmp_path / "new"), str(tmp_path / "archive.tar")
    images = []
    for _ in range(2):  # while the old daemon serves, and once more
        images.append(recipe.upload("up"))
        recipe("Move to a new machine", part=1, archive=archive)
        recipe("Move to a new machine", part=2, store=new.store, archive=archive)
    assert new.stored() == sorted(images) == recipe.daemon.stored()
    for ident in images:
        assert files_of(new.store, ident) == files_of(recipe.daemon.store, ident)
        assert new.get(f"/images/{ident}/thumb.jpg").status == 200


def test_recipe_i_changed_a_size(start, recipe, tmp_path):
    store = tmp_path / "sizes"
    config = tmp_path / "changed.ini"
    text = every_key().replace("root = /var/lib/darkroom", f"root = {store}").replace(
        "keep_originals = no", "keep_originals = yes")
    config.write_text(text)
    daemon = start(config=config, store=store)
    image = daemon.image(SMALL)
    config.write_text(text.replace("scale 160x160 inside", "scale 60x60 inside"))
    said = recipe("I changed a size", store=store, conf=config).splitlines()
    assert [line.split()[:3] for line in said if line.startswith("thumb")] == [["thumb", "0", "1"]]
    thumb = daemon.get(image["url"]).json()["variants"]["thumb"]
    assert (thumb["width"], thumb["height"]) == (60, 45)
    assert daemon.get(image["variants"]["thumb"]["url"]).body == daemon.get(thumb["url"]).body


class Writer(threading.Thread):
    """Uploads with and without waiting, and removes every third image that it has made."""

    def __init__(self, recipe, index):
        super().__init__(daemon=True)
        self.daemon, self.index, self.bearer = recipe.daemon, index, recipe.file.bearer("all")
        self.made, self.removed, self.failures = [], set(), []
        self.may_remove, self.is_over = threading.Event(), threading.Event()
        self.start()

    def run(self):
        try:
            with self.daemon.client() as c:
                for n in itertools.count(self.index):
                    headers = [self.bearer, ("Content-Type", "image/jpeg"),
                               *([("Prefer", "respond-async")] if n % 2 else [])]
                    answer = c.request("POST", "/images", SMALL, headers)
                    assert answer.status in (201, 202), answer
                    ident = answer.json()["images"][0]["id"]
                    if n % 3 == 0 and self.may_remove.is_set():
                        self.removed.add(ident)
                        assert c.request("DELETE", f"/images/{ident}",
                                         headers=[self.bearer]).status == 204
                    else:
                        self.made.append(ident)
                    if self.is_over.is_set():
                        return
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(failure)


def test_recipe_back_up_under_load_and_restore(recipe, start, tmp_path):
    """Every image that was acknowledged before the backup began is complete in the copy."""
    writers = [Writer(recipe, i) for i in range(4)]
    assert eventually(lambda: all(len(w.made) >= 20 for w in writers))
    for w in writers:
        w.may_remove.set()
    before = [ident for w in writers for ident in list(w.made)]
    recipe("Back up", backup=str(tmp_path / "backup.tar"))
    for w in writers:
        w.is_over.set()
    for w in writers:
        w.join()
        assert not w.failures
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o750)
    removed = set().union(*(w.removed for w in writers))
    # the check names parts of images that were removed meanwhile, and nothing else
    said = recipe("Restore yesterday", part=1, store=copy, backup=str(tmp_path / "backup.tar"),
                  may_find=True)
    assert {line.split("/")[0] for line in said.splitlines()} <= removed, said
    other = start("server.durability=process", store=copy)
    assert eventually(lambda: not list((copy / ".spool").iterdir()))
    for ident in before:
        image = other.get(f"/images/{ident}").json()
        for name, variant in image["variants"].items():
            assert len(other.fetch(image, name)) == variant["bytes"]
    assert {i for i in before} <= set(ids(copy, "list"))


def test_recipe_restore_checks_all_images(recipe, tmp_path):
    """Also if a check was interrupted before the backup."""
    images = sorted(recipe.upload("all") for _ in range(2))
    store, copy = recipe.daemon.store, tmp_path / "copy"
    (store / ".check").write_text(images[0])
    (directory_of(store, images[0]) / "thumb.jpg").write_bytes(b"cut")
    recipe("Back up", backup=str(tmp_path / "backup.tar"))
    copy.mkdir(mode=0o750)
    said = recipe("Restore yesterday", part=1, store=copy, backup=str(tmp_path / "backup.tar"),
                  may_find=True)
    assert said == f"{images[0]}/thumb.jpg: truncated\n"


def test_recipe_restore_one_image(recipe, tmp_path):
    gone, kept = recipe.upload("all"), recipe.upload("all")
    files = files_of(recipe.daemon.store, gone)
    backup = str(tmp_path / "backup.tar")
    recipe("Back up", backup=backup)
    with recipe.daemon.client() as c:
        assert c.request("DELETE", f"/images/{gone}",
                         headers=[recipe.file.bearer("all")]).status == 204
    recipe("Restore yesterday", part=2, backup=backup, id=gone)
    assert files_of(recipe.daemon.store, gone) == files
    assert recipe.daemon.get(f"/images/{gone}").status == 200
    assert recipe.daemon.stored() == sorted([gone, kept])
    assert tool(recipe.daemon.store, "check").returncode == 0


@pytest.mark.parametrize("command", ["list", "find", "count", "remove", "check", "plan", "remake",
                                     "export", "import"])
def test_each_command_has_help_with_its_options(command):
    """It needs neither a configuration nor a store."""
    done = run("store", command, "--help")
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(f"usage: darkroomd [-c FILE] store {command} [OPTION...]")
    manual = (ROOT / "stages/store/darkroom-store.7").read_text()
    for option in re.findall(r"--([a-z-]+)", done.stdout):
        assert f"Fl -{option}" in manual


def test_help_names_all_commands():
    done = run("store", "--help")
    assert "Commands: list find count remove check plan remake export import" in done.stdout
