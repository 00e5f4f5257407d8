"""The commands of the manual and of the READMEs do what the text says. They are taken from what a
reader sees: the man pages as mandoc renders them, and the blocks of the READMEs. They run in the
order of TABLE, in machine.py. TABLE has all blocks; one that is not there fails."""

import csv
import hashlib
import html
import json
import re
import shlex
import shutil
import subprocess

import pytest

from browser import tab
from machine import CONFIG, HOME, ROOT, STORE, TREE, Machine

USER = "nobody"
PAGES = ["loadgen/dataset/darkroom-dataset.1", "stages/http/darkroom-http.7",
         "src/daemon/darkroomd.8", "src/sched/darkroom-scheduling.7",
         "stages/storage/darkroom-scale.7", "stages/store/darkroom-store.7",
         "stages/jail/decode/darkroom-decode.8",
         "loadgen/load/darkroom-load.1"]
KEYS = "build/plain/man/darkroomd.ini.5"  # is made
READMES = ["README.md", "conf/CHANGES.md", "data/README.md", "data/results/README.md",
           "loadgen/README.md", "scripts/experiments/README.md", "scripts/traces/README.md",
           "src/README.md", "src/sched/README.md", "stages/README.md", "tests/README.md"]


# ---- the text ----

def manual(pages):
    """Returns {page: blocks}."""
    found = {}
    for page in pages:
        text = (ROOT / page).read_text().replace("@SYSCONFDIR@", "/etc")
        done = subprocess.run(["mandoc", "-T", "html"], input=text, capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found[page] = rendered(done.stdout)
    return found


def rendered(page):
    """A browser joins the lines of a command that stands alone."""
    found = re.findall(r'<div class="Bd[^>]*>\s*(?:<pre>(.*?)</pre>|<code class="Li">(.*?)</code>)',
                       page, re.S)
    assert len(found) == page.count("<pre>") + page.count('Bd-indent"><code')
    return [html.unescape(re.sub("<[^>]*>", "", block or " ".join(line.split()))).strip("\n")
            for block, line in found]


def fenced(path):
    return [block.strip("\n") for block in
            re.findall(r"^```\w*\n(.*?)^```$", (ROOT / path).read_text(), re.M | re.S)]


def commands(block):
    """Returns [(prompt, command, what it prints)]. A block without prompts is one command; a "#" is
    a prompt if no line is empty."""
    if not re.match(r"[#$] ", block) or "\n\n" in block:
        return [("", block, "")]
    found = []
    for part in re.split(r"^(?=[#$] )", block, flags=re.M)[1:]:
        command, printed = re.match(r"[#$] ((?:.*\\\n)*.*)\n?((?s:.*))", part).groups()
        found.append((part[0], command, printed))
    return found


def pattern(text):
    """Returns an expression for a text in which dots and a cut id stand for something."""
    words = re.sub(r"\s", "", text).replace("…", "...")
    return re.escape(words).replace(r"01K\.\.\.", "01[0-9A-Z]{24}").replace(r"\.\.\.", ".*?")


# ---- what is done with a block ----

class Text:
    """No command."""

    def __init__(self, what):
        self.what = what

    def __call__(self, machine, block):
        assert not re.search(r"^[#$] ", block, re.M)


class Elsewhere:
    """It needs what this machine lacks. Another test runs it: there it has this mark."""

    def __init__(self, needs, test, mark):
        self.needs, self.test, self.mark = needs, test, mark

    def __call__(self, machine, block):
        assert self.mark in (ROOT / "tests" / self.test).read_text()


def by_systemd(section, index, needs="systemd"):
    return Elsewhere(needs, "install/test_manual.py", f'blocks("{section}")[{index}]')


class Run:
    """Runs the commands as they stand, with these variables. before(machine) prepares what the text
    presupposes, after(machine, printed) looks for what the text promises. edits: what stands for a
    long time is shorter here."""

    def __init__(self, before=None, after=None, status=0, edits=(), cwd=HOME, **options):
        self.before, self.after, self.status = before, after, status
        self.edits, self.cwd, self.options = edits, cwd, options

    def __call__(self, machine, block):
        variables = self.before(machine) or {} if self.before else {}
        for old, new in self.edits:
            assert old in block
            block = block.replace(old, new)
        printed = ""
        for prompt, command, text in commands(block):
            user = USER if prompt == "$" and self.cwd == HOME else "root"
            said = machine.run(command, self.status, user=user, cwd=self.cwd, **self.options,
                               **variables)
            assert re.fullmatch(pattern(text) if text else ".*",
                                re.sub(r"\s", "", said[self.status != 0])), (command, said)
            printed += said[0]
        if self.after:
            self.after(machine, printed)


class Start(Run):
    """The first command is a daemon, which goes on."""

    def __call__(self, machine, block):
        machine.stop()
        (prompt, command, _), *others = commands(block)
        machine.start(f"exec {command}", user=USER if prompt == "$" else "root", cwd=self.cwd)
        for prompt, command, _ in others:
            super().__call__(machine, f"{prompt} {command}")


def upload(machine, *words):
    """Returns the JSON of an image."""
    said = machine.run(f"curl -sS -f {shlex.join(words)} -F file=@lake.jpg "
                       "http://127.0.0.1:8080/images")[0]
    return json.loads(said)["images"][0]


def status(machine, path):
    return machine.run(f"curl -sS -o /dev/null -w '%{{http_code}}' http://127.0.0.1:8080{path}")[0]


def images(printed):
    """Returns the ids in answers to uploads."""
    return re.findall(r'"id":"([0-9A-Z]{26})"', printed)


def stored(machine):
    found = machine.run(f"cd {STORE}; find . -mindepth 3 -maxdepth 3 -path './[0-9]*'")[0]
    return sorted(line.rsplit("/", 1)[1] for line in found.split())


def is_valid(machine, block):
    machine.write("/mnt/some.ini", block)
    assert "the configuration is valid" in "".join(machine.run("darkroomd -t -c /mnt/some.ini"))


def names_paths(machine, block):
    for line in block.splitlines():
        for path in re.findall(r"^\w+/|\b[\w/]+/README\.md", line):
            assert (ROOT / path).exists(), path


# ---- darkroom-dataset(1), README.md ----

def has_pictures(machine, _):
    assert len(machine.run("ls photos/*.jpg")[0].split()) == 9



def wrong_configuration(machine):
    machine.write(f"{TREE}/build/store/site.ini", "[server]\n\n\nlisten = 8080\n\n\n\n\n[limitz]\n")


# ---- darkroom-http(7) ----

def with_images(machine):
    """The daemon of CONFIG, as the service runs it."""
    text = (ROOT / "conf/darkroomd.ini").read_text()
    assert "[server]\n" in text
    text = text.replace("[server]\n", f"[server]\nuser = {USER}\nkeep_originals = yes\n")
    machine.write(CONFIG, text)
    machine.serve()


def seven_images(machine, printed):
    assert len(set(images(printed))) == 7 and "HTTP/1.1 202" in printed


class JavaScript:
    """node runs it, below what the page would have."""

    def __init__(self, before, after):
        self.before, self.after = before, after

    def __call__(self, machine, block):
        page = """
            const real = fetch;
            globalThis.fetch = (url, ...more) => real("http://127.0.0.1:8080" + url, ...more);
            const picture = new File([require("fs").readFileSync("lake.jpg")], "lake.jpg",
                                     {type: "image/jpeg"});
            const input = {files: [picture]};
            """
        script = f"{page}(async () => {{ {self.before}\n{block}\n{self.after} }})()"
        printed = machine.run("node -", given=script, user=USER)[0]
        assert re.fullmatch("lake.jpg 960 3\n", printed), printed


class InBrowser:
    """Chromium runs it, in an empty page."""

    def __call__(self, machine, block):
        with tab(machine.profile) as page:
            page.js(f"{block}; window.toJpeg = toJpeg")
            kind = page.js("""(async () => {
                const canvas = new OffscreenCanvas(30, 20);
                canvas.getContext("2d").fillRect(0, 0, 5, 5);
                const file = await canvas.convertToBlob({type: "image/png"});
                const jpeg = await toJpeg(file), made = await createImageBitmap(jpeg);
                return `${jpeg.type} ${made.width}x${made.height}`; })()""")
        assert kind == "image/jpeg 30x20"


def repeated(machine, printed):
    assert len(images(printed)) == 1


def expires(machine, printed):
    ident, = images(printed)
    assert "expires" in machine.run(f"curl -sS http://127.0.0.1:8080/images/{ident}")[0]


def one_image(machine):
    image = upload(machine)
    head = machine.run(f"curl -sSI http://127.0.0.1:8080{image['variants']['medium']['url']}")[0]
    machine.ident = image["id"]
    return {"id": image["id"], "etag": re.search(r"(?i)^etag: (.*?)\r?$", head, re.M)[1]}


def downloaded(machine, printed):
    assert "HTTP/1.1 304" in printed
    assert machine.run("wc -c <start")[0] == "1024\n"
    assert machine.run("head -c 3 medium.jpg | od -An -tx1")[0].split() == ["ff", "d8", "ff"]
    assert status(machine, f"/images/{machine.ident}") == "404"


def a_public_list(machine):
    machine.serve("-o server.public_list=yes")


class Permission:
    """The function signs as the daemon does."""

    def __call__(self, machine, block):
        token, _ = machine.run("darkroomd token app sign")[0].splitlines()
        for _ in range(20):  # until both are in one second
            printed = machine.run("darkroomd token sign app 600 5 20M",
                                  given=f"{token}\n")[0].strip()
            script = f"{block}\nprint(permission('app', {token!r}, 600, 5, 20 << 20))"
            if machine.run("/usr/bin/python3 -", given=script)[0].strip() == printed:
                return
        raise AssertionError(printed)


# ---- darkroomd(8) ----

def tokens_file(machine):
    machine.run("install -m 600 -o nobody /dev/null /etc/darkroom/tokens")


def camera_uploads(machine, printed):
    token = re.search(r"^darkroom_\S+", printed, re.M)[0]
    line = machine.read("/etc/darkroom/tokens")
    assert hashlib.sha256(token.encode()).hexdigest() in line and line.count("\n") == 1, line
    machine.serve("-o access.tokens_file=/etc/darkroom/tokens")
    assert upload(machine, "-H", f"Authorization: Bearer {token}")
    assert "401" in machine.run("curl -sS -F file=@lake.jpg http://127.0.0.1:8080/images")[0]
    machine.serve()


def app_token(machine):
    machine.run("darkroomd token app sign | head -n 1 >app.token")


def is_permission(machine, printed):
    assert re.fullmatch(r"/images\?token=app&expires=\d+&images=5&bytes=20971520"
                        r"&signature=[0-9a-f]{64}\n", printed), printed


def has_quotas(machine, printed):
    assert printed.rstrip().endswith("upload images=10000 bytes=21474836480 uploads=500"), printed


# ---- darkroom-scheduling(7) ----

def site(machine):
    machine.run(f"ln -sf {CONFIG} site.ini")
    machine.serve()


def policy(machine):
    return machine.run(f"darkroomd -c {CONFIG} ctl policy")[0]


def is_drain_again(machine, _):
    assert "drain" in policy(machine) and "mg1" not in policy(machine)


def with_groups(machine, block):
    machine.run(f"cat >>{CONFIG}", given=f"\n{block}\n")
    machine.run(f"darkroomd -c {CONFIG} ctl reload")
    assert "mg1" in machine.run(f"darkroomd -c {CONFIG} ctl dump")[0]


def has_cohort(machine, _):
    dump = machine.run(f"darkroomd -c {CONFIG} ctl dump")[0]
    assert re.search(r"(?s)\[group\.pixels\][^\[]*policy = cohort", dump)
    assert re.search(r"(?s)\[group\.pixels\][^\[]*stages = scale blur\n", dump)
    with_images(machine)


def shows_replicas(machine, printed):
    assert "Cores: 64 " in printed and "Replica 1" in printed, printed


def some_photos(machine):
    machine.run("mkdir /srv/photos; cp lake.jpg /srv/photos")


def is_partitioned(machine, _):
    text = machine.read(CONFIG)
    assert "mode = partition" in text and "parts = 2" in text, text
    with_images(machine)


def under_load(machine):
    machine.load = machine.popen(
        "exec darkroom-load -q --rate 10 -d 3 http://127.0.0.1:8080/ lake.jpg")


def is_drawn(machine, printed):
    machine.load.communicate(timeout=60)
    assert "jpeg_decode" in printed and "<svg" in machine.read(f"{HOME}/now.svg")
    assert json.loads(machine.read(f"{HOME}/now.json"))


# ---- darkroom-store(7) ----

def by(machine, token):
    """Two images of a token, and one of another."""
    machine.write("/etc/darkroom/tokens", "")
    machine.run("chown nobody: /etc/darkroom/tokens; chmod 600 /etc/darkroom/tokens")
    tokens = {}
    for name in (token, "other"):
        tokens[name], line = machine.run(f"darkroomd token {name} upload")[0].splitlines()
        machine.run(f"echo '{line}' >>/etc/darkroom/tokens")
    machine.serve("-o access.tokens_file=/etc/darkroom/tokens")
    made = [upload(machine, "-H", f"Authorization: Bearer {tokens[name]}")["id"]
            for name in (token, "other", token)]
    machine.serve()
    machine.expected = sorted(set(stored(machine)) - {made[0], made[2]})
    return {"id": made[0], "name": token}


def was_phone(_, printed):
    assert printed.split()[-1] == "phone", printed


def two_in_a_file(machine):
    made = [upload(machine)["id"] for _ in range(3)]
    machine.run(f"printf '%s\\n' {made[0]} {made[2]} >user.txt")
    machine.expected = sorted(set(stored(machine)) - {made[0], made[2]})


def are_removed(machine, _):
    assert stored(machine) == machine.expected


def smaller_thumbs(machine):
    text = machine.read(CONFIG)
    assert "scale 160x160 inside" in text
    machine.write(CONFIG, text.replace("scale 160x160 inside", "scale 60x60 inside"))


def are_small(machine, printed):
    ids = stored(machine)
    assert re.search(rf"^thumb +0 +{len(ids)}\b", printed, re.M), printed
    thumb = json.loads(machine.run(f"curl -sS http://127.0.0.1:8080/images/{ids[0]}")[0])[
        "variants"]["thumb"]
    assert (thumb["width"], thumb["height"]) == (60, 40)


def says_nothing(_, printed):
    assert not printed


def for_a_backup(machine):
    machine.expected = stored(machine)
    return {"backup": "/srv/backup.tar"}


def an_empty_store(machine):
    """As the text says before."""
    machine.stop()
    machine.run(f"mv {STORE} {STORE}.damaged; install -d -o nobody -g nogroup -m 700 {STORE}")
    return {"backup": "/srv/backup.tar"}


def is_restored(machine, printed):
    assert not printed and stored(machine) == machine.expected
    machine.serve()
    for ident in machine.expected:
        assert status(machine, f"/images/{ident}/medium.jpg") == "200"


def one_removed(machine):
    ident = machine.ident = machine.expected[0]
    machine.run(f"curl -sS -f -X DELETE http://127.0.0.1:8080/images/{ident}")
    assert status(machine, f"/images/{ident}") == "404"
    return {"backup": "/srv/backup.tar", "id": ident}


def comes_back(machine, _):
    assert status(machine, f"/images/{machine.ident}/medium.jpg") == "200"
    assert stored(machine) == machine.expected


def an_archive(_):
    return {"archive": "/srv/archive.tar"}


def a_new_machine(machine):
    machine.stop()
    machine.run(f"mv {STORE} {STORE}.old; install -d -o nobody -g nogroup -m 700 {STORE}")
    machine.serve()
    return {"archive": "/srv/archive.tar"}


def is_moved(machine, _):
    comes_back(machine, _)
    machine.run(f"diff -r {STORE}.old/{machine.ident[:4]} {STORE}/{machine.ident[:4]}")


def pictures(machine):
    machine.run("mkdir -p /srv/pictures/more; cp lake.jpg /srv/pictures/a.jpg; "
                "cp fog.jpg /srv/pictures/more/b.JPEG")
    machine.expected = stored(machine)
    return {"pictures": "/srv/pictures", "map": "/srv/map.csv"}


def are_mapped(machine, _):
    rows = list(csv.DictReader(machine.read("/srv/map.csv").splitlines()))
    assert {row["file"]: row["status"] for row in rows} == {
        "/srv/pictures/a.jpg": "201", "/srv/pictures/more/b.JPEG": "201"}
    assert stored(machine) == sorted([*machine.expected, *(row["id"] for row in rows)])


def an_old_one(machine):
    machine.expected = stored(machine)
    old, new = machine.expected[0], "01J0000000" + machine.expected[0][10:]
    machine.expected.remove(old)
    machine.run(f"cd {STORE}; install -d -o nobody -g nogroup 01J0/00; "
                f"mv {old[:4]}/{old[4:6]}/{old} 01J0/00/{new}; "
                f"sed -i s/{old}/{new}/g 01J0/00/{new}/image.json")


# ---- darkroom-load(1) ----

def four_reports(_, printed):
    assert len(re.findall(r"^errors +none$", printed, re.M)) == 4, printed
    assert re.search(r"^variants +27 right, 0 wrong$", printed, re.M), printed


TABLE = {
    "loadgen/dataset/darkroom-dataset.1": [
        ("darkroom-dataset", Run(after=has_pictures, edits=[("--scale 0.05", "--scale 0.002")])),
    ],
    "README.md": [
        ("scripts/run", Start(cwd=TREE)),
        ("$ curl -F", Run(cwd=TREE)),
        ("[server]", is_valid),
        ("$ darkroomd -t", Run(wrong_configuration, status=78, cwd=f"{TREE}/build/store")),
        ("accept_read ->", Text("a drawing")),
        ("make check", Elsewhere("minutes", "../scripts/test", "make -j")),
        ("src/ ", names_paths),
    ],
    "stages/http/darkroom-http.7": [
        ("$ curl -F file", Run(with_images)),
        ('"medium":{', Text("a part of an answer")),
        ("<picture>", Text("a part of a page")),
        ("# several files", Run(after=seven_images)),
        ("const form", JavaScript("", "console.log(images[0].filename, images[0].width, "
                                  "Object.keys(images[0].variants).length)")),
        ("async function toJpeg", InBrowser()),
        ("async function stored", JavaScript("", """
            const form = new FormData();
            form.append("file", picture);
            const sent = await fetch("/images", {method: "POST", body: form,
                                                 headers: {Prefer: "respond-async"}});
            if (sent.status != 202) throw new Error(sent.status);
            const image = await stored((await sent.json()).images[0].url);
            console.log(image.filename, image.width, Object.keys(image.variants).length)""")),
        ("key=$(cat", Run(after=repeated)),
        ("curl -H 'X-Expires", Run(after=expires)),
        ("curl http", Run(one_image, downloaded)),
        ("$ curl 'http", Run(a_public_list)),
        ("/images?token", Text("a path")),
        ("import hashlib", Permission()),
        ("function permission", Text("PHP, which nothing else here needs")),
        ('{"type"', Text("an answer")),
    ],
    "src/daemon/darkroomd.8": [
        ("# darkroomd token camera", Run(tokens_file, camera_uploads, tty=True)),
        ("# darkroomd token sign", Run(app_token, is_permission)),
        ("# darkroomd token app", Run(after=has_quotas)),
        ("# groupadd", by_systemd("Tokens", -1)),
        ("# systemctl stop", by_systemd("Moving the store", 0)),
        ("# systemctl stop", by_systemd("Moving the store", 1)),
        ("# systemctl edit", Elsewhere("systemd", "install/test_systemd.py", "RequiresMountsFor=")),
        ("/var/log/darkroom/access.log {", by_systemd("Log", 0)),
        ("# make install", Elsewhere("systemd", "install/test_install.py", '"PREFIX=/usr"')),
        ("# cp /etc", Elsewhere("systemd", "install/test_install.py",
                               '.replace("@", "@one")')),
        ("# apt install", by_systemd("Package", 0, "apt and systemd")),
        ("# systemctl status", by_systemd("Package", 1)),
        ("# apt install", by_systemd("Package", 2, "apt and systemd")),
        ("# systemctl stop", by_systemd("Package", 3, "apt and systemd")),
        ("# apt remove", by_systemd("Package", 4, "apt and systemd")),
        ("# apt install haproxy", by_systemd("Proxy", 0, "apt and systemd")),
        ("$ podman", Elsewhere("a registry", "install/test_image.py", "--cap-drop=all")),
        ("$ kubectl", Elsewhere("a cluster", "install/test_kubernetes.py", '"kustomize"')),
        ("$ darkroomd -o", Start()),
        ("# editor", by_systemd("Package", 0)),
        ("# systemctl stop", Elsewhere("systemd", "install/test_systemd.py",
                                       "systemctl stop darkroomd; "
                                       "systemctl enable --now darkroomd.socket")),
    ],
    "src/sched/darkroom-scheduling.7": [
        ("accept_read", Text("a drawing")),
        ("# darkroomd -c site.ini ctl policy", Run(site, is_drain_again)),
        ("[group.decode]", with_groups),
        ("# darkroomd -c site.ini ctl set group", Run(after=has_cohort)),
        ("$ HWLOC", Run(after=shows_replicas)),
        ("# scripts/partition", Run(some_photos, is_partitioned, cwd=TREE,
                                    edits=[("-d 30", "-d 300ms")])),
        ("$ darkroomd ctl trace", Run(under_load, is_drawn, edits=[("trace 10", "trace 1")])),
        ("$ WORLD=", Elsewhere("make world", "world/test_world.py",
                               "def test_a_seed_is_drawn_by_the_commands_of_the_book")),
    ],
    "stages/storage/darkroom-scale.7": [
        ('{"Rules"', Text("a rule of an object store")),
        ('{"Rules"', Text("a rule of an object store")),
    ],
    "stages/store/darkroom-store.7": [
        ("image 1 ", Text("the beginning of an object")),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store find",
         Run(lambda m: by(m, "phone"), was_phone)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store remove --ids",
         Run(two_in_a_file, are_removed)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store remove --token",
         Run(lambda m: by(m, "tablet"), are_removed)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini ctl reload", Run(smaller_thumbs, are_small)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store check", Run(after=says_nothing)),
        ("tar -C", Run(for_a_backup)),
        ("tar -C", Run(an_empty_store, is_restored)),
        ("cd /var/lib", Run(one_removed, comes_back)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store export", Run(an_archive)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store import", Run(a_new_machine, is_moved)),
        ("darkroom-load", Run(pictures, are_mapped)),
        ("darkroomd -c /etc/darkroom/darkroomd.ini store count", Run(an_old_one, are_removed)),
    ],
    "stages/jail/decode/darkroom-decode.8": [],
    "loadgen/load/darkroom-load.1": [
        ("darkroom-load", Run(site, four_reports, edits=[
            ("-d 1m", "-d 300ms"), ("--rate 100", "--rate 20"), ("@20s", "@100ms")])),
    ],
    KEYS: [
        *[(start, Text("a table")) for start in (
            "none, process", "backlog", "welsh", "token:", "skip", "drain", "exhaustive", "fcfs", "shared",
            "scale WIDTH")],
        ("[variant.medium]", is_valid),
        ("[server]", is_valid),
    ],
}


