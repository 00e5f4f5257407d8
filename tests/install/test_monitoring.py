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
import urllib.error
import urllib.parse
import urllib.request

import pytest

import promql

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
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([ROOT / "build/darkroomd", "-c", tmp_path / "site.ini"],
                                   stderr=log)
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
    "DamagedFiles": ([(f'darkroom_store_damaged_files_total{{{LABELS},made="again"}}', "0x90 1x30")],
                     [(f'darkroom_store_damaged_files_total{{{LABELS},made="again"}}', "3x120")]),
    "TokensOutdated": ([(f"darkroom_tokens_outdated{{{LABELS}}}", "1x120")],
                       [(f"darkroom_tokens_outdated{{{LABELS}}}", "0x120")]),
    "ReloadFailed": ([(f"darkroom_config_last_reload_successful{{{LABELS}}}", "0x120")],
                     [(f"darkroom_config_last_reload_successful{{{LABELS}}}", "1x120")]),
    "LogLost": ([(f'darkroom_log_dropped_total{{{LABELS},kind="access"}}', "0+1x120")],
                [(f'darkroom_log_dropped_total{{{LABELS},kind="access"}}', "5x120")]),
}


def values_of(text):
    """Returns the numbers of promtool's notation: "0x3" is 0 four times, "0+2x3" is 0 2 4 6."""
    values = []
    for first, step, count in re.findall(r"(\d+)([+-]\d+)?x(\d+)", text):
        values += [int(first) + i * int(step or 0) for i in range(int(count) + 1)]
    return values


def verdict(data):
    """Returns the alerts that fire after two hours with these series, as http/promql.py sees it."""
    found = promql.Rules()
    columns = [(re.match(r"\w+", name)[0], dict(re.findall(r'(\w+)="([^"]*)"', name)),
                values_of(text)) for name, text in data]
    for minute in range(119):
        found.series.now = 60 * minute
        for name, labels, values in columns:
            found.series.add(name, labels, float(values[minute]))
        found.tick()
    return found.firing()


def test_the_tests_see_the_alerts_as_promtool_does():
    """The tests of http/test_alerts.py have no promtool."""
    for name, (fires, rests) in ALERTS.items():
        assert name in verdict(fires) and name not in verdict(rests), name


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


@pytest.fixture
def prometheus(daemon, tmp_path):
    """A real Prometheus that watches the daemon. Alerts wait for no time. Returns a function that
    asks it."""
    url, port = daemon[1], free_port()
    (tmp_path / "alerts.yml").write_text(re.sub(r" +for: .*\n", "", RULES.read_text()))
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(tmp_path / "alerts.yml")],
        "scrape_configs": [{"job_name": "darkroom",
                            "static_configs": [{"targets": [url.removeprefix("http://")]}]}]}))
    process = subprocess.Popen(
        ["prometheus", f"--config.file={tmp_path}/prometheus.yml",
         f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)

    def ask(path, **values):
        try:
            answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/{path}?"
                                      f"{urllib.parse.urlencode(values)}"))
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it starts
                return None
            raise AssertionError(error.read()) from error
        except OSError:
            return None
        assert answer["status"] == "success" and not answer.get("warnings"), answer
        return answer["data"]
    try:
        assert eventually(lambda: (ask("query", query="up") or {}).get("result"))
        yield ask
    finally:
        process.terminate()
        process.wait(60)


@needs_prometheus
def test_a_real_prometheus_sees_troubles(daemon, prometheus):
    """A wrong tokens file, a wrong configuration, a daemon that is gone."""
    process, _, directory = daemon

    def firing():
        return {a["labels"]["alertname"].removeprefix("Darkroom")
                for a in prometheus("alerts")["alerts"] if a["state"] == "firing"}
    troubles = {"TokensOutdated", "ReloadFailed", "Down"}
    assert not firing() & troubles  # the disk of this machine may be filling up
    (directory / "tokens").write_text("wrong\n")
    (directory / "site.ini").write_text("[server]\nroot = nowhere\n")
    process.send_signal(signal.SIGHUP)
    assert eventually(lambda: firing() & troubles == troubles - {"Down"}), firing()
    process.kill()
    assert eventually(lambda: "Down" in firing()), firing()


def series(data):
    """Returns the numbers of a query's answer."""
    return [float(value) for row in data["result"] for _, value in row["values"]
            if value not in ("NaN", "+Inf")]


@needs_prometheus
def test_each_query_of_the_dashboard_has_data(daemon, prometheus):
    """As Grafana asks: with its variables, over a range of time."""
    _, url, directory = daemon
    port = re.search(r"ready on http://127.0.0.1:(\d+)", (directory / "log").read_text())[1]
    picture = (ROOT / "data/sample/lake.jpg").read_bytes()

    def send(path, data=None, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data,
                                         {"Content-Type": "image/jpeg", **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return error.read()
    done = subprocess.run([ROOT / "build/darkroomd", "token", "camera"], capture_output=True,
                          text=True, check=True, timeout=60)
    token, line = done.stdout.splitlines()
    (directory / "tokens").write_text(f"{line}\n")

    dashboard = json.loads(DASHBOARD.read_text())
    variable = dashboard["templating"]["list"][1]["query"]["query"]
    label, metric = (re.match(r"label_values\((\w+), (\w+)\)", variable)[i] for i in (2, 1))
    assert prometheus(f"label/{label}/values", **{"match[]": metric}) == [
        url.removeprefix("http://")]

    def missing():
        answer = json.loads(send("/images", picture, token))
        if "images" in answer:
            send(answer["images"][0]["variants"]["thumb"]["url"])
        send("/images", picture)  # is refused
        now, found = time.time(), []
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$instance", ".+").replace("$__rate_interval", "10s")
                assert "$" not in query, query
                data = prometheus("query_range", query=query, start=now - 10, end=now, step=1)
                if not series(data):
                    found.append((panel["title"], query))
        return found
    assert eventually(lambda: not missing()), missing()
