"""darkroomd ctl top: the figures in a terminal, and without one. The terminals need python3-pyte."""

import re
import signal
import socket

import pytest

import pictures
from control import command, ctl, socket_of
from darkroom import PER_CONNECTION, eventually, overrides, slow
from darkroom import command as command_line
from terminal import Terminal, pyte

SMALL = pictures.photo_jpeg(320, 240, 2)
STAGES = ["accept_read", "http_parse", "form_decode", "jpeg_decode", "scale", "blur", "jpeg_encode",
          "disk_write", "stats"]
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
        assert [int(shown[name][1]), int(shown[name][7])] == [0, stats[name]["events"]], name
    assert "2 stored" in done.stdout and "rejected 0/s, 1 in all" in done.stdout
    assert re.search(r"(?m)^^ +1  unsupported-media-type$", done.stdout)
    workers = sum(len(g["workers"]) for g in daemon.get("/stats").json()["scheduler"]["groups"])
    assert sum(bool(re.match(r"(core|io|main|disk) \d+ +\d+ %", line)) for line in lines) == workers
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


@needs_terminal
def test_unknown_terminal_gets_one_table(top):
    _, terminal = top(environ={"TERM": "dumb"})
    assert terminal.process.wait(slow(20)) == 0
    assert terminal.shows("cannot use a terminal of the type dumb; printing once")
    assert b"\x1b" not in terminal.raw


# ---- the live table ----

@needs_terminal
def test_live_table_follows_stats(top):
    daemon, terminal = top(columns=100, rows=40)
    assert list(rows_of(terminal.lines)) == STAGES
    daemon.image(SMALL)

    def agrees():
        shown, stats = rows_of(terminal.lines), figures(daemon)
        return all(shown.get(name, [])[7:8] == [str(stats[name]["events"])] for name in STAGES[3:])
    assert eventually(agrees), terminal.text
    assert terminal.shows("3 stored") and terminal.shows("core 0")
    terminal.type("q")
    assert terminal.ends() == (0, True)


@needs_terminal
def test_keys_sort_and_explain(top):
    _, terminal = top(rows=30)

    def events(lines):  # -1: the line is drawn in part
        rows = rows_of(lines).values()
        return [int(row[7]) if row[7:] and row[7].isdigit() else -1 for row in rows]
    terminal.type("ssssss")
    assert terminal.shows("by events")
    assert terminal.shows(lambda lines: -1 not in events(lines) and
                          events(lines) == sorted(events(lines), reverse=True)), terminal.text
    assert list(rows_of(terminal.lines)) != STAGES
    terminal.type("r")
    assert terminal.shows("by events reversed")
    assert terminal.shows(lambda lines: events(lines) == sorted(events(lines)))
    terminal.type("?")
    assert terminal.shows("switch the policy") and "jpeg_decode" not in terminal.text
    terminal.type(" ")
    assert terminal.shows("jpeg_decode")


@needs_terminal
@pytest.mark.skipif(PER_CONNECTION, reason="it has few threads for the requests of the test")
def test_policy_is_switched_by_enter_only(top):
    daemon, terminal = top("scheduler.policy=cohort")

    def policy():
        return daemon.get("/stats").json()["scheduler"]["policy"]
    terminal.type("p")
    assert terminal.shows("> cohort")
    terminal.type("j")
    assert terminal.shows("> mg1")
    terminal.type("\x1b")
    assert terminal.shows("policy cohort") and policy() == "cohort"
    terminal.type("p")
    assert terminal.shows("> cohort")
    terminal.type("\x1b[B")  # down
    assert terminal.shows("> mg1")
    terminal.type("\r")
    assert terminal.shows(lambda lines: lines[-1].startswith("active: policy mg1"))
    assert policy() == "mg1"
    assert terminal.shows(lambda lines: "policy mg1" in lines[0])


@needs_terminal
def test_screen_may_become_small_and_large(top):
    _, terminal = top()
    terminal.resize(40, 10)
    assert terminal.shows(lambda lines: len(lines) == 10 and lines[0].startswith("policy")
                          and lines[-1].startswith("q quit"))
    assert terminal.shows(lambda lines: any(re.fullmatch(r"stage +queue +out/s +ms +busy", line)
                                            for line in lines)), terminal.text
    assert "stats" not in rows_of(terminal.lines)
    for _ in range(30):
        terminal.type("j")
    assert terminal.shows("disk 1"), terminal.text
    terminal.type("\x1b[1~")  # home
    terminal.resize(3, 1)
    terminal.resize(100, 40)
    assert terminal.shows(lambda lines: list(rows_of(lines)) == STAGES and "now in it"
                          in "".join(lines)), terminal.text


@needs_terminal
@pytest.mark.parametrize("locale, bar", [("C", "#"), ("C.UTF-8", "\u2588")])
def test_bars_are_those_of_the_locale(start, locale, bar):
    daemon = start()
    large = pictures.photo_jpeg(1600, 1200, 3)
    with Terminal(words_of(daemon), environ={"LC_ALL": locale}) as terminal:
        def draws():
            daemon.image(large)
            return any(bar in line for line in terminal.lines if re.match(r"(core|main) ", line))
        assert eventually(draws), terminal.text
        assert locale != "C" or terminal.raw.isascii()


@needs_terminal
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_restores_the_terminal(top, number):
    _, terminal = top(environ={"TERM": "xterm"})  # it has a second screen
    assert b"\x1b[?1049h" in terminal.raw and b"\x1b[?25l" in terminal.raw
    terminal.process.send_signal(number)
    assert terminal.ends() == (-number, True)


@needs_terminal
def test_terminal_that_goes_ends_the_program(start):
    daemon = start()
    terminal = Terminal(words_of(daemon))
    assert terminal.shows("jpeg_decode")
    process = terminal.process
    terminal.hang_up()
    assert process.wait(slow(20)) in (0, -signal.SIGHUP)


@needs_terminal
def test_daemon_that_goes_is_waited_for(top, start):
    daemon, terminal = top()
    daemon.stop()
    assert terminal.shows(lambda lines: lines[0] == "no daemon listens there; retrying")
    again = start(store=daemon.store)
    again.image(SMALL)
    assert terminal.shows(lambda lines: "policy" in lines[0] and "1 stored" in "".join(lines)), \
        terminal.text
    terminal.type("q")
    assert terminal.ends() == (0, True)


@needs_terminal
def test_silence_of_the_daemon_is_told(top):
    daemon, terminal = top()
    daemon.signal(signal.SIGSTOP)
    try:
        assert terminal.shows(lambda lines: re.match(r"no figures for \d+ s; waiting", lines[0]))
        terminal.type("p\r")
        assert terminal.shows("switching the policy")
        terminal.type("q")
        assert terminal.ends() == (0, True)
    finally:
        daemon.signal(signal.SIGCONT)
