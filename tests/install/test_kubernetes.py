"""conf/kubernetes: the objects that kustomize makes have fields that Kubernetes knows, of their types
(Debian's python3-kubernetes has them), they refer to each other, and they fit the daemon's
configuration and metrics. No cluster is asked."""

import configparser
import copy
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "http"))

from darkroom import Daemon, overrides, run  # noqa: E402 (after the path is set)

models = pytest.importorskip("kubernetes.client.models",
                             reason="python3-kubernetes is not installed")
FOLDER = ROOT / "conf" / "kubernetes"
INI = FOLDER / "darkroomd.ini"
# The models of Debian 12 are those of Kubernetes 1.22, where the API of 1.23 is v2beta2.
CLASSES = {("apps/v1", "Deployment"): "V1Deployment", ("v1", "Service"): "V1Service",
           ("v1", "Secret"): "V1Secret", ("v1", "ConfigMap"): "V1ConfigMap",
           ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
           ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
           ("autoscaling/v2", "HorizontalPodAutoscaler"): "V2beta2HorizontalPodAutoscaler"}
SCALARS = {"str": str, "int": int, "bool": bool, "float": float}


# ---- fields and types ----

def wrong_fields(value, kind, path):
    """Yields what is wrong with a value of a type of the client's models."""
    inner = re.match(r"(?:list|dict)[\[(](?:str, )?(.*)[\])]", kind)
    if kind in SCALARS:
        if type(value) is not SCALARS[kind]:
            yield f"{path}: expected {kind}: {value!r}"
    elif kind == "object":  # a number or a string, in all fields that are used here
        if type(value) not in (int, str):
            yield f"{path}: expected a number or a string: {value!r}"
    elif inner:
        wanted = list if kind.startswith("list") else dict
        if type(value) is not wanted:
            yield f"{path}: expected a {wanted.__name__}: {value!r}"
            return
        for key, item in (enumerate(value) if wanted is list else value.items()):
            yield from wrong_fields(item, inner[1], f"{path}.{key}")
    else:
        yield from wrong_members(value, getattr(models, kind), path)


def wrong_members(value, model, path):
    if type(value) is not dict:
        yield f"{path}: expected an object: {value!r}"
        return
    names = {member: name for name, member in model.attribute_map.items()}
    for member, item in value.items():
        if member not in names:
            yield f"{path}.{member}: unknown field"
        else:
            yield from wrong_fields(item, model.openapi_types[names[member]], f"{path}.{member}")
    try:
        model(**{names[member]: item for member, item in value.items() if member in names})
    except ValueError as missing:
        yield f"{path}: {missing}"


def wrong_objects(objects):
    for item in objects:
        kind = CLASSES.get((item.get("apiVersion"), item.get("kind")))
        if not kind:
            yield f"{item.get('apiVersion')} {item.get('kind')}: unknown kind"
        else:
            yield from wrong_fields(item, kind, item["kind"])


# ---- references ----

def only(objects, kind):
    (found,) = [item for item in objects if item["kind"] == kind]
    return found


