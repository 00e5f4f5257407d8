"""What a client sees of several daemons behind HAProxy over one object store: while all is well, a node
is killed, one is added, one is drained, and the store is away. Everything runs on this machine, with
nodes on 127.0.0.2 and following. The client is darkroom-load, which repeats failed uploads with their
keys. Prints a table, and writes it with a picture and the raw figures to --out."""

import argparse
import concurrent.futures
import contextlib
import csv
import datetime
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import cluster_report
import machine
import plots
import progress
import worktree

sys.path.append(str(machine.ROOT / "tests" / "http"))

import s3_gateway  # noqa: E402 (after the path is set)
import s3_stand_in  # noqa: E402
from darkroom import Daemon, eventually  # noqa: E402
from nodes import Nodes  # noqa: E402

LOAD = machine.ROOT / "build" / "darkroom-load"
SETTINGS = ("server.public_list=yes", "overload.target_p90=1s", "limits.connections_per_client=0",
            "log.access=no")


class Endpoint:
    """An S3 store that runs already. It is not stopped."""

    def __init__(self, options):
        self.options = options

    def settings(self, _directory, **others):
        options = self.options
        values = {"kind": "s3", "s3_endpoint": options.store, "s3_bucket": options.bucket,
                  "s3_region": options.region, "s3_credentials": options.credentials.resolve(),
                  "s3_prefix": f"cluster-{int(time.time())}/", **others}
        return [f"store.{name}={value}" for name, value in values.items()]

    def stop(self):
        pass


def start_store(options, directory):
    if options.store == "stand-in":
        return s3_stand_in.Store()
    if options.store != "gateway":
        return Endpoint(options)
    if s3_gateway.missing():
        sys.exit(f"not installed: {', '.join(s3_gateway.missing())}; try --store stand-in")
    (directory / "gateway").mkdir()
    return s3_gateway.Gateway(directory / "gateway")


class Cluster:
    """The nodes, their store and HAProxy, and what is done to them. Stops all of it in the end."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.events, self.started, self.is_over = [], [], False
        self.store = self.nodes = None
        self.pool = concurrent.futures.ThreadPoolExecutor()
        self.begin = time.monotonic()

    def __enter__(self):
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_all(self):
        options = self.options
        self.store = start_store(options, self.directory)
        self.nodes = Nodes(self._start_daemon, self.directory,
                           [*self.store.settings(self.directory), *SETTINGS],
                           options.nodes + 1, check="1s", delay="3s")
        for number in range(options.nodes):
            self.nodes.start(number)
        self.nodes.run()

    def _start_daemon(self, *settings, **options):
        options["store"] = self.directory / f"root{len(self.started)}"
        self.started.append(Daemon(options.pop("store"), *settings, **options))
        return self.started[-1]

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops everything that was started. An interrupt does not interrupt that."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.is_over = True
        if self.store:
            self.store.stop()
        self.pool.shutdown()
        if self.nodes:
            self.nodes.stop_proxy()
        alive = [daemon for daemon in self.started if daemon.is_alive()]
        for daemon in alive:
            daemon.signal(signal.SIGKILL)
        for daemon in alive:
            daemon.process.wait()
        if self.store:
            self.store.stop()  # an event may have started it meanwhile

    # ---- events ----

    def note(self, what):
        self.events.append({"s": round(time.monotonic() - self.begin, 3), "what": what})

    def note_once(self, question, what):
        if eventually(lambda: self.is_over or question(), 60):
            self.note(what)

    def kill(self):
        self.note("kill -9 node2")
        self.nodes.daemons[1].kill()
        self.note_once(lambda: self.nodes.is_down(1), "HAProxy: node2 is down")

    def add(self):
        number = self.options.nodes
        self.note(f"{Nodes.name(number)} starts")
        self.nodes.start(number)
        self.note_once(lambda: self.nodes.are_up(number), f"HAProxy: {Nodes.name(number)} is up")

    def drain(self):
        daemon = self.nodes.daemons[0]
        self.note("SIGTERM node1")
        daemon.signal(signal.SIGTERM)
        self.note_once(lambda: daemon.get("/readyz").status == 503, "node1: /readyz answers 503")
        daemon.wait_exit()
        self.note("node1 has ended")

    def go_away(self):
        self.note("the store is killed")
        self.store.go_away()

    def come_back(self):
        self.note("the store starts")
        self.store.come_back()
        self.note("the store stores")

    def stored(self):
        """Returns the number of images in the store."""
        daemon, count, url = self.nodes.daemons[2], 0, "/images?limit=100"
        while url:
            answer = daemon.get(url).json()
            count, url = count + len(answer["images"]), answer.get("next")
        return count


def phases(cluster, options):
    """Returns (name, seconds, [(second, what is done then)]) of each phase."""
    at = options.phase / 4
    found = [("steady", options.phase, []), ("a node is killed", options.phase, [(at, cluster.kill)]),
             ("a node is added", options.phase, [(at, cluster.add)]),
             ("a node is drained", options.phase, [(at, cluster.drain)])]
    if not isinstance(cluster.store, Endpoint):
        found.append(("the store is away", options.phase + options.outage,
                      [(at, cluster.go_away), (at + options.outage, cluster.come_back)]))
    return [*found, ("steady again", options.phase, [])]


class Line:
    """The line of progress."""

    def __init__(self, total_s):
        self.end = time.monotonic() + total_s
        self.is_terminal = sys.stderr.isatty()

    def show(self, text, is_new):
        if self.is_terminal or is_new:
            left = max(0, self.end - time.monotonic())
            text += f"; {progress.duration(left)} left, until {progress.clock(left)}"
            print(f"\r\033[K{text}" if self.is_terminal else text, file=sys.stderr, flush=True,
                  end="" if self.is_terminal else "\n")

    def close(self):
        if self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def loading(cluster, options, seconds, number):
    """Runs the load generator during a block. Yields its process and the file of its requests."""
    rows = cluster.directory / f"requests{number}.csv"
    command = [LOAD, "--json", "--quiet", "--csv", rows, "--rate", options.rate, "--poisson", "-c",
               options.connections, "-d", seconds, "--retry", options.retry, "--seed", number + 1,
               f"http://127.0.0.1:{cluster.nodes.front}/images", options.files]
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, rows
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def measure(cluster, options, number, phase, line):
    """Measures a phase. Returns its figures."""
    name, seconds, actions = phase
    begin, left, running = time.monotonic(), list(actions), []
    with loading(cluster, options, seconds, number) as (process, rows):
        output = cluster.pool.submit(process.communicate)
        is_new = True
        while not output.done():
            passed = time.monotonic() - begin
            if left and passed >= left[0][0]:
                running.append(cluster.pool.submit(left.pop(0)[1]))
            line.show(f"{name}: {min(passed, seconds):.0f} of {seconds:g} s", is_new)
            is_new = False
            concurrent.futures.wait([output], timeout=min(
                [1.0] + [max(0.0, begin + at - time.monotonic()) for at, _ in left[:1]]))
        text, complaints = output.result()
        for action in running:
            action.result()
    if not text:
        sys.exit(f"darkroom-load: {complaints}")
    with rows.open(newline="") as file:
        found = list(csv.DictReader(file))
    report = json.loads(text)
    offset = report["start_monotonic_ns"] / 1e9 - cluster.begin
    return {"phase": name, "begin_s": begin - cluster.begin, "end_s": time.monotonic() - cluster.begin,
            "report": report, "uploads": [
                {"due_s": round(float(row["intended"]) + offset, 4),
                 "done_s": round(float(row["done"]) + offset, 4), "status": row["status"]}
                for row in found if row["error"] != "unsent"]}


def answers(cluster):
    """Returns the time, status and node of each of HAProxy's answers to uploads."""
    offset = cluster.begin - time.monotonic() + time.time()
    return [{"s": round(datetime.datetime.strptime(line["time"], "%d/%b/%Y:%H:%M:%S.%f").timestamp()
                        - offset + int(line["active"].lstrip("+")) / 1000, 3),
             "status": line["status"], "node": line["server"]}
            for line in cluster.nodes.answers() if line["method"] == "POST"]


