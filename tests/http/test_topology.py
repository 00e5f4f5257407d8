"""--topology for other machines, ctl profile, and scripts/partition,
which makes a layout from a profile."""

import os
import re
import socket
import subprocess

import pytest

import pictures
from darkroom import BINARY, ROOT, command, eventually, overrides, run, slow

pytestmark = pytest.mark.shared_layout

SAMPLE = ROOT / "data" / "sample"
STAGES = ["accept_read", "http_parse", "form_decode", "jpeg_decode", "scale", "blur", "jpeg_encode",
          "disk_write", "stats", "disk_read"]
TWO_SOCKETS = "Package:2 [numa] L3:1 L2:32 Core:1 PU:2"
EIGHT_NODES = "Package:2 Group:4 [numa] L3:2 Core:4 PU:1"
WORKER = re.compile(r"  worker (\d+) +core (\d+)  CPU (\d+)  node (\d+)")


def topology(*settings, machine=None, prefix=()):
    """Returns the output of --topology. machine: a description as in HWLOC_SYNTHETIC."""
    environ = {**os.environ, **({"HWLOC_SYNTHETIC": machine} if machine else {})}
    done = subprocess.run([*prefix, *command("--topology", *overrides(*settings))],
                          capture_output=True, text=True, env=environ, timeout=slow(60))
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def workers(text):
    """Returns the domains, each as a list of (worker, core, CPU, node)."""
    return [[tuple(map(int, found)) for found in WORKER.findall(domain)]
            for domain in re.split(r"\n\n", text) if WORKER.search(domain)]


def with_profile(tmp_path, text):
    path = tmp_path / "profile"
    path.write_text(text)
    return f"layout.profile={path}"