def wrong_labels(objects):
    """Yields selectors that do not select the pods."""
    spec = only(objects, "Deployment")["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    selectors = {"Deployment": spec["selector"]["matchLabels"],
                 "Service": only(objects, "Service")["spec"]["selector"],
                 "PodDisruptionBudget":
                     only(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                 "NetworkPolicy":
                     only(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]}
    for spread in spec["template"]["spec"]["topologySpreadConstraints"]:
        selectors[spread["topologyKey"]] = spread["labelSelector"]["matchLabels"]
    for name, selector in selectors.items():
        if not selector or not selector.items() <= labels:
            yield f"{name}: selects no pod: {selector}"


def wrong_ports(objects):
    container = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    known = {port["name"] for port in container["ports"]}
    used = {f"{name}Probe": container[f"{name}Probe"]["httpGet"]["port"]
            for name in ("startup", "liveness", "readiness")}
    used["Service"] = only(objects, "Service")["spec"]["ports"][0]["targetPort"]
    for i, rule in enumerate(only(objects, "NetworkPolicy")["spec"]["ingress"]):
        used[f"NetworkPolicy {i}"] = rule["ports"][0]["port"]
    for name, port in used.items():
        if port not in known:
            yield f"{name}: unknown port {port}"


def wrong_volumes(objects):
    spec = only(objects, "Deployment")["spec"]["template"]["spec"]
    names = {kind: only(objects, kind)["metadata"]["name"] for kind in ("ConfigMap", "Secret")}
    for volume in spec["volumes"]:
        for member, key, kind in (("configMap", "name", "ConfigMap"),
                                  ("secret", "secretName", "Secret")):
            if member in volume and volume[member][key] != names[kind]:
                yield f"volume {volume['name']}: no {kind} {volume[member][key]}"
    mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
    for name in mounted ^ {volume["name"] for volume in spec["volumes"]}:
        yield f"volume {name}: not mounted, or unknown"
    target = only(objects, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    if target["name"] != only(objects, "Deployment")["metadata"]["name"]:
        yield f"HorizontalPodAutoscaler: no Deployment {target['name']}"


# ---- the daemon's configuration ----

def seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def gibibytes(text):
    return int(re.match(r"\d+", text)[0])


def wrong_settings(objects):
    """Yields what does not fit the configuration of the pods."""
    ini = configparser.ConfigParser()
    ini.read_string(only(objects, "ConfigMap")["data"]["darkroomd.ini"])
    server = ini["server"]
    spec = only(objects, "Deployment")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probe, places = container["readinessProbe"], {
        mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    secrets = only(objects, "Secret")["stringData"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    delay, drain = seconds(server["drain_delay"]), seconds(server["drain_timeout"])
    limits = container["resources"]["limits"]
    for is_right, what in (
            (server["listen"] == f"0.0.0.0:{ports['http']}", "listen"),
            (server["admin_listen"] == f"0.0.0.0:{ports['admin']}", "admin_listen"),
            (server["root"] == places.get("root"), "root"),
            (places.get("configuration") == "/etc/darkroom", "configuration"),
            *((path in [f"{places.get('keys')}/{name}" for name in secrets], path)
              for path in (ini["store"]["s3_credentials"], ini["access"]["tokens_file"])),
            (ini["store"]["kind"] == "s3", "kind"),
            (delay > noticed, "drain_delay"),
            (spec["terminationGracePeriodSeconds"] > delay + drain, "terminationGracePeriodSeconds"),
            (gibibytes(limits["memory"]) >= 2 * gibibytes(ini["limits"]["memory_budget"]), "memory"),
            (probe["httpGet"]["path"] == "/readyz", "readinessProbe"),
            (container["livenessProbe"]["httpGet"]["path"] == "/healthz", "livenessProbe"),
            (spec["securityContext"]["runAsNonRoot"], "runAsNonRoot"),
            (container["securityContext"]["readOnlyRootFilesystem"], "readOnlyRootFilesystem")):
        if not is_right:
            yield f"{what}: does not fit"


def wrong_places(objects):
    """Yields why one machine that fails or fills its disk takes more than its share of the pods, or
    why the number of pods depends on an adapter."""
    spec = only(objects, "Deployment")["spec"]["template"]["spec"]
    spread = {s["topologyKey"]: s["whenUnsatisfiable"] for s in spec["topologySpreadConstraints"]}
    resources = spec["containers"][0]["resources"]
    volume = next(v for v in spec["volumes"] if v["name"] == "root")["emptyDir"]["sizeLimit"]
    kinds = {m["type"] for m in only(objects, "HorizontalPodAutoscaler")["spec"]["metrics"]}
    for is_right, what in (
            (spread.get("kubernetes.io/hostname") == "DoNotSchedule", "hostname"),
            (spread.get("topology.kubernetes.io/zone") == "ScheduleAnyway", "zone"),
            (gibibytes(resources["requests"].get("ephemeral-storage", "0")) >= gibibytes(volume),
             "ephemeral-storage"),
            ("Resource" in kinds, "HorizontalPodAutoscaler without an adapter")):
        if not is_right:
            yield f"{what}: is not safe"


CHECKS = (wrong_labels, wrong_ports, wrong_volumes, wrong_settings, wrong_places)


def problems(objects):
    """Returns what is wrong. References are not looked at unless all fields are right."""
    return list(wrong_objects(objects)) or [text for check in CHECKS for text in check(objects)]


@pytest.fixture(scope="module")
def objects():
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and "deprecated" not in done.stderr, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_objects_are_right(objects):
    assert problems(objects) == []
    assert {item["kind"] for item in objects} == {kind for _, kind in CLASSES}


def change(kind, path, value):
    """Returns a function that sets a member, or removes it if the value is None."""
    def apply(objects):
        item = only(objects, kind)
        *before, last = (int(name) if name.isdigit() else name for name in path.split("/"))
        for name in before:
            item = item[name]
        if value is None:
            del item[last]
        else:
            item[last] = value
    return apply


POD, CONTAINER = "spec/template/spec", "spec/template/spec/containers/0"
LABELS = {"app.kubernetes.io/name": "lightroom"}
FAULTS = [
    ("unknown field", change("Deployment", f"{POD}/terminationGracePeriod", 60)),
    ("unknown field", change("Deployment", f"{CONTAINER}/livenessProbe/httpGet/headers", [])),
    ("unknown field", change("HorizontalPodAutoscaler", "spec/metrics/0/pods/metrics", {})),
    ("unknown field", change("PodDisruptionBudget", "spec/maxUnavailables", 1)),
    ("unknown kind", change("PodDisruptionBudget", "apiVersion", "policy/v2")),
    ("expected int", change("Deployment", f"{POD}/terminationGracePeriodSeconds", "60s")),
    ("expected bool", change("Deployment", f"{POD}/securityContext/runAsNonRoot", "yes")),
    ("expected str", change("Deployment", f"{CONTAINER}/resources/limits/cpu", 2)),
    ("expected a list", change("Service", "spec/ports", {"port": 80})),
    ("expected an object", change("Service", "metadata", "darkroom")),
    ("expected a number or a string", change("Service", "spec/ports/0/targetPort", True)),
    ("must not be `None`", change("Deployment", "spec/selector", None)),
    ("must not be `None`", change("HorizontalPodAutoscaler", "spec/maxReplicas", None)),
    ("Deployment: selects no pod", change("Deployment", "spec/selector/matchLabels", LABELS)),
    ("Service: selects no pod", change("Service", "spec/selector", LABELS)),
    ("PodDisruptionBudget: selects", change("PodDisruptionBudget", "spec/selector/matchLabels", LABELS)),
    ("NetworkPolicy: selects no pod", change("NetworkPolicy", "spec/podSelector/matchLabels", LABELS)),
    ("Service: unknown port", change("Service", "spec/ports/0/targetPort", "web")),
    ("readinessProbe: unknown port", change("Deployment", f"{CONTAINER}/readinessProbe/httpGet/port",
                                            "web")),
    ("NetworkPolicy 1: unknown port", change("NetworkPolicy", "spec/ingress/1/ports/0/port", "metrics")),
    ("no Secret", change("Secret", "metadata/name", "lightroom")),
    ("no ConfigMap", change("Deployment", f"{POD}/volumes/0/configMap/name", "darkroom")),
    ("volume keys", change("Deployment", f"{CONTAINER}/volumeMounts/1/name", "key")),
    ("no Deployment", change("HorizontalPodAutoscaler", "spec/scaleTargetRef/name", "darkrooms")),
    ("credentials: does not fit", change("Secret", "stringData/credentials", None)),
    ("tokens: does not fit", change("Secret", "stringData/tokens", None)),
    ("listen: does not fit", change("Deployment", f"{CONTAINER}/ports/0/containerPort", 80)),
    ("terminationGracePeriodSeconds: does not", change("Deployment", f"{POD}/terminationGracePeriodSeconds",
                                                       40)),
    ("drain_delay: does not fit", change("Deployment", f"{CONTAINER}/readinessProbe/periodSeconds", 5)),
    ("memory: does not fit", change("Deployment", f"{CONTAINER}/resources/limits/memory", "1Gi")),
    ("hostname: is not safe", change("Deployment", f"{POD}/topologySpreadConstraints/0/whenUnsatisfiable",
                                     "ScheduleAnyway")),
    ("zone: is not safe", change("Deployment", f"{POD}/topologySpreadConstraints/1/whenUnsatisfiable",
                                 "DoNotSchedule")),
    ("ephemeral-storage: is not", change("Deployment", f"{CONTAINER}/resources/requests/ephemeral-storage",
                                         None)),
    ("without an adapter", change("HorizontalPodAutoscaler", "spec/metrics/1", None)),
    ("readinessProbe: does not fit", change("Deployment", f"{CONTAINER}/readinessProbe/httpGet/path",
                                            "/healthz")),
]


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=lambda i: f"{i}-{FAULTS[i][0]}")
def test_faults_are_found(objects, number):
    expected, apply = FAULTS[number]
    changed = copy.deepcopy(objects)
    apply(changed)
    assert any(expected in text for text in problems(changed)), problems(changed)


# ---- the daemon ----

@pytest.fixture
def settings(tmp_path):
    """Returns settings for what this machine has elsewhere."""
    keys = tmp_path / "credentials"
    keys.write_text("aws_access_key_id = a\naws_secret_access_key = b\n")
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    return [f"store.s3_credentials={keys}", f"access.tokens_file={tokens}",
            "store.s3_endpoint=http://127.0.0.1:9"]


def test_configuration_is_valid_without_warnings(tmp_path, settings):
    done = run("-t", "-c", INI, *overrides(*settings, f"server.root={tmp_path}", "server.user=root"))
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_probes_and_metric_are_answered(tmp_path, settings, objects):
    """As the pod's probes ask, and whatever Host the site has."""
    daemon = Daemon(tmp_path / "store", *settings, "server.admin_listen=127.0.0.1:0",
                    "server.hosts=images.example.org", config=INI)
    try:
        container = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
        for name in ("startup", "liveness", "readiness"):
            get = container[f"{name}Probe"]["httpGet"]
            (header,) = get["httpHeaders"]
            with daemon.client() if get["port"] == "http" else daemon.admin() as client:
                client.host = header["value"]
                assert client.request("GET", get["path"]).status == 200
        with daemon.admin() as client:
            text = client.request("GET", "/metrics").body.decode()
    finally:
        daemon.stop()
    metric, _ = only(objects, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert f"# TYPE {metric['pods']['metric']['name']} gauge" in text
