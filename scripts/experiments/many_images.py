"""What a store of many images costs: start, upload, GET, DELETE, list, count and expiry, against a
store of ten images. Prints a table, and writes one JSON line per store. Runs by itself, as root:

    /usr/bin/python3 scripts/experiments/many_images.py --images 1000000 --out build/many

Each store is on an ext4 file system of its own in a file of --work, which is mounted again (so
nothing of it is in memory) and removed afterwards. An image has a directory, an image.json of its
own, and hard links to the files of a few uploads: 2 inodes instead of 5. The images are spread
over --days, in the directories of their time."""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

import machine
import run
import worktree

SMALL = machine.LAKE
CONFIG = machine.ROOT / "conf" / "darkroomd.ini"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LINKS_MAX = 60000  # of one file; ext4 allows 65000
BYTES_PER_IMAGE = 12 << 10
DAY_MS = 86400 * 1000
BINARY = str(machine.ROOT / "build" / "darkroomd")


def print_number(number, length):
    return "".join(CROCKFORD[number >> 5 * i & 31] for i in reversed(range(length)))


class FileSystem:
    """An ext4 in a file, mounted for the duration of a block."""

    def __init__(self, work, images):
        self.file, self.path = work / "ext4", work / "mounted"
        self.bytes = (1 << 30) + images * BYTES_PER_IMAGE
        self.inodes = 100000 + 3 * images

    def __enter__(self):
        self.path.mkdir(parents=True, exist_ok=True)
        with self.file.open("wb") as f:
            f.truncate(self.bytes)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-N", str(self.inodes), self.file], check=True)
        self._mount()
        return self

    def _mount(self):
        subprocess.run(["mount", "-o", "loop", self.file, self.path], check=True)

    def forget(self):
        """Takes everything of the file system out of memory."""
        subprocess.run(["umount", self.path], check=True)
        with self.file.open("rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._mount()

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=False)
        self.file.unlink()
        self.path.rmdir()


# ---- filling ----

class Template:
    """The files of an image, which others are links to."""

    def __init__(self, directory):
        self.directory, self.ident = directory, directory.name
        self.document = (directory / "image.json").read_bytes()
        self.names = [p.name for p in directory.iterdir() if p.name != "image.json"]


def fill_part(root, template, part):
    """Makes a part of the images: (time in ms, number) of each. Runs in a process of its own."""
    at = os.open(root, os.O_RDONLY)
    links, copies, made = LINKS_MAX, None, set()
    number = part[0][1]
    for ms, number in part:
        if links == LINKS_MAX:  # a file can have that many names
            copies, links = root / f".copies-{number}", 0
            shutil.copytree(template.directory, copies)
        ident = print_number(ms, 10) + print_number(random.getrandbits(80), 16)
        shard = f"{ident[:4]}/{ident[4:6]}"
        if shard not in made:
            (root / shard).mkdir(parents=True, exist_ok=True)
            made.add(shard)
        path = f"{shard}/{ident}"
        os.mkdir(path, dir_fd=at)
        fd = os.open(f"{path}/image.json", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=at)
        os.write(fd, template.document.replace(template.ident.encode(), ident.encode()))
        os.close(fd)
        for name in template.names:
            os.link(f"{copies.name}/{name}", f"{path}/{name}", src_dir_fd=at, dst_dir_fd=at)
        links += 1
    os.close(at)