def test_every_worker_has_a_core():
    said = topology(machine=TWO_SOCKETS)
    assert said.startswith("Cores: 64 of another machine: nothing is bound\nPolicy: drain\n"
                           "Threads that are not bound: 16 I/O, 32 disk\n")
    (domain,) = workers(said)
    assert domain == [(i, i, 2 * i, i // 32) for i in range(64)]
    assert "Shared 0, workers 64\n" in said


@pytest.mark.parametrize("machine, replicas", [(TWO_SOCKETS, 2), (EIGHT_NODES, 8)])
def test_replicas_use_separate_nodes(machine, replicas):
    shares = workers(topology("layout.mode=replicate", f"layout.replicas={replicas}",
                              machine=machine))
    assert [{worker[3] for worker in share} for share in shares] == [{i} for i in range(replicas)]
    assert [len(share) for share in shares] == [64 // replicas] * replicas


def test_few_threads_are_placed_close_together():
    shares = workers(topology("layout.mode=replicate", "layout.replicas=2", "scheduler.threads=6",
                              machine=TWO_SOCKETS))
    assert [[worker[1] for worker in share] for share in shares] == [[0, 1, 2], [32, 33, 34]]


def test_parts_have_cores_in_proportion_to_their_work(tmp_path):
    stages = [("jpeg_decode", 5000, "to_scale = 25\n"),
              ("scale", 1000, "to_blur = 10\nto_jpeg_encode = 20\n"),
              ("blur", 500, "to_jpeg_encode = 10\n"),
              ("jpeg_encode", 1500, "to_disk_write = 10\n")]
    profile = with_profile(tmp_path, "".join(
        f"[stage.{stage}]\nservice_ns = {ns}\n{edges}" for stage, ns, edges in stages))
    said = topology("layout.mode=partition", "layout.parts=2", profile,
                    machine="Package:1 L3:1 Core:8 PU:1")
    assert "Imbalance: 1.00\nEdge cut: 25 events\n" in said
    assert "Part 0, workers 5, 62.5 % of the work: jpeg_decode (62.5 %)\n" in said
    assert ("Part 1, workers 3, 37.5 % of the work: scale (12.5 %) blur (6.2 %) "
            "jpeg_encode (18.8 %)\n" in said)
    assert [len(share) for share in workers(said)] == [5, 3]


def test_pools_are_not_bound_to_cores():
    said = topology("scheduler.policy=seda", "stage.blur.threads=3")
    assert "Policy: seda\n" in said
    assert len(re.findall(r"  worker \d+ +any core  blur\n", said)) == 3


def test_pools_have_the_cores_of_their_replica_or_part():
    said = topology("scheduler.policy=seda", "layout.mode=replicate", machine=TWO_SOCKETS)
    assert "Replica 0, workers 8\n" in said and "Replica 1, workers 8\n" in said
    assert "  worker 7    cores 0-31  jpeg_encode\n" in said
    assert "  worker 8    cores 32-63  jpeg_decode\n" in said
    said = topology("scheduler.policy=seda", "layout.mode=partition", "layout.online=yes",
                    machine="Package:1 L3:1 Core:8 PU:1")
    assert ("Part 0, workers 4: jpeg_decode scale\n" in said
            or "Part 0, workers 2: jpeg_decode\n" in said)
    assert "No profile: all stages have the same weight\n" in said
    assert len(re.findall(r"  worker \d+ +cores \d-\d  \w+\n", said)) == 8


def test_only_allowed_cores_are_used():
    cpu = max(os.sched_getaffinity(0))
    said = topology(prefix=["taskset", "-c", str(cpu)])
    assert said.startswith("Cores: 1\n")
    assert [[worker[2] for worker in share] for share in workers(said)] == [[cpu]]


def test_cpu_quota_limits_the_workers(tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    prefix = ["unshare", "-m", "sh", "-c",
              f"mount --bind {tmp_path} /sys/fs/cgroup && exec \"$@\"", "sh"]
    can_mount = subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    if len(os.sched_getaffinity(0)) < 2 or not can_mount:
        pytest.skip("needs two cores and the right to mount")
    said = topology(prefix=prefix)
    assert ", CPU quota 1: nothing is bound\n" in said
    assert re.findall(r"  worker (\d+) +any core", said) == ["0"]
    # More threads are not bound either.
    assert re.findall(r"  worker (\d+) +any core",
                      topology("scheduler.threads=2", prefix=prefix)) == ["0", "1"]


def test_bad_machines_and_profiles_are_reported(tmp_path):
    done = subprocess.run(command("--topology"), capture_output=True, text=True, timeout=slow(60),
                          env={**os.environ, "HWLOC_SYNTHETIC": "Socket of two"})
    assert done.returncode == 1 and done.stdout == ""
    assert "HWLOC_SYNTHETIC=Socket of two" in done.stderr
    profile = with_profile(tmp_path, "[stage.blur]\nservice_ns = many\n")
    done = run("--topology", *overrides("layout.mode=partition", profile))
    assert done.returncode != 0 and done.stdout == ""
    assert f"{tmp_path}/profile:2: stage.blur.service_ns = \"many\": expected a whole number" in done.stderr


def test_daemon_serves_with_the_topology_of_another_machine(start):
    daemon = start(environ={"HWLOC_SYNTHETIC": "Package:2 [numa] Core:2 PU:1"})
    assert "not bound to cores" in daemon.log
    daemon.image(pictures.photo_jpeg(300, 200))
    (group,) = [group for group in daemon.get("/stats").json()["scheduler"]["groups"]
                if group["name"] == "main"]
    assert group["threads"] == 4


# ---- profiles ----

def values(text):
    """Returns {section: {key: number}} of a profile."""
    sections, section = {}, None
    for line in text.splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif "=" in line and not line.startswith(";"):
            key, _, value = line.partition(" = ")
            section[key] = int(value)
    return sections


def test_profile_records_service_times_and_edges(start, tmp_path):
    path = tmp_path / "profile"
    daemon = start()
    for seed in range(3):
        daemon.image(pictures.photo_jpeg(400, 300, seed))

    def profile():
        done = run("-o", f"server.root={daemon.store}", "ctl", "profile")
        assert done.returncode == 0, done.stderr
        path.write_text(done.stdout)
        return values(done.stdout)
    # An event is counted when its handler returns, which may be after the response.
    assert eventually(lambda: profile()["stage.jpeg_encode"]["events"] == 9)
    found = profile()
    assert set(found) == {f"stage.{stage}" for stage in STAGES}
    decode, scale, encode = (found[f"stage.{stage}"]
                             for stage in ("jpeg_decode", "scale", "jpeg_encode"))
    assert decode["events"] == decode["to_scale"] == 3 and decode["service_ns"] > 100000
    # The default configuration has three variants, one of them blurred.
    assert scale["to_blur"] == 3 and found["stage.blur"]["to_jpeg_encode"] == 3
    assert encode["events"] == scale["to_jpeg_encode"] + 3 == 9
    assert "% of the work: " in topology("layout.mode=partition", f"layout.profile={path}")


# ---- scripts/partition ----

def partition(*words, timeout=60, program=BINARY):
    return subprocess.run([ROOT / "scripts" / "partition", *map(str, words)],
                          capture_output=True, text=True, timeout=slow(timeout),
                          env={**os.environ, "DARKROOMD": str(program)})


def test_partition_writes_the_layout_into_the_configuration(start, tmp_path):
    config = tmp_path / "darkroomd.ini"
    config.write_text("; a comment\n[layout]\n; which\nMode = shared ; not yet\n"
                      "[variant.a]\noperations = scale 200x200 inside, blur 5\n"
                      "[variant.b]\noperations = scale 100x100 inside\n")
    before = config.read_text()
    done = partition("--dry-run", "-p", 2, config, SAMPLE)
    assert done.returncode == 0, done.stderr
    assert config.read_text() == before
    assert "Part 1, " in done.stdout
    done = partition("-p", 2, "--restart", f"touch {tmp_path}/restarted", config, SAMPLE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "restarted").exists()
    assert config.read_text() == before.replace(
        "Mode = shared ; not yet", "mode = partition").replace(
            "[variant.a]", f"parts = 2\nprofile = {config}.profile\n[variant.a]")
    daemon = start("scheduler.threads=2", config=config)
    daemon.image(pictures.photo_jpeg(400, 300))
    layout = daemon.get("/stats").json()["layout"]
    assert layout["mode"] == "partition" and len(layout["parts"]) == 2
    assert (sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("darkroomd"))
            == ["darkroomd.ini", "darkroomd.ini.profile"])


def test_partition_does_not_disturb_the_service(tmp_path):
    """Its daemon uses no address, log or tokens of the service."""
    config, tokens, log = (tmp_path / name for name in ("darkroomd.ini", "tokens", "access.log"))
    tokens.touch(mode=0o600)
    with socket.create_server(("127.0.0.1", 0)) as service:
        config.write_text(f"[server]\nadmin_listen = 127.0.0.1:{service.getsockname()[1]}\n"
                          f"[access]\ntokens_file = {tokens}\n"
                          f"[log]\naccess_file = {log}\n[limits]\nimages_per_client = 1\n"
                          "[variant.a]\noperations = scale 200x200 inside\n")
        done = partition("--dry-run", "-p", 2, config, SAMPLE)
    assert done.returncode == 0, done.stderr
    assert not log.exists()


def test_partition_fails_without_enough_pictures(tmp_path):
    """As on a full disk, only a few pictures are generated. Their profile is not used."""
    config, programs = tmp_path / "darkroomd.ini", tmp_path / "programs"
    config.write_text("[variant.a]\noperations = scale 200x200 inside\n")
    programs.mkdir()
    for name in ("darkroomd", "darkroom-load"):
        (programs / name).symlink_to(BINARY.parent / name)
    (programs / "darkroom-dataset").write_text(
        f'#!/bin/sh\nmkdir "$3"\ncp {SAMPLE}/lake.jpg "$3"\nexit 1\n')
    (programs / "darkroom-dataset").chmod(0o755)
    done = partition("-p", 2, config, program=programs / "darkroomd")
    assert done.returncode == 1 and "could not be generated" in done.stderr, done
    assert "[layout]" not in config.read_text()


def test_partition_keeps_the_configuration_if_it_fails(tmp_path):
    config = tmp_path / "darkroomd.ini"
    config.write_text("[layout]\nparts = 9\n[variant.a]\noperations = scale 200x200 inside\n")
    before = config.read_text()
    for words, status, says in [
        ([], 2, "expected a configuration"),
        (["--parts", "two", config], 2, "expected a whole number"),
        (["--sideways", config], 2, "unknown option"),
        ([tmp_path / "none.ini"], 1, "cannot be read"),
        ([config, SAMPLE], 1, "cannot have layout partition"),
    ]:
        done = partition(*words)
        assert done.returncode == status and says in done.stderr, done
    config.write_text(before.replace("9", "2"))
    done = partition("-p", 9, config, SAMPLE)
    assert done.returncode == 1 and "cannot have layout partition" in done.stderr
    done = partition(config, tmp_path / "nowhere")
    assert done.returncode != 0 and "nowhere" in done.stderr
    assert config.read_text() == before.replace("9", "2")
    assert partition("--help").stdout.startswith("usage: scripts/partition")