def run_all(options, directory):
    """Returns the raw figures."""
    about = machine.describe()
    line = Line(6 * options.phase + options.outage + 15)
    line.show(f"starting {options.nodes} nodes and the store", True)
    with Cluster(options, directory) as cluster:
        found = [measure(cluster, options, number, phase, line)
                 for number, phase in enumerate(phases(cluster, options))]
        line.show("counting the images", True)
        head = {**about, "kind": "cluster", "nodes": options.nodes,
                "rate_per_s": options.rate, "connections": options.connections,
                "retry": options.retry, "outage_s": options.outage, "phase_s": options.phase,
                "store": options.store if options.store in ("gateway", "stand-in") else "S3",
                "stored": cluster.stored()}
        line.close()
        return head, found, cluster.events, answers(cluster)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__)
    add = parser.add_argument
    add("--nodes", type=int, default=4, help="daemons at the start, at least 3 (4)")
    add("--rate", type=float, default=20, help="uploads per second (20)")
    add("--connections", type=int, default=32, help="connections of the client (32)")
    add("--retry", default="60s", help="how long the client repeats an upload (60s)")
    add("--phase", type=float, default=20, help="seconds of a phase (20)")
    add("--outage", type=float, default=30, help="seconds without the store, more than --phase (30)")
    add("--store", default="gateway", help="gateway: Ceph's, started here; stand-in: that of the "
        "tests; or the URL of a store that runs already, which then keeps the images (gateway)")
    add("--bucket", help="with a URL: the bucket, which must exist")
    add("--region", default="us-east-1", help="with a URL: the region (us-east-1)")
    add("--credentials", type=pathlib.Path, help="with a URL: the file for store.s3_credentials")
    add("--files", type=pathlib.Path, default=machine.ROOT / "data" / "sample",
        help="JPEG files to send (data/sample)")
    add("--out", type=pathlib.Path, default=machine.ROOT / "build" / "cluster",
        help="directory of the report (build/cluster)")
    add("--report", action="store_true", help="only write the report of an earlier run again")
    options = parser.parse_args(arguments)
    if options.nodes < 3 or options.nodes > 100 or options.phase < 2:
        parser.error("expected 3 to 100 nodes, and phases of at least 2 seconds")
    if re.match("https?://", options.store):
        if not options.bucket or not options.credentials:
            parser.error("a URL needs --bucket and --credentials")
    elif options.store not in ("gateway", "stand-in"):
        parser.error("--store: expected gateway, stand-in or a URL")
    return options


def main():
    options = parse(sys.argv[1:])
    # Ctrl-C and SIGTERM end what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not options.report:
        if refusal := worktree.refusal([options.out / "report.md"]):
            sys.exit(refusal)
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as directory:
            cluster_report.write_raw(options.out, *run_all(options, pathlib.Path(directory)))
    try:
        print(cluster_report.write(options.out))
    except plots.Failed as failure:
        sys.exit(f"no report: {failure}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; everything that was started has been stopped")
