"""conf/monitoring: the alert rules and the dashboard name metrics that exist, each alert fires and
rests, and a real Prometheus sees a daemon's troubles. Needs Debian's prometheus."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "conf/monitoring/alerts.yml"
DASHBOARD = ROOT / "conf/monitoring/dashboard.json"
METRIC = re.compile(r"\b(?:darkroom|process)_[a-z0-9_]+\b")

needs_prometheus = pytest.mark.skipif(not shutil.which("promtool"),
                                      reason="prometheus is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def eventually(question, timeout=60):
    end = time.monotonic() + timeout
    while not (answer := question()) and time.monotonic() < end:
        time.sleep(0.2)
    return answer


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


@pytest.fixture
def daemon(tmp_path):
    """Returns a running daemon: process, administrative port, directory."""
    port = free_port()
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    (tmp_path / "site.ini").write_text(
        f"[server]\nroot = {tmp_path}/store\nlisten = 127.0.0.1:0\n"
        f"user = {'root' if os.geteuid() == 0 else ''}\n"
        f"admin_listen = 127.0.0.1:{port}\n[access]\ntokens_file = {tokens}\n"
        "[variant.thumb]\noperations = scale 100x100 inside\n")
    process = subprocess.Popen([ROOT / "build/darkroomd", "-q", "-c", tmp_path / "site.ini"],
                               stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def is_up():
        try:
            return fetch(f"{url}/readyz")
        except OSError:
            return None
    assert eventually(is_up), process.poll()
    yield process, url, tmp_path
    process.terminate()
    process.wait(60)


def test_rules_and_dashboard_name_metrics_that_exist(daemon):
    known = set(re.findall(r"^([a-z0-9_]+)[ {]", fetch(f"{daemon[1]}/metrics"), re.M))
    used = {RULES: re.findall(r"expr:(.*?)\n +(?:for|labels):", RULES.read_text(), re.S)}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    used[DASHBOARD] = [t["expr"] for p in panels for t in p["targets"]]
    for file, expressions in used.items():
        assert len(expressions) > 10, file
        for expression in expressions:
            assert "up{" in expression or METRIC.findall(expression), expression
            missing = set(METRIC.findall(expression)) - known
            assert not missing, (file, expression, missing)


@needs_prometheus
def test_rules_are_well_formed(daemon):
    for words, text in ((["check", "rules", RULES], None),
                        (["check", "metrics"], fetch(f"{daemon[1]}/metrics"))):
        done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0 and not re.search("error|warn", done.stderr, re.I), done


LABELS = 'job="darkroom",instance="a"'
ROUTE = f'{LABELS},route="/images",method="POST"'
DURATION = "darkroom_http_request_duration_seconds_bucket"

# For each alert: series that make it fire within two hours, and series that do not.
ALERTS = {
    "Down": ([(f"up{{{LABELS}}}", "0x120")], [(f"up{{{LABELS}}}", "1x120")]),
    "NotReady": ([(f"darkroom_ready{{{LABELS}}}", "0x120")],
                 [(f"darkroom_ready{{{LABELS}}}", "1x120")]),
    "Restarts": ([(f"process_start_time_seconds{{{LABELS}}}", "0+100x120")],
                 [(f"process_start_time_seconds{{{LABELS}}}", "100x120")]),
    "DiskAlmostFull": ([(f"darkroom_store_free_bytes{{{LABELS}}}", "9x120"),
                        (f"darkroom_store_size_bytes{{{LABELS}}}", "100x120")],
                       [(f"darkroom_store_free_bytes{{{LABELS}}}", "11x120"),
                        (f"darkroom_store_size_bytes{{{LABELS}}}", "100x120")]),
    "DiskFillsUp": ([(f"darkroom_store_free_bytes{{{LABELS}}}", "100000-20x120")],
                    [(f"darkroom_store_free_bytes{{{LABELS}}}", "100000-1x120")]),
    "StoreFails": ([(f'darkroom_rejections_total{{{LABELS},reason="storage-full"}}', "0+1x120")],
                   [(f'darkroom_rejections_total{{{LABELS},reason="no-image"}}', "0+1x120")]),
    "Errors": ([(f'darkroom_http_route_responses_total{{{ROUTE},status="5xx"}}', "0+6x120"),
                (f'darkroom_http_route_responses_total{{{ROUTE},status="2xx"}}', "0+94x120")],
               [(f'darkroom_http_route_responses_total{{{ROUTE},status="5xx"}}', "0+4x120"),
                (f'darkroom_http_route_responses_total{{{ROUTE},status="2xx"}}', "0+96x120")]),
    "Overloaded": ([(f'darkroom_rejections_total{{{LABELS},reason="overloaded"}}', "0+7x120")],
                   [(f'darkroom_rejections_total{{{LABELS},reason="overloaded"}}', "0+5x120")]),
    "SlowUploads": ([(f'{DURATION}{{{ROUTE},le="4"}}', "0+98x120"),
                     (f'{DURATION}{{{ROUTE},le="8"}}', "0+100x120"),
                     (f'{DURATION}{{{ROUTE},le="+Inf"}}', "0+100x120")],
                    [(f'{DURATION}{{{ROUTE},le="4"}}', "0+99x120"),
                     (f'{DURATION}{{{ROUTE},le="8"}}', "0+100x120"),
                     (f'{DURATION}{{{ROUTE},le="+Inf"}}', "0+100x120")]),
    "Memory": ([(f'darkroom_memory_reserved_bytes{{{LABELS},share="image"}}', "50x120"),
                (f'darkroom_memory_reserved_bytes{{{LABELS},share="body"}}', "41x120"),
                (f"darkroom_memory_budget_bytes{{{LABELS}}}", "100x120")],
               [(f'darkroom_memory_reserved_bytes{{{LABELS},share="image"}}', "89x120"),
                (f"darkroom_memory_budget_bytes{{{LABELS}}}", "100x120")]),
    "Quarantine": ([(f"darkroom_store_quarantined_total{{{LABELS}}}", "0x90 1x30")],
                   [(f"darkroom_store_quarantined_total{{{LABELS}}}", "3x120")]),
    "TokensOutdated": ([(f"darkroom_tokens_outdated{{{LABELS}}}", "1x120")],
                       [(f"darkroom_tokens_outdated{{{LABELS}}}", "0x120")]),
    "ReloadFailed": ([(f"darkroom_config_last_reload_successful{{{LABELS}}}", "0x120")],
                     [(f"darkroom_config_last_reload_successful{{{LABELS}}}", "1x120")]),
    "LogLost": ([(f'darkroom_log_dropped_total{{{LABELS},kind="access"}}', "0+1x120")],
                [(f'darkroom_log_dropped_total{{{LABELS},kind="access"}}', "5x120")]),
}


@needs_prometheus
def test_each_alert_fires_and_rests(tmp_path):
    """promtool evaluates the rules over given series."""
    names = re.findall(r"- alert: Darkroom(\w+)", RULES.read_text())
    assert sorted(names) == sorted(ALERTS)
    tests = []
    for name, series in ALERTS.items():
        for fires, data in zip((1, 0), series):
            tests.append({
                "interval": "1m",
                "input_series": [{"series": s, "values": v} for s, v in data],
                "promql_expr_test": [{
                    "expr": f'count(ALERTS{{alertname="Darkroom{name}",alertstate="firing"}}) '
                            "or vector(0)",
                    "eval_time": "118m", "exp_samples": [{"labels": "{}", "value": fires}]}]})
    (tmp_path / "test.yml").write_text(json.dumps({
        "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", tmp_path / "test.yml"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_a_real_prometheus_sees_troubles(daemon, tmp_path):
    """A wrong tokens file, a wrong configuration, a daemon that is gone. Alerts wait for no time."""
    process, url, directory = daemon
    port = free_port()
    (tmp_path / "alerts.yml").write_text(re.sub(r" +for: .*\n", "", RULES.read_text()))
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(tmp_path / "alerts.yml")],
        "scrape_configs": [{"job_name": "darkroom",
                            "static_configs": [{"targets": [url.removeprefix("http://")]}]}]}))
    prometheus = subprocess.Popen(
        ["prometheus", f"--config.file={tmp_path}/prometheus.yml",
         f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)

    def firing():
        try:
            alerts = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/alerts"))
        except OSError:
            return None
        return {a["labels"]["alertname"].removeprefix("Darkroom")
                for a in alerts["data"]["alerts"] if a["state"] == "firing"}
    try:
        assert eventually(lambda: "up" in fetch(f"http://127.0.0.1:{port}/api/v1/query?query=up")
                          if firing() is not None else None)
        troubles = {"TokensOutdated", "ReloadFailed", "Down"}
        assert not firing() & troubles  # the disk of this machine may be filling up
        (directory / "tokens").write_text("wrong\n")
        (directory / "site.ini").write_text("[server]\nroot = nowhere\n")
        process.send_signal(signal.SIGHUP)
        assert eventually(lambda: firing() & troubles == troubles - {"Down"}), firing()
        process.kill()
        assert eventually(lambda: "Down" in firing()), firing()
    finally:
        prometheus.terminate()
        prometheus.wait(60)