def fill(root, template, images, days):
    """Makes images with times from `days` ago until a minute ago."""
    end = int(time.time() * 1000) - 60000
    step = days * DAY_MS / images
    times = [(int(end - (images - 1 - i) * step), i) for i in range(images)]
    cores, size = machine.cores(), -(-images // machine.cores())
    workers = [multiprocessing.Process(target=fill_part,
                                       args=(root, template, times[i * size:(i + 1) * size]))
               for i in range(cores) if times[i * size:(i + 1) * size]]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise run.Failed("cannot fill the store")


# ---- measuring ----

class Daemon:
    def __init__(self, root, *settings):
        self.log = root.parent / "log"
        words = [BINARY, "-c", CONFIG, "-o", f"server.root={root}", "-o", "server.user=root", "-o",
                 "server.listen=127.0.0.1:0", "-o", "log.access=no", "-o",
                 "server.public_list=yes", "-o", "overload.controller=off"]
        for setting in settings:
            words += ["-o", setting]
        began = time.perf_counter()
        with self.log.open("w") as log:
            self.process = subprocess.Popen([str(w) for w in words], stderr=log)
        while not (found := run.READY.search(self.log.read_text())):
            if self.process.poll() is not None:
                raise run.Failed(self.log.read_text())
            time.sleep(0.0005)
        self.start_ms = 1000 * (time.perf_counter() - began)
        address = urllib.parse.urlsplit(found[1])
        self.http = http.client.HTTPConnection(address.hostname, address.port, timeout=120)

    def request(self, method, path, body=None, expected=200):
        """Returns (milliseconds, body of the answer)."""
        began = time.perf_counter()
        self.http.request(method, path, body, {"Content-Type": "image/jpeg"} if body else {})
        answer = self.http.getresponse()
        data = answer.read()
        if answer.status != expected:
            raise run.Failed(f"{method} {path}: {answer.status} {data[:200]}")
        return 1000 * (time.perf_counter() - began), data

    def threads_cpu_s(self):
        return sum(int((t / "schedstat").read_text().split()[0])
                   for t in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()) / 1e9

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def median(values):
    return sorted(values)[len(values) // 2]


def tool(root, *words):
    """Returns (milliseconds, lines) of a command of darkroomd store."""
    began = time.perf_counter()
    done = subprocess.run([BINARY, "-o", f"server.root={root}", "store", *words], check=True,
                          capture_output=True, text=True)
    return 1000 * (time.perf_counter() - began), done.stdout.splitlines()


def some(idents, count, rng):
    return [rng.choice(idents) for _ in range(count)]


def measure_requests(daemon, idents, rng, repeats):
    small = SMALL.read_bytes()
    found = {"get_first_ms": median([daemon.request("GET", f"/images/{i}/thumb.jpg")[0]
                                     for i in some(idents, repeats, rng)])}
    uploads, new = [], []
    for _ in range(repeats):
        ms, answer = daemon.request("POST", "/images", small, 201)
        uploads.append(ms)
        new.append(json.loads(answer)["images"][0]["id"])
    chosen = some(idents, repeats, rng)
    for ident in chosen:
        daemon.request("GET", f"/images/{ident}/thumb.jpg")
    found |= {
        "upload_ms": median(uploads),
        "get_again_ms": median([daemon.request("GET", f"/images/{i}/thumb.jpg")[0]
                                for i in chosen]),
        "get_absent_ms": median([daemon.request("GET", f"/images/{i[:20]}000000/thumb.jpg",
                                                expected=404)[0] for i in chosen]),
        "list_newest_ms": median([daemon.request("GET", "/images?limit=100&order=newest")[0]
                                  for _ in range(9)]),
        "list_after_ms": median([daemon.request("GET", f"/images?limit=100&after={i}")[0]
                                 for i in some(idents, 9, rng)]),
        "delete_ms": median([daemon.request("DELETE", f"/images/{i}", expected=204)[0]
                             for i in new])}
    return found


def measure(file_system, images, days, repeats):
    """Measures a store with that many images."""
    root, rng = file_system.path / "store", random.Random(images)
    daemon = Daemon(root)
    _, answer = daemon.request("POST", "/images", SMALL.read_bytes(), 201)
    template = json.loads(answer)["images"][0]["id"]
    daemon.stop()
    began = time.monotonic()
    fill(root, Template(root / template[:4] / template[4:6] / template), images - 1, days)
    line = {"kind": "many", "images": images, "days": days, "fill_s": time.monotonic() - began}
    file_system.forget()
    daemon = Daemon(root)
    line["start_first_ms"] = daemon.start_ms
    daemon.stop()
    line["list_100_ms"] = tool(root, "list", "--limit", "100")[0]
    ms, listed = tool(root, "list", "--newest", "--limit", "10000", "--json")
    line["list_newest_10000_ms"] = ms
    idents = [re.search(r'"id":"(\w+)"', text)[1] for text in listed]
    file_system.forget()
    daemon = Daemon(root)
    line["start_ms"] = daemon.start_ms
    line |= measure_requests(daemon, idents, rng, repeats)
    daemon.stop()
    # nothing is due: what a look costs
    daemon = Daemon(root, "store.max_age=240000h",
                    "store.sweep_interval=100ms")
    time.sleep(1)
    before, began = daemon.threads_cpu_s(), time.monotonic()
    time.sleep(3)
    line["sweep_cpu_ms"] = 1000 * (daemon.threads_cpu_s() - before) / (
        10 * (time.monotonic() - began))
    daemon.stop()
    line["remove_oldest_5_ms"] = tool(root, "remove", "--since", "2020-01-01", "--limit", "5")[0]
    file_system.forget()
    line["count_all_s"] = tool(root, "count")[0] / 1000
    line |= figures(root)
    return line


def figures(root):
    """Returns inodes, and the sizes of directories."""
    st, sizes, entries = os.statvfs(root), {0: [], 1: []}, []
    for span in root.iterdir():
        if span.name.startswith(".") or not span.is_dir():
            continue
        sizes[0].append(span.stat().st_size)
        for shard in os.scandir(span):
            sizes[1].append(shard.stat().st_size)
            entries.append(len(os.listdir(shard.path)))
    return {"inodes": st.f_files - st.f_ffree, "bytes": (st.f_blocks - st.f_bfree) * st.f_frsize,
            "spans": len(sizes[0]), "span_bytes_max": max(sizes[0]), "shards": len(sizes[1]),
            "shard_bytes_max": max(sizes[1]), "shard_images_max": max(entries),
            "root_bytes": root.stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--images", type=int, default=1000000, help="of the large store (1000000)")
    add("--days", type=int, default=30, help="over which they were uploaded (30)")
    add("--repeats", type=int, default=100, help="requests of each kind (100)")
    add("--rounds", type=int, default=2, help="measurements of the store of ten (2)")
    add("--work", type=pathlib.Path, help="directory for the file systems (in --out)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "many")
    options = parser.parse_args()
    work = options.work or options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    lines = []
    with worktree.results(options.out / "raw.jsonl") as raw:
        for images in [10] * options.rounds + [options.images]:
            with FileSystem(work, images) as file_system:
                lines.append(measure(file_system, images, options.days, options.repeats))
            raw.write(json.dumps({"time": time.time(), **lines[-1]}) + "\n")
            raw.flush()
    print("| | " + " | ".join(str(line["images"]) for line in lines) + " |\n|---|" +
          "---:|" * len(lines))
    for name in lines[0]:
        if name not in ("kind", "images"):
            print(f"| {name} | " + " | ".join(
                f"{l[name]:.2f}" if isinstance(l[name], float) else str(l[name])
                for l in lines) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
