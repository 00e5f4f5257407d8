"""What an S3 store costs: the daemon's CPU time per image with store.kind = file and = s3, without
what libcurl alone needs to put the same bytes (tests/bench/s3_put.c). The store is an nginx that
takes all and keeps nothing, because only the daemon's time counts. Several programs are measured in
turns. The PUTs of an image are counted by the daemon. Prints a table, with a verdict on each bound of
s3 : file, and writes one JSON line per run. No round begins that would end after --minutes. Runs by
itself:

    /usr/bin/python3 scripts/experiments/s3_cost.py --program new=build/darkroomd
"""

import argparse
import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

import machine
import paired
import run
import worktree
from refusals import cpu_ns

NGINX = """daemon off; error_log stderr; pid {work}/nginx.pid; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {work}; client_max_body_size 0; keepalive_requests 1000000;
  client_body_buffer_size 2m;
  keepalive_timeout 1h;
  upstream all {{ server 127.0.0.1:{inner}; keepalive 64; }}
  server {{ # nginx answers a PUT with If-None-Match by 304, unless another server answers it
    listen 127.0.0.1:{port};
    location / {{
      if ($http_if_match) {{ return 412; }}
      set $put "$uri $http_if_none_match";
      if ($put ~ "/probe [*]") {{ return 412; }}
      proxy_pass http://all;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header If-None-Match "";
      proxy_set_header Content-Length "";
      proxy_pass_request_body off;
    }}
  }}
  server {{
    listen 127.0.0.1:{inner};
    location / {{
      default_type text/plain;
      add_header ETag '"0"';
      if ($request_method != PUT) {{
        return 200 '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';
      }}
      return 200 '';
    }}
  }}
}}
"""
BOUNDS = {64: 1.05, 8: 1.15}  # of s3 : file, by clients
REFERENCE = "build/plain/tests/bench/s3_put"
PARALLEL = 32  # experiment.s3_connections, and requests of the reference


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def sink(work):
    """Runs the store. Returns its URL."""
    port = free_port()
    config = work / "nginx.conf"
    config.write_text(NGINX.format(work=work, port=port, inner=free_port()))
    with (work / "nginx.log").open("w") as log:
        server = subprocess.Popen(["nginx", "-c", config], stdin=subprocess.DEVNULL, stderr=log)
    try:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.01)
        else:
            raise run.Failed(f"nginx does not listen:\n{(work / 'nginx.log').read_text()}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def s3_settings(work, url):
    keys = work / "keys"
    keys.write_text("aws_access_key_id = a\naws_secret_access_key = b\n")
    return ["store.kind=s3", f"store.s3_endpoint={url}", "store.s3_bucket=photos",
            "store.s3_region=x", f"store.s3_credentials={keys}",
            f"experiment.s3_connections={PARALLEL}"]


def sizes_of(daemon, photo):
    """Returns the bytes of the files of an image."""
    request = urllib.request.Request(daemon.url + "/images", photo.read_bytes(),
                                     {"Content-Type": "image/jpeg"})
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
    image = json.loads(body)["images"][0]
    return [*(variant["bytes"] for variant in image["variants"].values()), len(body),
            photo.stat().st_size]


def puts_of(daemon):
    """Returns the PUTs since the start, 0 with files."""
    return (daemon.stats()["store"].get("s3") or {"puts": 0})["puts"]


def daemon_ms(bench, program, settings, count, clients):
    """Returns the milliseconds of CPU time of an image, and its PUTs."""
    with run.Daemon(machine.ROOT / "conf" / "drain.ini", bench.work, settings,
                    program=program) as daemon:
        bench.load(daemon, "-c", clients, "-n", count // 4, "--seed", 99)
        before, puts = cpu_ns(daemon.process.pid), puts_of(daemon)
        bench.load(daemon, "-c", clients, "-n", count)
        return (cpu_ns(daemon.process.pid) - before) / count / 1e6, \
            (puts_of(daemon) - puts) / count


def curl_ms(url, sizes, count):
    """The same of the reference."""
    done = subprocess.run([machine.ROOT / REFERENCE, url + "/photos/x", str(count), str(PARALLEL),
                           *map(str, sizes)], capture_output=True, text=True)
    if done.returncode != 0:
        raise run.Failed(done.stderr)
    return float(done.stdout) / count * 1000


def measure(options, programs, photo, clients, url, is_reversed):
    """Returns the figures of one round with one photograph: a list of dictionaries."""
    directory = options.work / photo.stem
    directory.mkdir(exist_ok=True)
    (directory / photo.name).write_bytes(photo.read_bytes())
    bench = run.Bench(directory, options.work / "stores")
    lines = []
    for name, path in programs[::-1] if is_reversed else programs:
        path = pathlib.Path(path).resolve()
        with run.Daemon(machine.ROOT / "conf" / "drain.ini", bench.work, program=path) as daemon:
            sizes = sizes_of(daemon, photo)
        kinds = {"file": ["server.durability=process"], "s3": s3_settings(options.work, url)}
        line = {"kind": "s3 cost", "program": name, "photograph": photo.name, "clients": clients,
                "put_bytes": sum(sizes), "cores": machine.cores()}
        for kind in sorted(kinds, reverse=is_reversed):
            line[f"{kind}_ms"], line[f"{kind}_puts"] = daemon_ms(bench, path, kinds[kind],
                                                                 options.count, clients)
        # As many objects as the program puts: one with all of an image, or one for each file.
        line["puts"] = line.pop("s3_puts")
        line["curl_ms"] = curl_ms(url, [sum(sizes)] if round(line["puts"]) == 1 else sizes,
                                  options.count)
        lines.append(line)
    bench.sweep(is_over=True)
    return lines


def verdict(clients, interval):
    bound = BOUNDS.get(clients)
    if not bound:
        return "none"
    return f"{bound:.2f} " + (paired.HOLDS if interval.high <= bound else
                              paired.HOLDS_NOT if interval.low > bound else paired.OPEN)


def table(lines):
    text = ["| program | photograph | clients | PUTs | file | s3 | libcurl alone | s3 : file | "
            "(s3 - libcurl) : file | bound of s3 : file |", "|---|---|---:|---:|---:|---:|---:|---:|---:|---|"]

    def case(line):
        return line["program"], line["photograph"], line["clients"]

    for name, photo, clients in dict.fromkeys(map(case, lines)):
        own = [line for line in lines if case(line) == (name, photo, clients)]
        puts, file, s3, curl = (statistics.median(line[key] for line in own)
                                for key in ("puts", "file_ms", "s3_ms", "curl_ms"))
        ratios = [paired.Pairs([(line["s3_ms"] - without * line["curl_ms"]) / line["file_ms"]
                                for line in own]).interval() for without in (0, 1)]
        text.append(f"| {name} | {photo} | {clients} | {puts:.2f} | {file:.3f} ms | {s3:.3f} ms | "
                    f"{curl:.3f} ms | " + " | ".join(
                        f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})" for one in ratios)
                    + f" | {verdict(clients, ratios[0])} |")
    return "\n".join(text)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--program", action="append", required=True, help="NAME=FILE of a daemon; one or more")
    add("--rounds", type=int, default=8, help="runs of each (8)")
    add("--count", type=int, default=1000, help="images of each run (1000)")
    add("--clients", default="64,8", help="connections of the load generator: the first keep all "
        "cores busy, with few the cores sleep while the store answers (64,8)")
    add("--photographs", type=pathlib.Path, nargs="+", default=[machine.ROOT / "data/sample/lake.jpg"],
        help="JPEG files (data/sample/lake.jpg)")
    add("--minutes", type=float, default=9, help="of all rounds, at most; one is always made (9)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "s3-cost")
    add("--work", type=pathlib.Path, help="directory for stores (in --out)")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    programs = [word.split("=", 1) for word in options.program]
    options.work = (options.work or options.out).resolve() / "work"
    (options.work / "stores").mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "-s", REFERENCE], cwd=machine.ROOT, check=True)
    lines = []
    with sink(options.work) as url, worktree.results(options.out / "runs.jsonl") as raw:
        begin = time.monotonic()
        for number in range(options.rounds):
            used = (time.monotonic() - begin) / 60
            if number and used * (number + 1) / number > options.minutes:
                print(f"{number} rounds, because of --minutes", file=sys.stderr, flush=True)
                break
            for photo in options.photographs:
                for clients in map(int, options.clients.split(",")):
                    for line in measure(options, programs, photo, clients, url, number % 2):
                        lines.append({"round": number, **line})
                        raw.write(json.dumps(lines[-1]) + "\n")
                        raw.flush()
            print(f"{number + 1} of {options.rounds} rounds", file=sys.stderr, flush=True)
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