# Blocks of C, which test_book.py compiles, and drawings.
OF_DEVELOPERS = {"src/README.md": 4, "stages/README.md": 4, "src/sched/README.md": 2}


def all_blocks(*pages):
    return {**manual([*PAGES, *pages]), **{path: fenced(path) for path in READMES if fenced(path)}}


def check_table(all_of_them):
    """Each block is in the table. tree/test_documents.py calls it."""
    for path, blocks in all_of_them.items():
        if path in OF_DEVELOPERS:
            assert len(blocks) == OF_DEVELOPERS[path]
            assert not any(re.search(r"^[#$] [a-z]", block, re.M) for block in blocks)
            continue
        heads = [head for head, _ in TABLE[path]]
        assert len(heads) == len(blocks), path
        for (head, action), block in zip(TABLE[path], blocks):
            assert block.startswith(head), (path, block)
            if isinstance(action, Elsewhere):
                action(None, block)


def test_the_commands_do_what_the_text_says(tmp_path):
    done = subprocess.run(["make", "-s", "-C", ROOT, KEYS], capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    blocks = all_blocks(KEYS)
    check_table(blocks)
    if missing := {tool for tool in ("unshare", "nsenter", "setpriv", "script", "node", "chromium")
                   if not shutil.which(tool)}:
        pytest.skip(f"needs {missing}")
    machine = Machine()
    machine.profile = tmp_path / "profile"
    try:
        for path, rows in TABLE.items():
            for (_, action), block in zip(rows, blocks[path]):
                print(f"{path}: {block}")
                action(machine, block)
    finally:
        machine.close()
