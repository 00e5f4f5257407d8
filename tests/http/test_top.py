"""darkroomd ctl top: the figures in a terminal, and without one. The terminals need python3-pyte."""

import re
import signal
import socket
import subprocess

import pytest

import pictures
from control import command, ctl, socket_of
from darkroom import eventually, overrides, slow
from darkroom import command as command_line
from terminal import Terminal, pyte

SMALL = pictures.photo_jpeg(320, 240, 2)
STAGES = ["accept_read", "http_parse", "form_decode", "jpeg_decode", "scale", "blur", "jpeg_encode",
          "disk_write", "stats", "disk_read"]
needs_terminal = pytest.mark.skipif(not pyte, reason="needs python3-pyte")


@pytest.fixture
def top(start):
    """top(...) returns a daemon that has stored two images, and its figures in a terminal."""
    opened = []

    def open_top(*settings, wait=True, **options):
        daemon = start(*settings)
        for _ in range(2):
            daemon.image(SMALL)
        opened.append(Terminal(words_of(daemon), **options))
        assert not wait or opened[-1].shows("jpeg_decode"), opened[-1].text
        return daemon, opened[-1]

    yield open_top
    for terminal in opened:
        terminal.__exit__()


def words_of(daemon, *options):
    return command_line(*overrides(f"server.root={daemon.store}"), "ctl", "top", *options)


def rows_of(lines):
    """Returns the cells of each stage in the order of the lines."""
    return {line.split()[0]: line.split() for line in lines if line.split()[:1] and
            line.split()[0] in STAGES}


def figures(daemon):
    return {s["name"]: s for s in daemon.get("/stats").json()["stages"]}


# ---- one table ----

def test_one_table_has_the_figures_of_stats(start):
    daemon = start()
    for _ in range(2):
        daemon.image(SMALL)
    assert daemon.upload(b"no image").status == 415
    done = ctl(daemon, "top", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    shown, stats = rows_of(lines), figures(daemon)
    assert list(shown) == STAGES
    for name in STAGES[2:]:  # the others serve GET /stats, too
        assert [int(shown[name][1]), int(shown[name][6])] == [0, stats[name]["events"]], name
    assert "2 stored" in done.stdout and "rejected 0/s, 1 in all" in done.stdout
    assert re.search(r"(?m)^ +1  unsupported-media-type$", done.stdout)
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)


def test_wrong_words_are_refused(start):
    daemon = start()
    assert ctl(daemon, "top", "x").returncode == 2
    assert ctl(daemon, "status", "--once").returncode == 2
    assert command(daemon, "top x")[0] == 2
    done = ctl(daemon, "top", settings=[f"server.root={daemon.store}/none"])
    assert done.returncode == 1 and "no daemon listens there" in done.stderr


def test_clients_are_limited_as_watchers_of_the_stream(start):
    """The daemon tells the one that is too many."""
    daemon = start()
    sockets = [socket.socket(socket.AF_UNIX) for _ in range(65)]
    for s in sockets:
        s.settimeout(slow(60))
        s.connect(str(socket_of(daemon)))
        s.sendall(b"top\n")
        first = s.recv(2)
        assert first == (b"1\n" if s is sockets[-1] else b"0\n")
    done = ctl(daemon, "top", "--once")
    assert done.returncode == 1 and "too many clients read the figures" in done.stderr
    for s in sockets:
        s.close()
    assert eventually(lambda: ctl(daemon, "top", "--once").returncode == 0)


def test_refusal_cannot_control_the_terminal(tmp_path):
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        words = command_line(*overrides(f"server.control={path}"), "ctl", "top", "--once")
        with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
            client, _ = listener.accept()
            with client:
                client.sendall(b"1\n\x1b[2Jno\xc2\x9b\n")
            assert process.stderr.read().endswith(b": ?[2Jno??\n")
    assert process.returncode == 1


@needs_terminal
def test_terminal_without_escapes_gets_one_table(top):
    _, terminal = top(environ={"TERM": "dumb"})
    assert terminal.process.wait(slow(20)) == 0
    assert b"\x1b" not in terminal.raw


# ---- the live table ----

@needs_terminal
def test_live_table_follows_stats(top):
    daemon, terminal = top(columns=100, rows=40)
    assert terminal.shows(lambda lines: list(rows_of(lines)) == STAGES), terminal.text
    daemon.image(SMALL)

    def agrees():
        shown, stats = rows_of(terminal.lines), figures(daemon)
        return all(shown.get(name, [])[6:7] == [str(stats[name]["events"])] for name in STAGES[3:])
    assert eventually(agrees), terminal.text
    assert terminal.shows("3 stored")
    terminal.type("\x03")
    assert terminal.ends() == (-signal.SIGINT, True)


@needs_terminal
def test_screen_may_become_small_and_large(top):
    _, terminal = top()
    terminal.resize(20, 10)
    assert terminal.shows(lambda lines: lines[0] == "darkroomd: policy dr" and
                          lines[8].startswith("form_decode") and not lines[9]), terminal.text
    terminal.resize(3, 1)
    terminal.resize(100, 40)
    assert terminal.shows(lambda lines: list(rows_of(lines)) == STAGES and "cores  "
                          in "".join(lines)), terminal.text


@needs_terminal
def test_terminal_that_goes_ends_the_program(start):
    daemon = start()
    terminal = Terminal(words_of(daemon))
    assert terminal.shows("jpeg_decode")
    process = terminal.process
    terminal.hang_up()
    assert process.wait(slow(20)) in (1, -signal.SIGHUP)


@needs_terminal
def test_daemon_that_goes_is_waited_for(top, start):
    daemon, terminal = top()
    daemon.stop()
    assert terminal.shows(lambda lines: lines[0] == "no daemon listens there; retrying")
    again = start(store=daemon.store)
    again.image(SMALL)
    assert terminal.shows(lambda lines: "policy" in lines[0] and "1 stored" in "".join(lines)), \
        terminal.text


@needs_terminal
def test_silence_of_the_daemon_is_told(top):
    daemon, terminal = top()
    daemon.signal(signal.SIGSTOP)
    try:
        assert terminal.shows(lambda lines: lines[0] == "the daemon does not answer; retrying")
    finally:
        daemon.signal(signal.SIGCONT)
    assert terminal.shows(lambda lines: "policy" in lines[0]), terminal.text
