"""`make install` into a temporary directory: programs, man pages, systemd units and completion.
Needs mandoc, systemd-analyze and bash, but no running systemd."""

import ctypes
import errno
import os
import pathlib
import pty
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import pytest

sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ("darkroomd", "darkroom-load", "darkroom-dataset")
PROGRAMS = (*COMMANDS, "darkroom-decode")  # which has no options
PAGES = ("man8/darkroomd.8", "man5/darkroomd.ini.5", "man7/darkroom-http.7",
         "man7/darkroom-scale.7", "man7/darkroom-store.7", "man7/darkroom-scheduling.7",
         "man8/darkroom-decode.8", "man1/darkroom-load.1", "man1/darkroom-dataset.1")


def run(*words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True,
                          timeout=600, **options)


def make(*words):
    done = run("make", "-s", "-C", ROOT, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def files(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*")
                  if not p.is_dir() or p.is_symlink())


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Installs with PREFIX=/usr. Returns the root directory."""
    root = tmp_path_factory.mktemp("installed")
    make("install", f"DESTDIR={root}", "PREFIX=/usr")
    return root


# ---- installation ----

def test_install_puts_files_in_their_places(installed):
    assert files(installed) == sorted([
        "etc/darkroom/darkroomd.ini",
        *(f"usr/bin/{p}" for p in PROGRAMS),
        *(f"usr/share/man/{p}" for p in PAGES),
        *(f"usr/lib/systemd/system/{u}" for u in (
            "darkroomd.service", "darkroomd@.service", "darkroomd.socket", "darkroom-check.service",
            "darkroom-check@.service", "darkroom-check.timer", "darkroom-check@.timer")),
        *(f"usr/share/bash-completion/completions/{p}" for p in COMMANDS),
        *(f"usr/share/doc/darkroom/{name}" for name in ("LICENSE", "README.md", "CHANGES.md")),
        *(f"usr/share/doc/darkroom/{path.relative_to(ROOT / 'conf')}"
          for folder in ("proxy", "container", "kubernetes", "monitoring")
          for path in (ROOT / "conf" / folder).iterdir())])
    for p in COMMANDS:
        assert run(installed / "usr/bin" / p, "--version").returncode == 0
    assert run(installed / "usr/bin/darkroomd", "-t", "-c",
               installed / "etc/darkroom/darkroomd.ini").returncode == 0


def test_all_files_have_the_prefix(tmp_path):
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/opt/dr", "SYSCONFDIR=/srv/etc")
    unit = (tmp_path / "opt/dr/lib/systemd/system/darkroomd.service").read_text()
    assert "ExecStart=/opt/dr/bin/darkroomd -c /srv/etc/darkroom/darkroomd.ini\n" in unit
    assert "/usr/bin" not in unit
    for page in PAGES:
        text = (tmp_path / "opt/dr/share/man" / page).read_text()
        assert "@" + "SYSCONFDIR" not in text
        assert "/etc/darkroom" not in text.replace("/srv/etc/darkroom", "")


def test_uninstall_keeps_only_the_configuration(tmp_path):
    config = tmp_path / "etc/darkroom/darkroomd.ini"
    config.parent.mkdir(parents=True)
    config.write_text("; mine\n")
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert config.read_text() == "; mine\n"
    make("uninstall", f"DESTDIR={tmp_path}", "PREFIX=/usr")
    assert files(tmp_path) == ["etc/darkroom/darkroomd.ini"]


def test_programs_are_hardened(installed):
    done = run(ROOT / "scripts/check-hardening", *(installed / "usr/bin" / p for p in PROGRAMS))
    assert done.returncode == 0, done.stdout + done.stderr
    # A file does not show these.
    flags = (ROOT / "build/plain/flags").read_text()
    probe = run("sh", "-c", "echo | ${CC:-gcc} -O2 -D_FORTIFY_SOURCE=3 -Werror -include stdlib.h "
                "-x c -c -o /dev/null -")
    assert ("-D_FORTIFY_SOURCE=3" in flags) == (probe.returncode == 0), flags


def test_programs_that_are_not_hardened_are_found(tmp_path):
    """The check is not empty: it finds each property missing in a program without the flags."""
    source = tmp_path / "plain.c"
    source.write_text("int main(void) { volatile char a[9999]; a[0] = 0; return a[0]; }\n")
    words = ["gcc", "-O0", "-no-pie", "-fno-stack-protector", "-U_FORTIFY_SOURCE",
             "-fno-stack-clash-protection",
             "-fcf-protection=none" if os.uname().machine == "x86_64" else "-O0", "-Wl,-z,lazy",
             "-Wl,-z,norelro", "-Wl,-z,execstack", "-o", tmp_path / "plain", source]
    assert run(*words).returncode == 0
    done = run(ROOT / "scripts/check-hardening", tmp_path / "plain")
    found = ["fixed address", "(PIE)", "GNU_RELRO", "BIND_NOW", "executable stack",
             "stack protector", "_FORTIFY_SOURCE"]
    if os.uname().machine == "x86_64":
        found += ["shadow stacks", "expected -fcf-protection", "probe its stack"]
    assert done.returncode == 1
    assert [w for w in found if w not in done.stdout] == [], done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("owner, mode, words, user", [
    ("nobody", 0o700, [], "nobody"), ("root", 0o755, [], "root"),
    ("nobody", 0o700, ["-o", "log.access_file=stderr"], "root")])
def test_first_start_as_root_becomes_nobody(owner, mode, words, user):
    """scripts/run, where nobody can read the sources and write the store."""
    reachable = run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "test", "-r",
                    ROOT / "conf/darkroomd.ini").returncode == 0
    if not reachable:
        pytest.skip("the sources are in a directory that nobody cannot enter")
    with tempfile.TemporaryDirectory(prefix="darkroom-", dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        store = pathlib.Path(directory) / "store"
        store.mkdir()
        shutil.chown(store, owner)
        store.chmod(mode)
        daemon = subprocess.Popen([ROOT / "scripts/run", "-o", "server.listen=127.0.0.1:0", *words],
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                  env={**os.environ, "DARKROOM_STORE": str(store)})
        log = ""
        while " ready on " not in log and (line := daemon.stderr.readline()):
            log += line
        try:
            assert " ready on " in log, log
            assert pathlib.Path(f"/proc/{daemon.pid}/status").read_text().count(
                f"Uid:\t{pwd.getpwnam(user).pw_uid}\t") == 1
        finally:
            daemon.send_signal(signal.SIGTERM)
            log += daemon.communicate(timeout=120)[1]
        assert daemon.returncode == 0, log


def test_run_builds_what_the_daemon_executes():
    """Without darkroom-decode, which nothing else builds for it, it would accept JPEGs only."""
    built = re.search(r"^make .*$", (ROOT / "scripts/run").read_text(), re.MULTILINE)[0].split()
    assert {"build/darkroomd", "build/darkroom-decode"} <= set(built)


def test_package_needs_what_the_setup_installs():
    """The package must build where nothing else is installed."""
    setup = (ROOT / "scripts/setup").read_text()
    lists = re.findall(r'^packages="(.*)"$', setup, re.M)
    needed = set().union(*(text.split() for text in lists))
    control = (ROOT / "conf/debian/control").read_text()
    build = set(re.findall(r"[a-z][a-z0-9-]+",
                           re.search(r"Build-Depends: (.*?)^[A-Z]", control, re.M | re.S)[1]))
    # Every builder has a compiler, and curl is for trying the daemon.
    assert needed - {"$packages", "gcc", "libc6-dev", "make", "curl"} == build - {
        "debhelper-compat"}


@pytest.mark.skipif(not shutil.which("logrotate"), reason="needs logrotate")
def test_logs_of_the_service_and_of_instances_are_rotated(tmp_path):
    rules, called = tmp_path / "rules", tmp_path / "called"
    rules.write_text((ROOT / "conf/debian/darkroom.logrotate").read_text().replace(
        "/var/log/", f"{tmp_path}/"))
    rules.chmod(0o600)
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{called}\n')
    (tmp_path / "systemctl").chmod(0o755)
    logs = [tmp_path / name / "access.log" for name in ("darkroom", "darkroom-one")]
    for log in logs:
        log.parent.mkdir(mode=0o750)
        log.write_text("a line\n")
    done = run("logrotate", "--force", "--state", tmp_path / "state", rules,
               env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert [log.with_name("access.log.1").exists() for log in logs] == [True, True]
    assert called.read_text() == "kill -s HUP --kill-whom=main darkroomd darkroomd@*\n"


# ---- man pages ----

@pytest.mark.parametrize("page", PAGES)
def test_man_page_has_no_warnings(installed, page):
    done = run("mandoc", "-T", "lint", "-W", "warning", installed / "usr/share/man" / page)
    assert done.returncode == 0 and not done.stdout, done.stdout


def rendered(installed, page):
    done = run("mandoc", "-T", "ascii", "-O", "width=400", installed / "usr/share/man" / page)
    assert done.returncode == 0, done.stderr
    return re.sub(".\b", "", done.stdout)


def test_man_page_has_every_key(installed):
    text = rendered(installed, "man5/darkroomd.ini.5")
    section = None
    for line in run(installed / "usr/bin/darkroomd", "--keys").stdout.splitlines():
        if match := re.match(r";?\[(.*)\]", line):
            section = match[1]
            assert f"[{section}]" in text
        elif match := re.match(r";?([a-z_]+) =( .+)?$", line):
            part = text[text.index(f"[{section}]"):]
            assert re.search(
                rf"^ *{match[1]} =\s*{re.escape((match[2] or '').strip())}( \(live\))?$", part,
                re.M), (section, line)


@pytest.mark.parametrize("program, page", zip(COMMANDS, (PAGES[0], *PAGES[-2:])))
def test_man_page_has_every_option(installed, program, page):
    text = rendered(installed, page)
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+",
                             run(installed / "usr/bin" / program, "--help").stdout))
    assert len(options) > 5
    for option in options:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), option


# ---- units ----

@pytest.fixture
def units(installed, tmp_path):
    """Returns the units with the paths of the installed programs."""
    for unit in (installed / "usr/lib/systemd/system").iterdir():
        (tmp_path / unit.name).write_text(
            unit.read_text().replace("/usr/bin/", f"{installed}/usr/bin/"))
    return tmp_path


def test_units_have_no_errors(units):
    for template in list(units.glob("*@.*")):
        (units / template.name.replace("@", "@one")).symlink_to(template.name)
    done = run("systemd-analyze", "--man=no", "verify",
               *(unit for unit in units.iterdir() if "@." not in unit.name))
    assert done.returncode == 0 and "darkroomd" not in done.stderr, done.stderr


def settings(unit):
    return [line for line in unit.read_text().splitlines() if line and line[0] != "#"]


def test_an_instance_has_its_own_configuration_store_and_log(units):
    """In everything else it is the service."""
    one, many = (settings(units / f"darkroomd{suffix}.service") for suffix in ("", "@"))
    assert len(one) == len(many)
    changed = [line for was, line in zip(one, many) if was != line]
    command, reload_command = (line for line in changed if line.startswith("Exec"))
    assert command.endswith("darkroomd -c /etc/darkroom/%i.ini -o server.root=%S/darkroom-%i")
    assert reload_command.endswith("darkroomd -q -c /etc/darkroom/%i.ini "
                                   "-o server.root=%S/darkroom-%i ctl reload")
    assert [line for line in changed if not line.startswith("Exec")] == [
        "Description=darkroom image server %i", "User=darkroomd-%i", "StateDirectory=darkroom-%i",
        "LogsDirectory=darkroom-%i"]


@pytest.mark.parametrize("instance", ["", "@"])
def test_the_check_has_the_user_and_the_store_of_its_daemon(units, instance):
    """systemd would give the store to another user of the same StateDirectory=, below the daemon."""
    daemon, check = (dict(line.split("=", 1) for line in settings(units / f"{name}{instance}.service")
                          if "=" in line) for name in ("darkroomd", "darkroom-check"))
    for key in ("DynamicUser", "User", "StateDirectory", "StateDirectoryMode", "UMask"):
        assert check[key] == daemon[key], key
    assert check["ExecStart"] == daemon["ExecStart"] + " store check"


def test_a_moved_store_is_checked_with_the_settings_of_its_daemon():
    """The manual changes both units in the same way."""
    page = (ROOT / "src/daemon/darkroomd.8").read_text()
    lines = {unit: re.search(rf"^# systemctl edit {unit}\n((?:[^#.].*\n)+)", page.split(
        ".Ss Moving the store")[1], re.M)[1] for unit in ("darkroomd", "darkroom-check")}
    assert lines["darkroomd"] == lines["darkroom-check"]
    assert "User=darkroom\n" in lines["darkroomd"]


@pytest.mark.parametrize("unit, limits", [
    ("darkroomd.service", {"LimitCORE=0", "MemoryMax=2G", "TasksMax=896"}),
    ("darkroomd@.service", {"LimitCORE=0", "MemoryMax=2G", "TasksMax=896"}),
    ("darkroom-check.service", {"LimitCORE=0", "MemoryMax=256M", "TasksMax=4"})])
def test_units_bound_memory_and_threads_and_leave_no_core_dumps(units, unit, limits):
    found = [line for line in settings(units / unit)
             if re.match("(LimitCORE|MemoryMax|TasksMax)=", line)]
    assert sorted(found) == sorted(limits)


def test_service_has_the_memory_that_the_shipped_configuration_may_take(installed, units):
    """The bound is that of limits.memory_budget's help, with 192 threads: those of 128 cores. Tasks
    are enough for all threads that can be configured."""
    def value(name, text):
        number, unit = re.search(rf"^{name} ?= ?(\d+)([KMG]?)$", text, re.M).groups()
        return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]
    unit = (units / "darkroomd.service").read_text()
    config = run(installed / "usr/bin/darkroomd", "-T", "-c",
                 installed / "etc/darkroom/darkroomd.ini").stdout
    threads = 192
    most = (value("memory_budget", config) + (32 << 20) + threads * (4 << 20) + (64 << 20) +
            value("connections", config) * (32 << 10))
    assert most <= value("MemoryMax", unit)
    # Single threads: the main one, of the log, recovery, remakes, the sweep and the S3 store. Processes
    # that open files and look up names. Of darkroom-decode the three that stay, a child for each of
    # 32 slots, and one that ends.
    assert 3 * 256 + 6 + 2 + 3 + 2 * 32 <= value("TasksMax", unit)


def test_service_is_hardened(units):
    done = run("systemd-analyze", "security", "--offline=yes", units / "darkroomd.service")
    score = re.search(r"exposure level for darkroomd.service: ([\d.]+)", done.stdout)
    assert score and float(score[1]) <= 1.5, done.stdout + done.stderr


def expand(name, seen=()):
    """Returns the system calls of a group of systemd."""
    if not name.startswith("@"):
        return {name}
    words = [line.strip()
             for line in run("systemd-analyze", "syscall-filter", name).stdout.splitlines()[1:]]
    return set().union(*(expand(w) for w in words if w and not w.startswith("#")))


@pytest.fixture(scope="module")
def unit_calls(installed):
    """Returns the system calls that the unit allows."""
    unit = (installed / "usr/lib/systemd/system/darkroomd.service").read_text()
    may = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        calls = set().union(*(expand(w) for w in line.lstrip("~").split()))
        may = may - calls if line.startswith("~") else may | calls
    return may


def test_service_allows_the_system_calls_of_the_daemon(unit_calls):
    """The unit allows the calls of the daemon's own filter, and those that install it."""
    source = (ROOT / "src/daemon/sandbox/sandbox_calls.c").read_text()
    denied = {"name", "clone3", "execve", "execveat", "perf_event_open"}
    needed = set(re.findall(r"CALL\((\w+)\)", source)) - denied
    assert len(needed) > 80
    assert needed | {"seccomp", "prctl", "landlock_create_ruleset", "landlock_add_rule",
                     "landlock_restrict_self"} <= unit_calls, needed - unit_calls


@pytest.mark.parametrize("call", ["linkat", "memfd_create"])
def test_manual_names_calls_that_make_files_in_other_ways(installed, call):
    """The manual names them exactly as long as the sandbox allows them."""
    text = rendered(installed, PAGES[0])
    left = text[text.index("What the sandbox leaves"):text.index("What an operator must trust")]
    source = (ROOT / "src/daemon/sandbox/sandbox_calls.c").read_text()
    assert (f"CALL({call})" in source) == (f"{call}(2)" in left)


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


def restrict(calls):
    """Returns a function that restricts a process as the manager does: filter, address families,
    and a user without privileges."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(0x00050000 | errno.EPERM))
    for call in calls - {"socket"}:
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number != -1:
            assert seccomp.seccomp_rule_add(context, 0x7fff0000, number, 0) == 0
    for family in (1, 2, 10):
        equal = Comparison(0, 4, family, 0)
        seccomp.seccomp_rule_add_array(context, 0x7fff0000,
                                       seccomp.seccomp_syscall_resolve_name(b"socket"), 1,
                                       ctypes.byref(equal))

    def enter():
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setresgid(*[nobody.pw_gid] * 3)
            os.setresuid(*[nobody.pw_uid] * 3)
        os.umask(0o077)
        assert seccomp.seccomp_load(context) == 0
    return enter


@pytest.mark.parametrize("missing, notes",
                         [(set(), ("Landlock, version", "seccomp: only")),
                          ({"landlock_create_ruleset"}, ("no Landlock", "seccomp: only")),
                          ({"seccomp"}, ("Landlock, version", "seccomp: only"))],
                         ids=["all", "without Landlock", "without the call seccomp"])
def test_daemon_serves_under_the_units_restrictions(installed, unit_calls, missing, notes):
    """If the kernel lacks a feature, the daemon reports it and serves."""
    with tempfile.TemporaryDirectory(prefix="darkroom-", dir="/tmp") as directory:
        store, config, program = (pathlib.Path(directory) / name
                                  for name in ("store", "darkroomd.ini", "darkroomd"))
        shutil.copy(installed / "etc/darkroom/darkroomd.ini", config)
        shutil.copy(installed / "usr/bin/darkroomd", program)
        store.mkdir()
        for path in (directory, store):
            os.chmod(path, 0o777)
        daemon = subprocess.Popen([program, "-c", config, "-o", f"server.root={store}", "-o",
                                   "server.listen=127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
                                  preexec_fn=restrict(unit_calls - missing))
        log, url = "", None
        while not url and (line := daemon.stderr.readline()):
            log += line
            url = re.search(r"ready on (\S+)", line)
        try:
            assert url, log
            sample = (ROOT / "data/sample/lake.jpg").read_bytes()
            request = urllib.request.Request(url[1] + "/images", sample,
                                             {"Content-Type": "image/jpeg"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                assert answer.status == 201
            done = run(program, "-c", config, "-o", f"server.root={store}", "ctl", "policy", "seda")
            assert done.returncode == 0, done.stderr
        finally:
            daemon.send_signal(signal.SIGTERM)
            log += daemon.communicate(timeout=120)[1]
        assert daemon.returncode == 0, log
        assert all(note in log for note in notes) and not re.search(r"^<[34]>", log, re.M), log


def test_socket_is_at_the_default_address(installed):
    socket = (installed / "usr/lib/systemd/system/darkroomd.socket").read_text()
    default = re.search(r"^listen = (.*)$",
                        run(installed / "usr/bin/darkroomd", "-T").stdout, re.M)[1]
    assert f"ListenStream={default}\n" in socket


# ---- completion ----

def complete(installed, *words, script="darkroomd", function="_darkroomd"):
    """Returns the completions of the last word."""
    quoted = " ".join(f"'{w}'" for w in words)
    code = (f"source {installed}/usr/share/bash-completion/completions/{script}; "
            f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{' '.join(words)}'; "
            f"COMP_POINT=${{#COMP_LINE}}; {function}; "
            "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = run("bash", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_completion_offers_options_and_values(installed):
    program = str(installed / "usr/bin/darkroomd")
    assert {"--check", "-t", "--dump", "ctl", "store", "token"} <= set(complete(installed, program, ""))
    assert complete(installed, program, "--ver") == ["--verbose", "--version"]
    assert complete(installed, program, "ctl", "re") == ["reload", "remake"]
    assert complete(installed, program, "store", "re") == ["remove", "remake"]
    assert complete(installed, program, "store", "find", "--ne") == ["--newest"]
    assert complete(installed, program, "store", "check", "--re") == ["--repair", "--restart"]
    assert complete(installed, program, "store", "remove", "--ids", f"{installed}/etc/dark") == [
        f"{installed}/etc/darkroom"]
    assert complete(installed, program, "token", "up") == []
    assert complete(installed, program, "token", "name", "up") == ["upload"]
    assert "mg1" in complete(installed, program, "ctl", "policy", "")
    assert "stage.blur.threads" in complete(installed, program, "ctl", "set", "stage.b")
    assert set(complete(installed, program, "ctl", "set", "log.level", "")) == {
        "error", "warning", "notice", "info", "debug"}
    assert complete(installed, program, "-o", "server.ro") == ["server.root="]
    assert complete(installed, program, "-c", f"{installed}/etc/dark") == [
        f"{installed}/etc/darkroom"]


def test_completion_of_a_directory_adds_a_slash(installed):
    """The test needs a terminal, since bash itself adds the slash."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "-i"], {**os.environ, "TERM": "dumb"})
    shown = ""

    def until(pattern):
        nonlocal shown
        while not re.search(pattern, shown):
            assert select.select([terminal], [], [], 60)[0], shown
            shown += os.read(terminal, 4096).decode()
    script = "usr/share/bash-completion/completions/darkroomd"
    os.write(terminal, f"cd {installed}; source {script}; PS1=ready.; echo\n".encode())
    until(r"\nready\.")
    os.write(terminal, b"darkroomd -c etc/dark\t")
    try:
        until(r"etc/darkroom.")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert shown.endswith("etc/darkroom/"), shown


def test_completion_works_for_the_tools(installed):
    program = str(installed / "usr/bin/darkroom-load")
    assert complete(installed, program, "--ra", script="darkroom-load",
                    function="_darkroom_tool") == ["--ramp", "--rate"]
