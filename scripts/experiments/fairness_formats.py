"""Small JPEGs of one client beside pictures of 12 megapixels of other clients: PNG, WebP, AVIF and all
three. The variants are JPEGs, or have AVIFs beside them, at once or when idle. The client is alone in
between. Several programs take turns. Prints a table of medians over the rounds, and writes one JSON
line per run. Runs by itself:

    /usr/bin/python3 scripts/experiments/fairness_formats.py --out build/fairness-formats
"""

import argparse
import contextlib
import io
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading

import numpy as np
import PIL.Image

import fairness
import machine
import markdown
import run
import worktree

KINDS = {"nothing": (), "PNG": ("png",), "WebP": ("webp",), "AVIF": ("avif",),
         "all three": ("png", "webp", "avif")}
AVIF = "variant.medium.formats=jpeg, avif"
OUTPUTS = {"JPEG": (), "JPEG and AVIF": (AVIF,),
           "AVIF when idle": (AVIF, "variant.medium.when=idle", "server.keep_originals=yes")}
CLIENTS, TIMEOUT_S = 4, 120  # of the large pictures; of each answer
SIZE = 4000, 3000


def large_files(kinds):
    """Returns {format: bytes} of a picture with a camera's noise. The AVIF is made of the PNG."""
    with PIL.Image.open(fairness.SMALL) as image:
        pixels = np.asarray(image.convert("RGB").resize(SIZE), float)
    pixels = pixels + np.random.default_rng(1).normal(0, 3, pixels.shape)
    picture = PIL.Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    found = {}
    for kind, options in (("png", {"compress_level": 6}), ("webp", {"quality": 85, "method": 0})):
        out = io.BytesIO()
        picture.save(out, kind, **options)
        found[kind] = out.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        if "avif" not in kinds:
            return found
        source, target = (pathlib.Path(folder) / name for name in ("x.png", "x.avif"))
        source.write_bytes(found["png"])
        subprocess.run(["avifenc", "-s", "9", "-y", "420", "--min", "8", "--max", "14", source,
                        target], check=True, capture_output=True)
        found["avif"] = target.read_bytes()
    return found


@contextlib.contextmanager
def others(daemon, files):
    """Uploads the files in turns by each client. Yields the list of statuses."""
    statuses, stop = [], threading.Event()

    def upload(number):
        connection = fairness.connect(daemon, TIMEOUT_S)
        for data in itertools.islice(itertools.cycle(files), number, None):
            if stop.is_set():
                return
            connection.request(*fairness.post(data, f"192.0.2.{10 + number}"))
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    threads = [threading.Thread(target=upload, args=(n,)) for n in range(CLIENTS if files else 0)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def measure(daemon, files, seconds):
    """Returns the times of the small JPEGs in ms, and how many large pictures were stored."""
    post = fairness.post(fairness.SMALL.read_bytes(), fairness.VICTIM)
    with others(daemon, files) as statuses, contextlib.closing(
            fairness.connect(daemon, TIMEOUT_S)) as connection:
        fairness.times(connection, post, 1, 0.02)
        before = len(statuses)
        found = fairness.times(connection, post, seconds, 0.02)
        count = len(statuses) - before
    if set(statuses) - {201}:
        raise run.Failed(f"large pictures were answered {sorted(set(statuses))}")
    return found, count


HEAD = ("program", "variants", "others upload", "small JPEGs", "large pictures", "p50 ms", "p99 ms",
        "p50 : alone")


def rows(lines):
    """Returns a row for each combination: medians of its rounds."""
    found = {}
    for line in lines:
        found.setdefault((line["program"], line["output"], line["beside"]), []).append(line)
    for (program, output, beside), of in found.items():
        alone = statistics.median(line["p50_ms"] for line in found[program, output, "nothing"])
        p50, p99 = (statistics.median(line[key] for line in of) for key in ("p50_ms", "p99_ms"))
        yield (program, output, beside, str(sum(line["small"] for line in of)),
               str(sum(line["large"] for line in of)), f"{p50:.1f}", f"{p99:.1f}",
               f"{p50 / alone:.2f}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=4, help="duration of each measurement (4)")
    add("--rounds", type=int, default=3, help="of all measurements (3)")
    add("--programs", type=pathlib.Path, nargs="+", default=[machine.ROOT / "build" / "darkroomd"],
        help="daemons, each in a folder of its own")
    add("--outputs", nargs="+", choices=OUTPUTS, default=list(OUTPUTS))
    add("--beside", nargs="+", choices=KINDS, default=list(KINDS))
    add("--plan", action="store_true", help="print the runs and their time, and measure nothing")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "fairness-formats")
    return parser.parse_args(arguments)


def runs(given):
    """Returns (round, program, variants) of each daemon, in their order."""
    return list(itertools.product(range(given.rounds), given.programs, given.outputs))


def measure_all(given, files):
    """Yields the line of each measurement."""
    settings = ("server.trusted_proxies=127.0.0.1", "server.durability=process")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        for number, program, output in runs(given):
            with run.Daemon(machine.ROOT / "conf" / "drain.ini", work,
                            (*settings, *OUTPUTS[output]), program=program) as daemon:
                for beside in given.beside:
                    times, large = measure(daemon, [files[kind] for kind in KINDS[beside]],
                                           given.seconds)
                    yield {"kind": "fairness of formats", "round": number,
                           "program": program.parent.name, "output": output, "beside": beside,
                           "small": len(times), "large": large, "load": machine.load_average(),
                           **{f"p{n}_ms": round(fairness.percentile_ms(times, n / 100), 2)
                              for n in (50, 90, 99)}}


def main():
    given = parse(sys.argv[1:])
    seconds = len(runs(given)) * (2 + len(given.beside) * (given.seconds + 2))
    print(f"{len(runs(given))} daemons, about {seconds / 60:.0f} minutes")
    if given.plan:
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    files, lines = large_files(itertools.chain(*(KINDS[beside] for beside in given.beside))), []
    print(f"{machine.cores()} cores, load {machine.load_average():.1f}, {SIZE[0]}x{SIZE[1]} pixels:",
          ", ".join(f"{kind} {len(data) >> 10} KB" for kind, data in files.items()) + "\n")
    with worktree.results(given.out / "raw.jsonl") as raw:
        for line in measure_all(given, files):
            raw.write(json.dumps(line) + "\n")
            raw.flush()
            lines.append(line)
    print(markdown.table(HEAD, list(rows(lines))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
