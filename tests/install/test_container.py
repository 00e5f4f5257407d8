"""conf/container: what can be checked without a builder. No image is built here."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "http"))

from darkroom import BINARY, Daemon, run  # noqa: E402 (after the path is set)

FOLDER = ROOT / "conf" / "container"
CONTAINERFILE = (FOLDER / "Containerfile").read_text().replace("\\\n", " ")
INI = FOLDER / "darkroomd.ini"
TOKENS = ["-o", f"access.tokens_file={FOLDER}/tokens"]


def instructions(name):
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.M)


def test_copied_files_exist_and_programs_are_those_of_the_package():
    copied = [words for words in map(shlex.split, instructions("COPY"))
              if not words[0].startswith("--from")]
    assert copied and all((ROOT / source).exists() for *sources, _ in copied for source in sources)
    (entry,), (health,) = instructions("ENTRYPOINT"), instructions("HEALTHCHECK")
    for words in (json.loads(entry), json.loads(health[health.index("["):])):
        assert words[0] == "/usr/bin/darkroomd"
        assert "/etc/darkroom/darkroomd.ini" in words
    assert instructions("USER") == ["darkroom"]


def test_configuration_is_valid_without_warnings(tmp_path):
    words = json.loads(instructions("ENTRYPOINT")[0])[1:]
    words[words.index("/etc/darkroom/darkroomd.ini")] = INI
    done = run("-t", *words, *TOKENS, "-o", f"server.root={tmp_path}", "-o", "server.user=root")
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_health_check_tells_whether_the_daemon_runs(tmp_path):
    health = instructions("HEALTHCHECK")[0]
    words = json.loads(health[health.index("["):])[1:]
    words[words.index("/etc/darkroom/darkroomd.ini")] = INI
    words[-2:-2] = ["-o", f"server.root={tmp_path}/store", *TOKENS]
    daemon = Daemon(tmp_path / "store", TOKENS[1], config=INI)
    try:
        assert run(*words).returncode == 0
    finally:
        daemon.stop()
    assert run(*words).returncode == 1


def check_read_only(store):
    script = ('mount --bind "$1" "$1" && mount -o remount,ro,bind / / && shift && '
              'exec timeout -s TERM 3 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"')
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, "bash", store, BINARY, "-c", INI, "-o",
         f"server.root={store}", *TOKENS, "-o", "server.listen=127.0.0.1:0", "-o",
         "server.drain_delay=0"], capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert "ready on http://" in done.stderr and " error: " not in done.stderr, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a mount namespace")
def test_daemon_runs_with_a_read_only_root():
    """As in the container: an ordinary user, and only the store can be written."""
    with tempfile.TemporaryDirectory() as place:  # others cannot reach tmp_path
        os.chmod(place, 0o755)
        store = pathlib.Path(place) / "store"
        store.mkdir()
        os.chown(store, 65534, 65534)
        check_read_only(store)


def test_compose_file_has_the_proxys_network_and_the_files():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    service, proxy = compose["services"]["darkroom"], compose["services"]["proxy"]
    assert service["read_only"] and "ports" not in service
    source, mounted, mode = service["volumes"][1].split(":")
    assert (FOLDER / source).is_file() and mode == "ro"
    assert f"tokens_file = {mounted}\n" in INI.read_text()
    assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert re.fullmatch(r"docker\.io/library/caddy:\d+\.\d+\.\d+", proxy["image"])
    assert proxy["depends_on"] == {"darkroom": {"condition": "service_healthy"}}
    (health,) = instructions("HEALTHCHECK")
    assert shlex.split(service["healthcheck"]["test"]) == json.loads(health[health.index("["):])
    assert proxy["healthcheck"]["test"]
    source = proxy["volumes"][0].split(":")[0]
    assert (FOLDER / source).is_file()
    subnet = compose["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert f"trusted_proxies = {subnet}\n" in INI.read_text()
    assert "reverse_proxy darkroom:8080" in (FOLDER / source).read_text()
