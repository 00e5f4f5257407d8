"""The daemon as a process: its command line, configuration, signals, and what it costs when there is nothing to do."""

import json
import re
import signal
import subprocess
import threading
import time

import pytest

import pictures
from darkroom import CONFIG, IS_SANITIZED, POLICY, Daemon, command, eventually, millis, overrides, run, slow

SMALL = pictures.photo_jpeg(320, 240, 2)
LARGE = pictures.photo_jpeg(4000, 3000, 1)
JPEG = ("Content-Type", "image/jpeg")
CONFIG_LINES = CONFIG.read_text().splitlines() if CONFIG.exists() else []


# ---- command line ----

def test_help():
    done = run("--help")
    assert done.returncode == 0 and not done.stderr
    for word in ("-c", "-t", "-o", "--help", "--version", "darkroomd"):
        assert word in done.stdout


def test_version():
    done = run("--version")
    assert done.returncode == 0 and not done.stderr
    assert re.fullmatch(r"darkroomd \d+\.\d+\S*.*\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--version", "-v"], ["-VV"], ["-vV"]])
def test_versions(arguments):
    done = run(*arguments)
    assert done.returncode == 0 and not done.stderr
    assert re.match(r"darkroomd \d+\.\d+", done.stdout)
    for word in ("compiler", "libjpeg-turbo", "libevent", "llhttp", "hwloc", "libseccomp", "glibc"):
        assert re.search(rf"^{word} +.*\d", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("arguments", [["--nonsense"], ["-Z"], ["-c"], ["-o"], ["stray"], ["-t", "stray"]])
def test_wrong_usage(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and not done.stdout
    assert "darkroomd" in done.stderr and len(done.stderr.splitlines()) >= 1


# ---- configuration ----

def check(tmp_path, text, *settings):
    """darkroomd -t for a file with that text; its exit status and messages."""
    path = tmp_path / "test.ini"
    path.write_text(text)
    done = run("-c", path, "-t", *overrides(*settings))
    return done.returncode, done.stdout + done.stderr


def test_shipped_configuration_is_good():
    assert run("-c", CONFIG, "-t").returncode == 0


def test_configuration_that_is_not_there(tmp_path):
    done = run("-c", tmp_path / "nope.ini", "-t")
    assert done.returncode in (1, 78) and "nope.ini" in done.stderr
    assert run("-c", tmp_path, "-t").returncode in (1, 78)


def keys():
    """[(index of line, section, key)] of the shipped file."""
    section, found = "", []
    for i, line in enumerate(CONFIG_LINES):
        if match := re.match(r"\[([^]]+)\]", line):
            section = match[1]
        elif match := re.match(r"([a-z_]+)\s*=", line):
            found.append((i, section, match[1]))
    return found


def test_shipped_configuration_is_complete():
    listed = {(s, k) for _, s, k in keys()} | {(s, m[1]) for s, m in commented()}
    wanted = {"server": "listen root respond_after durability keep_originals damaged allow_origin wait_timeout drain_timeout",
              "log": "level access access_file",
              "scheduler": "policy threads spin",
              "limits": "header_bytes body_bytes parts pixels pixels_progressive scans width height connections "
                        "images_in_flight images_per_client header_timeout body_timeout body_rate idle_timeout memory_budget",
              "variant.medium": "operations quality", "variant.thumb": "operations quality", "variant.blurred": "operations quality"}
    missing = [(s, k) for s, names in wanted.items() for k in names.split() if (s, k) not in listed]
    assert not missing


def commented():
    section = ""
    for line in CONFIG_LINES:
        if match := re.match(r"\[([^]]+)\]", line):
            section = match[1]
        elif match := re.match(r"[;#]\s*([a-z_]+)\s*=", line):
            yield section, match


@pytest.mark.parametrize("index, section, key", keys(), ids=lambda v: str(v))
@pytest.mark.parametrize("bad", [pytest.param("x" * 300, id="long text"), "-1"])
def test_every_key_is_validated(tmp_path, index, section, key, bad):
    if bad == "-1" and (section, key) == ("server", "root"):
        pytest.skip("any name will do")
    lines = list(CONFIG_LINES)
    lines[index] = f"{key} = {bad}"
    status, text = check(tmp_path, "\n".join(lines) + "\n")
    assert status == 78, text
    assert f"test.ini:{index + 1}" in text and key in text, text


@pytest.mark.parametrize("text, line, word", [
    ("[server]\nnonsense = 1\n", 2, "nonsense"), ("[nonsense]\nx = 1\n", (1, 2), "nonsense"),
    ("[server]\nlisten = 127.0.0.1:8080\nlisten = 127.0.0.1:8081\n", 3, "listen"),
    ("[limits]\n\n\nparts = many\n", 4, "many"), ("[limits]\npixels = 10X\n", 2, "10X"),
    ("[limits]\nheader_timeout = 10\n[limits]\nbody_timeout = ten\n", 4, "ten"),
    ("[scheduler]\npolicy = best\n", 2, "best"), ("[stage.blur]\nkind = own\n", 2, "own"),
    ("[stage.nonsense]\nkind = shared\n", (1, 2), "nonsense"), ("[stage.blur]\nthreads = 65\n", 2, "65"),
    ("[variant.a]\noperations = scale 1x1 inside\nquality = 0\n", 3, "quality"),
    ("[variant.a]\noperations = turn 90\nquality = 80\n", 2, "turn"),
    ("[variant.a]\noperations = scale axb inside\nquality = 80\n", 2, "axb"),
    ("[variant.a]\noperations = scale 10x10 inside, blur -3\nquality = 80\n", 2, "-3"),
    ("[variant.a/b]\noperations = scale 10x10 inside\nquality = 80\n", (1, 2, 3), "a/b"),
    ("[server]\nlisten = 127.0.0.1:99999\n", 2, "99999"), ("[server]\nlisten = nowhere\n", 2, "nowhere"),
    ("[server]\nkeep_originals = yes\n[variant.original]\noperations = scale 10x10 inside\nquality = 80\n", 3, "original"),
    ("[server]\nlisten\n", 2, ""), ("parts = 3\n", 1, ""),
])
def test_bad_configuration(tmp_path, text, line, word):
    status, message = check(tmp_path, text)
    assert status == 78, message
    assert any(f"test.ini:{n}" in message for n in (line if isinstance(line, tuple) else (line,))), message
    assert word in message


def test_all_errors_are_told_at_once(tmp_path):
    status, message = check(tmp_path, "[server]\nnonsense = 1\n[limits]\nparts = many\nscans = -5\n")
    assert status == 78 and all(f"test.ini:{n}" in message for n in (2, 4, 5)), message


def test_bad_configuration_does_not_start(tmp_path):
    path = tmp_path / "test.ini"
    path.write_text("[limits]\nparts = many\n")
    done = run("-c", path)
    assert done.returncode == 78 and "test.ini:2" in done.stderr


def test_good_configuration(tmp_path):
    text = ("# comment\n; comment\n[server]\nlisten = [::1]:8080\nroot = /tmp/x\n\n[limits]\npixels = 1M\nheader_timeout = 1500ms\n"
            "body_bytes = 2G\nmemory_budget = 4G\n[stage.disk_write]\nthreads = 2\n[stage.blur]\npass_through = yes\n"
            "[variant.only]\noperations = scale 10x10 inside\nquality = 1\n")
    status, message = check(tmp_path, text)
    assert status == 0, message


@pytest.mark.parametrize("setting", ["nonsense", "server.nonsense=1", "nonsense.x=1", "limits.parts=many", "limits.parts=", "=",
                                     "limits.parts", "variant.medium.quality=101", "variant.medium.nonsense=1", "server=1",
                                     "limits.parts=18446744073709551616", "limits.parts=3 4", "limits.body_bytes=1T1", ".=."])
def test_bad_overrides(setting):
    done = run("-c", CONFIG, "-t", "-o", setting)
    assert done.returncode in (2, 78), done.stderr
    assert setting in done.stderr, "the message shows the override"


@pytest.mark.parametrize("setting", ["limits.parts=3", "limits.pixels=1M", "limits.idle_timeout=1m", "variant.medium.quality=1",
                                     "variant.new.operations=scale 20x20 inside", "scheduler.threads=1", "stage.disk_write.threads=3",
                                     "server.allow_origin=*"])
def test_good_overrides(setting):
    done = run("-c", CONFIG, "-t", "-o", setting)
    assert done.returncode == 0, done.stderr


def test_override_wins_and_the_last_one_wins(start):
    daemon = start("limits.parts=1", "limits.body_bytes=1000", "limits.body_bytes=100K")
    assert daemon.upload(SMALL).status == 201


def test_variants_are_what_the_configuration_says(start, tmp_path):
    path = tmp_path / "own.ini"
    path.write_text("[variant.tiny]\noperations = scale 20x30 inside\nquality = 50\n"
                    "[variant.same]\noperations = blur 2\nquality = 95\n")
    daemon = start(config=path)
    image = daemon.image(SMALL)
    assert {n: (v["width"], v["height"]) for n, v in image["variants"].items()} == {"tiny": (20, 15), "same": (320, 240)}
    assert pictures.decode(daemon.fetch(image, "same")).size == (320, 240)


# ---- the configuration, dumped ----

@pytest.mark.parametrize("settings", [(), ("server.root=/tmp/a;b#c d", "server.control=", "limits.pixels=1500K", "limits.idle_timeout=90s"),
                                      ("server.root='/tmp/x\\", "server.drain_delay=1500ms", "variant.new.operations=blur 2"),
                                      ("server.root=/a'b\"c", "stage.blur.threads=3", "scheduler.spin=7us")])
def test_dump_gives_back_what_is_in_force(tmp_path, settings):
    done = run("-T", "-c", CONFIG, *overrides(*settings))
    assert done.returncode == 0 and not done.stderr
    path = tmp_path / "dumped.ini"
    path.write_text(done.stdout)
    again = run("-T", "-c", path)
    assert again.returncode == 0 and again.stdout == done.stdout
    assert run("-t", "-q", "-c", path).returncode == 0
    for setting in settings:
        assert setting.split("=", 1)[1].split("=")[0] in done.stdout


def test_dump_has_every_key():
    """Those of --keys, in sections for all stages and variants."""
    dumped = run("-T").stdout
    section = ""
    for line in run("--keys").stdout.splitlines():
        if match := re.match(r";?\[([a-z_.]+)(NAME)?\]", line):
            section = match[1]
        elif match := re.match(r";?([a-z_]+) =", line):
            assert re.search(rf"^\[{section}[^]]*\]\n(?:[^[]*\n)?{match[1]} = ", dumped, re.M), (section, match[1])


def test_dump_through_a_pipe():
    script = 'exec "$0" -t -c <("$0" -T -o server.root=/tmp/x)'
    done = subprocess.run(["bash", "-c", script, *command()], capture_output=True, text=True)
    if not IS_SANITIZED:
        assert done.returncode == 0, done.stderr


def test_dump_of_what_is_wrong():
    done = run("-T", "-o", "limits.parts=many")
    assert done.returncode == 78 and not done.stdout and "limits.parts" in done.stderr
    done = run("-T", "-o", "server.root=/a;\"'")
    assert done.returncode == 1 and not done.stdout and "quotation" in done.stderr


# ---- start ----

def test_second_daemon_on_the_same_port(start, tmp_path):
    first = start()
    second = Daemon(tmp_path / "other", listen=f"127.0.0.1:{first.port}", wait=False)
    assert second.wait_exit() not in (0, 2), "it shares the port in silence"
    second.assert_no_alarm()
    assert str(first.port) in second.log and "ready on" not in second.log
    assert first.upload(SMALL).status == 201


def test_second_daemon_on_the_same_store(start):
    first = start()
    second = Daemon(first.store, wait=False)
    assert second.wait_exit() not in (0, 2)
    second.assert_no_alarm()
    assert str(first.store) in second.log and "ready on" not in second.log
    assert first.upload(SMALL).status == 201


def test_store_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "no" / "parent"):
        daemon = Daemon(root, wait=False)
        assert daemon.wait_exit() not in (0, 2)
        daemon.assert_no_alarm()
        assert str(root) in daemon.log


def test_address_that_is_not_ours(tmp_path):
    daemon = Daemon(tmp_path / "store", listen="203.0.113.1:0", wait=False)
    assert daemon.wait_exit() not in (0, 2)
    assert "203.0.113.1" in daemon.log


def test_ready_line(start):
    daemon = start()
    line = next(line for line in daemon.lines if "ready on" in line)
    assert re.match(r"<[56]>", line), "a priority for the journal"
    assert daemon.port > 0
    assert all(re.match(r"<[3-7]>", line) for line in daemon.lines), daemon.log


def test_log_level(start):
    daemon = start("log.level=debug")
    assert daemon.upload(SMALL).status == 201 and daemon.upload(b"text").status == 415
    assert all(re.match(r"<[3-7]>", line) for line in daemon.lines), daemon.log


@pytest.mark.skipif(IS_SANITIZED, reason="says nothing about the product")
def test_start_takes_less_than_100_ms(start):
    """Of a processor; where others want that, too, it takes longer."""
    def cpu_seconds(_):
        return start().cpu_seconds()
    assert min(map(cpu_seconds, range(5))) < 0.1


# ---- stop ----

def drain_under_load(daemon, number):
    """Eight uploads are on their way when the signal comes; one of them is complete only after that. Their answers."""
    clients = [daemon.client(timeout=slow(60)) for _ in range(8)]
    for c in clients:
        assert c.request("GET", "/healthz").status == 200
    for c in clients[:7]:
        c.send(c.head("POST", "/images", LARGE, [JPEG]) + LARGE)
    last = clients[7].head("POST", "/images", SMALL, [JPEG]) + SMALL
    clients[7].send(last[:len(last) // 2])
    assert eventually(lambda: all(daemon.has_read(c) for c in clients))
    daemon.signal(number)
    assert eventually(daemon.refuses_connections)
    clients[7].send(last[len(last) // 2:])
    answers = [c.answer() for c in clients]
    for c in clients:
        assert c.is_closed()
        c.close()
    assert answers[7].closes
    return answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_drain_under_load(start, number):
    daemon = start()
    for answer in drain_under_load(daemon, number):
        assert answer.status == 201, answer
        (image,) = answer.json()["images"]
        for name, variant in image["variants"].items():
            data = (daemon.store / image["id"][-2:] / image["id"] / f"{name}.jpg").read_bytes()
            assert len(data) == variant["bytes"]
            pictures.decode(data)
    assert daemon.wait_exit() == 0
    with pytest.raises(ConnectionRefusedError):
        daemon.client()
    assert not daemon.leftovers()
    daemon.assert_no_alarm()


def test_drain_finishes_what_was_answered_early(start):
    """An upload that was answered with 202 is stored before the daemon goes."""
    daemon = start()
    ids = [daemon.upload(LARGE, headers=[("Prefer", "respond-async")]).json()["images"][0]["id"] for _ in range(4)]
    daemon.stop(30)
    for ident in ids:
        directory = daemon.store / ident[-2:] / ident
        image = json.loads((directory / "image.json").read_text())
        assert all((directory / f"{n}.jpg").stat().st_size == v["bytes"] for n, v in image["variants"].items())


def test_drain_with_idle_connections_is_quick(start):
    daemon = start()
    clients = [daemon.client() for _ in range(10)]
    for c in clients[:5]:
        assert c.request("GET", "/healthz").status == 200
    started = time.monotonic()
    daemon.stop()
    assert time.monotonic() - started < slow(15)  # of the 30 s that it may take
    for c in clients:
        c.close()


def test_drain_refuses_new_work(start):
    """While an upload keeps it alive: no new connections, and it says that it is not ready."""
    daemon = start()
    busy, other = daemon.client(), daemon.client()
    assert other.request("GET", "/readyz").status == 200
    busy.send(busy.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
    other.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n")
    assert eventually(lambda: daemon.has_read(busy) and daemon.has_read(other))
    daemon.signal(signal.SIGTERM)
    assert eventually(daemon.refuses_connections)
    other.send(b"\r\n")
    answer = other.answer()
    assert (answer.status, answer.slug) == (503, "draining") and answer.closes
    assert daemon.is_alive()
    busy.send(SMALL[1000:])
    answer = busy.answer()
    assert answer.status == 201 and answer.closes
    assert daemon.wait_exit() == 0


def test_drain_has_an_end(start):
    daemon = start("server.drain_timeout=300ms")
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        started = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_exit() == 1
        assert 0.25 < time.monotonic() - started < slow(15)
    assert "drain_timeout is over" in daemon.log
    daemon.assert_no_alarm()


@pytest.mark.parametrize("first, second", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_second_signal_exits_at_once(start, first, second):
    daemon = start()
    with daemon.client() as c:
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL[:1000])
        assert eventually(lambda: daemon.has_read(c))
        daemon.signal(first)
        assert eventually(daemon.refuses_connections)
        time.sleep(0.3)
        assert daemon.is_alive(), "an upload is on its way"
        started = time.monotonic()
        daemon.signal(second)
        assert daemon.wait_exit() == 1
        assert time.monotonic() - started < slow(15)  # of the 30 s that it would wait


def test_terminated_while_starting(tmp_path):
    """The signal may come at any moment of the start: a clean end or the default action, never a hang."""
    for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.04):
        daemon = Daemon(tmp_path / f"store{delay}", wait=False)
        time.sleep(slow(delay))
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_exit() in (0, -signal.SIGTERM)
        daemon.assert_no_alarm()


def test_sigpipe_is_ignored(start):
    daemon = start()
    daemon.signal(signal.SIGPIPE)
    time.sleep(0.05)
    assert daemon.upload(SMALL).status == 201


# ---- cost of doing nothing ----

@pytest.mark.skipif(IS_SANITIZED, reason="says nothing about the product")
def test_idle_costs_nothing(start):
    """Below 0.1 % of a core: fresh, after a burst of uploads, and with connections that are kept."""
    daemons = [start(), start(), start()]
    for daemon in daemons[1:]:
        threads = [threading.Thread(target=lambda d=daemon: [d.image(SMALL) for _ in range(10)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    kept = [daemons[2].client() for _ in range(4)]
    assert all(c.request("GET", "/healthz").status == 200 for c in kept)

    def spend(seconds):
        before = [d.cpu_seconds() for d in daemons]
        time.sleep(seconds)
        return [d.cpu_seconds() - b for d, b in zip(daemons, before)]

    assert eventually(lambda: not any(spend(0.2))), "there is no rest"  # what the uploads left to be done
    spent = spend(3)
    for c in kept:
        c.close()
    assert max(spent) < 3 * 0.001, f"seconds of CPU in 3 s idle (fresh, after uploads, with connections): {spent}"


def test_threads_do_not_grow(start):
    """Work makes no threads: their number is that of the start."""
    daemon = start()

    def count():
        return int(re.search(r"Threads:\s+(\d+)", open(f"/proc/{daemon.pid}/status").read())[1])
    before = count()
    threads = [threading.Thread(target=daemon.image, args=(SMALL,)) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert count() == before


def test_policy_is_the_one_asked_for(start):
    daemon = start()
    stats = json.dumps(daemon.get("/stats").json())
    assert f'"{POLICY or "drain"}"' in stats


def test_runs_in_the_foreground_without_a_terminal(start):
    daemon = start()
    assert daemon.is_alive()
    children = subprocess.run(["ps", "--ppid", str(daemon.pid), "-o", "pid="], capture_output=True, text=True).stdout
    assert not children.strip(), "it forks nothing"
