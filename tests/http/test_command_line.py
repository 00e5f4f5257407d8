"""The daemon's command line and configuration: what it accepts, how it reports errors, and what it
prints."""

import os
import re
import shutil
import subprocess

import pytest

import pictures
from darkroom import CONFIG, command, every_key, overrides, run

SMALL = pictures.photo_jpeg(320, 240, 2)
NO_ORIGINALS = "server.keep_originals=no"
KEY_LINES = every_key().splitlines()


# ---- command line ----

def test_help_lists_the_options():
    done = run("--help")
    assert done.returncode == 0 and not done.stderr
    for word in ("-c", "-t", "-o", "--help", "--version", "darkroomd"):
        assert word in done.stdout


def test_version_is_one_line():
    done = run("--version")
    assert done.returncode == 0 and not done.stderr
    assert re.fullmatch(r"darkroomd \d+\.\d+\S*.*\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--version", "-v"], ["-VV"], ["-vV"]])
def test_verbose_version_lists_the_libraries(arguments):
    done = run(*arguments)
    assert done.returncode == 0 and not done.stderr
    assert re.match(r"darkroomd \d+\.\d+", done.stdout)
    for word in ("compiler", "libjpeg-turbo", "libevent", "llhttp", "hwloc", "libseccomp", "nettle",
                 "glibc"):
        assert re.search(rf"^{word} +.*\d", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("arguments",
                         [["--nonsense"], ["-Z"], ["-c"], ["-o"], ["stray"], ["-t", "stray"]])
def test_wrong_usage_exits_with_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and not done.stdout
    assert "darkroomd" in done.stderr and len(done.stderr.splitlines()) >= 1


@pytest.mark.parametrize("arguments, meant", [
    (["stor", "list"], "; did you mean store?"), (["--chek"], "Did you mean --check?"),
    (["--polcy=drain"], "Did you mean -o SECTION.policy=VALUE?"),
    (["store", "lst"], "; did you mean list?")])
def test_a_mistyped_word_gets_a_suggestion(arguments, meant):
    done = run(*arguments)
    assert done.returncode == 2 and meant in done.stderr, done.stderr


def test_a_foreign_word_gets_none():
    for arguments in (["strange"], ["--strange"], ["store", "strange"]):
        assert "ou mean" not in run(*arguments).stderr


# ---- configuration ----

def check(tmp_path, text, *settings):
    """Runs darkroomd -t for a file with this text. Returns its exit status and messages."""
    path = tmp_path / "test.ini"
    path.write_text(text)
    done = run("-c", path, "-t", *overrides(*settings))
    return done.returncode, done.stdout + done.stderr


def test_shipped_configuration_is_valid():
    assert run("-c", CONFIG, "-t").returncode == 0


def test_missing_configuration_is_reported(tmp_path):
    done = run("-c", tmp_path / "nope.ini", "-t")
    assert done.returncode in (1, 78) and "nope.ini" in done.stderr
    assert run("-c", tmp_path, "-t").returncode in (1, 78)


def keys():
    """Returns [(index of line, section, key)] of --keys."""
    section, found = "", []
    for i, line in enumerate(KEY_LINES):
        if match := re.match(r"\[([^]]+)\]", line):
            section = match[1]
        elif match := re.match(r"([a-z_]+)\s*=", line):
            found.append((i, section, match[1]))
    return found


def test_shipped_configuration_is_complete():
    listed = {(s, k) for _, s, k in keys()} | {(s, m[1]) for s, m in commented()}
    wanted = {"server": "listen root respond_after durability keep_originals damaged allow_origin "
                        "wait_timeout drain_timeout",
              "log": "level access access_file",
              "scheduler": "policy threads service",
              "limits": "header_bytes body_bytes parts pixels pixels_progressive scans "
                        "image_time width height connections connections_per_client "
                        "images_in_flight images_per_client header_timeout "
                        "body_timeout body_rate idle_timeout memory_budget free_bytes",
              "variant.medium": "operations quality", "variant.thumb": "operations quality",
              "variant.blurred": "operations quality"}
    missing = [(s, k) for s, names in wanted.items() for k in names.split() if (s, k) not in listed]
    assert not missing


def commented():
    section = ""
    for line in KEY_LINES:
        if match := re.match(r"\[([^]]+)\]", line):
            section = match[1]
        elif match := re.match(r"[;#]\s*([a-z_]+)\s*=", line):
            yield section, match


@pytest.mark.parametrize("index, section, key", keys(), ids=lambda v: str(v))
@pytest.mark.parametrize("bad", [pytest.param("x" * 300, id="long text"), "-1"])
def test_every_key_is_validated(tmp_path, index, section, key, bad):
    if bad == "-1" and (section, key) == ("server", "root"):
        pytest.skip("every name is valid")
    lines = list(KEY_LINES)
    lines[index] = f"{key} = {bad}"
    status, text = check(tmp_path, "\n".join(lines) + "\n")
    assert status == 78, text
    assert f"test.ini:{index + 1}" in text and key in text, text


@pytest.mark.parametrize("text, line, word", [
    ("[server]\nnonsense = 1\n", 2, "nonsense"), ("[nonsense]\nx = 1\n", (1, 2), "nonsense"),
    ("[server]\nlisten = 127.0.0.1:8080\nlisten = 127.0.0.1:8081\n", 3, "listen"),
    ("[limits]\n\n\nparts = many\n", 4, "many"), ("[limits]\npixels = 10X\n", 2, "10X"),
    ("[limits]\nheader_timeout = 10\n[limits]\nbody_timeout = ten\n", 4, "ten"),
    ("[scheduler]\npolicy = best\n", 2, "best"), ("[experiment.blur]\nkind = own\n", 2, "own"),
    ("[stage.nonsense]\nthreads = 1\n", (1, 2), "nonsense"),
    ("[stage.blur]\nthreads = 257\n", 2, "257"),
    ("[variant.a]\noperations = scale 1x1 inside\nquality = 0\n", 3, "quality"),
    ("[variant.a]\noperations = turn 90\nquality = 80\n", 2, "turn"),
    ("[variant.a]\noperations = scale axb inside\nquality = 80\n", 2, "axb"),
    ("[variant.a]\noperations = scale 10x10 inside, blur -3\nquality = 80\n", 2, "-3"),
    ("[variant.a/b]\noperations = scale 10x10 inside\nquality = 80\n", (1, 2, 3), "a/b"),
    ("[server]\nlisten = 127.0.0.1:99999\n", 2, "99999"),
    ("[server]\nlisten = nowhere\n", 2, "nowhere"),
    ("[server]\nkeep_originals = yes\n[variant.original]\noperations = scale 10x10 inside\n"
     "quality = 80\n", 3, "original"),
    ("[server]\nlisten\n", 2, ""), ("parts = 3\n", 1, ""),
])
def test_bad_configuration_is_reported_with_its_line(tmp_path, text, line, word):
    status, message = check(tmp_path, text)
    assert status == 78, message
    assert any(f"test.ini:{n}" in message
               for n in (line if isinstance(line, tuple) else (line,))), message
    assert word in message


def test_all_errors_are_reported_together(tmp_path):
    status, message = check(tmp_path,
                            "[server]\nnonsense = 1\n[limits]\nparts = many\nscans = -5\n")
    assert status == 78 and all(f"test.ini:{n}" in message for n in (2, 4, 5)), message


def test_bad_configuration_does_not_start(tmp_path):
    path = tmp_path / "test.ini"
    path.write_text("[limits]\nparts = many\n")
    done = run("-c", path)
    assert done.returncode == 78 and "test.ini:2" in done.stderr


def test_good_configuration_is_accepted(tmp_path):
    text = ("# comment\n; comment\n[server]\nlisten = [::1]:8080\nroot = /tmp/x\n\n"
            "[limits]\npixels = 1M\nheader_timeout = 1500ms\nbody_bytes = 2G\nmemory_budget = 4G\n"
            "[stage.disk_write]\nthreads = 2\n[experiment.blur]\npass_through = yes\n"
            "[variant.only]\noperations = scale 10x10 inside\nquality = 1\n")
    status, message = check(tmp_path, text)
    assert status == 0, message


@pytest.mark.parametrize("setting", [
    "nonsense", "server.nonsense=1", "nonsense.x=1", "limits.parts=many", "limits.parts=",
    "=", "limits.parts", "variant.medium.quality=101", "variant.medium.nonsense=1", "server=1",
    "limits.parts=18446744073709551616", "limits.parts=3 4", "limits.body_bytes=1T1", ".=."])
def test_bad_overrides_are_refused(setting):
    done = run("-c", CONFIG, "-t", "-o", setting)
    assert done.returncode in (2, 78), done.stderr
    assert setting in done.stderr, "the message has the override"


@pytest.mark.parametrize(
    "setting", ["limits.parts=3", "limits.pixels=1M", "limits.idle_timeout=1m",
                "variant.medium.quality=1", "variant.new.operations=scale 20x20 inside",
                "scheduler.threads=1", "stage.disk_write.threads=3", "server.allow_origin=*"])
def test_good_overrides_are_accepted(setting):
    done = run("-c", CONFIG, "-t", "-o", setting)
    assert done.returncode == 0, done.stderr


def test_last_override_wins(start):
    daemon = start("limits.parts=1", "limits.body_bytes=1000", "limits.body_bytes=100K")
    assert daemon.upload(SMALL).status == 201


def test_variants_are_what_the_configuration_says(start, tmp_path):
    path = tmp_path / "own.ini"
    path.write_text("[variant.tiny]\noperations = scale 20x30 inside\nquality = 50\n"
                    "[variant.same]\noperations = blur 2\nquality = 95\n")
    daemon = start(config=path)
    image = daemon.image(SMALL)
    assert {n: (v["width"], v["height"]) for n, v in image["variants"].items()} == {
        "tiny": (20, 15), "same": (320, 240)}
    assert pictures.size(daemon.fetch(image, "same")) == (320, 240)


# ---- dump of the configuration ----

@pytest.mark.parametrize("settings", [
    (),
    ("server.root=/tmp/a;b#c d", "server.control=", "limits.pixels=1500K",
     "limits.idle_timeout=90s"),
    ("server.root=/tmp/'x\\", "server.drain_delay=1500ms", "variant.new.operations=blur 2"),
    ("server.root=/a'b\"c", "stage.blur.threads=3", "experiment.spin=7us"),
    ("group.pixels.stages=scale blur", "group.pixels.policy=mg1", "group.pixels.threads=3")])
def test_dump_repeats_the_configuration(tmp_path, settings):
    done = run("-T", "-c", CONFIG, *overrides(*settings))
    assert done.returncode == 0 and not done.stderr
    path = tmp_path / "dumped.ini"
    path.write_text(done.stdout)
    again = run("-T", "-c", path)
    assert again.returncode == 0 and again.stdout == done.stdout
    assert run("-t", "-q", "-c", path).returncode == 0
    for setting in settings:
        assert setting.split("=", 1)[1].split("=")[0] in done.stdout


def test_dump_keeps_spaces_at_the_ends(tmp_path):
    path = tmp_path / "spaces.ini"
    path.write_text('[store]\ns3_region = "  a "\n[variant.a]\noperations = blur 2\n')
    done = run("-T", "-c", path)
    assert '\ns3_region = "  a "\n' in done.stdout
    path.write_text(done.stdout)
    assert run("-T", "-c", path).stdout == done.stdout


def test_dump_has_every_key():
    """The keys are those of --keys, in sections for all stages, groups and variants."""
    dumped = run("-T", *overrides("group.a.stages=blur")).stdout
    section, keys = "", 0
    for line in run("--keys").stdout.splitlines():
        if match := re.match(r";?\[([a-z_.]+)(NAME)?\]", line):
            section = match[1]
        elif match := re.match(r";?([a-z_]+) =", line):
            assert re.search(rf"^\[{section}[^]]*\]\n(?:[^[]*\n)?{match[1]} = ", dumped, re.M), (
                section, match[1])
            keys += 1
    assert keys > 50


def test_dump_can_be_checked_through_a_pipe():
    script = 'exec "$@" -t -c <("$@" -T -o server.root=/tmp/x)'
    done = subprocess.run(["bash", "-c", script, "bash", *command()], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_dump_refuses_what_an_ini_file_cannot_hold():
    done = run("-T", "-o", "limits.parts=many")
    assert done.returncode == 78 and not done.stdout and "limits.parts" in done.stderr
    done = run("-T", "-o", "server.root=/a;\"'")
    assert done.returncode == 1 and not done.stdout and "quotation" in done.stderr


# ---- what would keep a valid configuration from starting ----

def check_start(*settings):
    done = run("-t", *overrides(*settings))
    return done.returncode, done.stderr


def test_check_refuses_an_unknown_user():
    status, said = check_start("server.user=no-such-user")
    assert status == 78 and "server.user = no-such-user: unknown user" in said


def test_check_refuses_missing_directories(tmp_path):
    missing = tmp_path / "missing"
    status, said = check_start(f"server.root={missing}/store", f"log.access_file={missing}/log",
                               f"server.control={missing}/socket")
    assert status == 78 and "is valid" not in said
    for setting in (f"server.root = {missing}/store", f"log.access_file = {missing}/log",
                    f"server.control = {missing}/socket"):
        assert f"{setting}: {missing}: No such file or directory" in said
    status, said = check_start(f"server.root={tmp_path}/store", f"log.access_file={tmp_path}/log")
    assert status == 0 and "warning" not in said
    assert not list(tmp_path.iterdir()), "the check has made something"


@pytest.mark.parametrize("settings", [
    ["server.listen=no.such.host.invalid:80"], ["server.listen=8.8.8.8:8080"],
    ["server.listen=8080"], ["server.listen=127.0.0.1:99999"], ["server.listen=[::1:8080"],
    ["server.listen=127.0.0.1:28080", "server.admin_listen=127.0.0.1:28080"],
    ["server.listen=0.0.0.0:28080", "server.admin_listen=127.0.0.1:28080"],
    ["server.agent_listen=127.0.0.1:28080", "server.admin_listen=127.0.0.1:28080"],
    ["server.admin_listen=8.8.8.8:8081"], ["server.agent_listen=8.8.8.8:8082"],
    ["server.control=/nosuch/dir/x.sock"], ["server.root=/proc/x"], ["server.root=/nosuch/dir/x"],
    ["server.root=/dev/null"], ["log.access=text", "log.access_file=/nosuch/dir/access.log"],
    ["access.tokens_file=/nosuch/tokens"], ["access.tokens_file=/proc"],
    ["store.kind=s3"], ["store.kind=s3", "store.s3_endpoint=http://127.0.0.1:9",
                        "store.s3_bucket=images", "store.s3_credentials=/nosuch/file"],
    ["store.max_bytes=100"], [NO_ORIGINALS, "store.make_missing=yes"],
    [NO_ORIGINALS, "overload.backfill=yes"],
    ["server.proxy_protocol=yes"], ["limits.body_bytes=1T"],
    ["limits.memory_budget=8M", "limits.body_bytes=5M"], ["scheduler.policy=fastest"],
    ["layout.mode=partition"], ["layout.mode=partition", "layout.profile=/nosuch/profile"],
    ["stage.accept_read.queue_max=1"], ["variant.thumb.operations=nonsense 3"],
    ["variant.original.quality=3"],
    ["no.such.key=1"]], ids=" ".join)
def test_check_refuses_what_would_not_start(tmp_path, settings):
    common = [] if any("server.root" in setting for setting in settings) else \
        [f"server.root={tmp_path}/store"]
    if not any("server.listen" in setting for setting in settings):
        common.append("server.listen=127.0.0.1:0")
    done = run("-t", "-c", CONFIG, *overrides(*common, "server.user=root", *settings))
    assert done.returncode == 78 and "is valid" not in done.stderr
    said = [setting.split("=")[0] for setting in settings]
    assert any(key in done.stderr or key.split(".")[1] in done.stderr for key in said), done.stderr
    done = run("-c", CONFIG, *overrides(*common, "server.user=root", *settings), timeout=10)
    assert done.returncode in (1, 78), done.stderr


def test_messages_of_the_start_have_file_and_line(tmp_path):
    missing = tmp_path / "missing"
    site = tmp_path / "site.ini"
    site.write_text(f"[server]\nlisten = no-such-host.invalid:80\nroot = {missing}/store\n"
                    f"[log]\naccess_file = {missing}/log\n"
                    "[limits]\nmemory_budget = 4096G\n[variant.a]\noperations = blur 1\n")
    done = run("-t", "-c", site)
    assert done.returncode == 78
    for line, setting in ((2, "server.listen = no-such-host.invalid:80: "),
                          (3, f"server.root = {missing}/store: "),
                          (5, f"log.access_file = {missing}/log: "),
                          (7, "limits.memory_budget = ")):
        assert f"{site}:{line}: {setting}" in done.stderr
    (tmp_path / "user.ini").write_text("[server]\nuser = no-such-user\n[access]\n"
                                       f"tokens_file = {missing}\n"
                                       "[variant.a]\noperations = blur 1\n")
    done = run("-c", tmp_path / "user.ini")
    assert f"{tmp_path}/user.ini:4: access.tokens_file = {missing}: No such" in done.stderr
    (tmp_path / "user.ini").write_text("[server]\nuser = no-such-user\n"
                                       "[variant.a]\noperations = blur 1\n")
    for verb in ([], ["-t"]):
        done = run(*verb, "-c", tmp_path / "user.ini")
        assert (f"{tmp_path}/user.ini:2: server.user = no-such-user: unknown user"
                in done.stderr), done


def test_a_message_about_an_option_has_no_line(tmp_path):
    (tmp_path / "site.ini").write_text("[server]\nuser = root\n"
                                       "[variant.a]\noperations = blur 1\n")
    done = run("-t", "-c", tmp_path / "site.ini", "-o", "server.user=no-such-user")
    assert " error: server.user = no-such-user: unknown user" in done.stderr


def test_check_refuses_a_store_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file is not a directory" in check_start(f"server.root={tmp_path}/file")[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_check_has_the_rights_of_the_daemons_user(tmp_path):
    tmp_path.chmod(0o700)
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    status, said = check_start("server.user=nobody", f"server.root={tmp_path}",
                               f"access.tokens_file={tokens}")
    assert status == 78
    assert f"server.root = {tmp_path}: " in said and "Permission denied" in said
    assert f"access.tokens_file = {tokens}: cannot read it as nobody: " in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_check_of_a_log_file_agrees_with_the_start(tmp_path):
    """The user needs the file, if it is there, and not the directory."""
    for directory in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        directory.chmod(0o755)
    for name in ("root", "directory"):
        (tmp_path / name).mkdir()
    for name in ("own", "other"):
        (tmp_path / name).touch(mode=0o600)
    for name in ("root", "own"):
        shutil.chown(tmp_path / name, "nobody")
    for name, expected in (("own", 0), ("other", 78), ("directory", 78), ("new", 78)):
        status, said = check_start("server.user=nobody", f"server.root={tmp_path}/root",
                                   f"log.access_file={tmp_path}/{name}")
        assert status == expected, said
        assert status == 0 or f"log.access_file = {tmp_path}/{name}: " in said


def test_check_warns_of_addresses_and_memory(tmp_path):
    said = check_start(f"server.root={tmp_path}", "server.listen=no-such-host.invalid:80",
                       "limits.memory_budget=4096G")[1]
    assert "server.listen = no-such-host.invalid:80: " in said
    assert re.search(r"limits.memory_budget = \d+ MiB: expected at most \d+ MiB, the memory of "
                     r"this (machine|control group)", said)
