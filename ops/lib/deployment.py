"""Checks what a fleet is deployed with, which nothing else reads before an operator does: docker-compose.yml,
the Dockerfile, the manifests of ops/k8s, and what Prometheus and Grafana are told.

    python3 ops/lib/deployment.py ROOT

They must be well-formed, be of the shape that their readers want, and name nothing that does not exist: files,
services, ports, commands and settings of the product. A line for each finding; status 1 if there is any. Then
mistakes are made in a copy, of which every one must be found: a check that finds nothing proves nothing.
(`cargo xtask tidy` holds the names of metrics against the product's list.)
"""

import functools
import json
import pathlib
import re
import shutil
import sys
import tempfile

import kubernetes_validate
import yaml

from deployment_mistakes import MISTAKES

FINDINGS = []


def find(path, what):
    FINDINGS.append(f"{path}: {what}")


class Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A key that stands twice is a mistake, of which YAML's readers see the second half."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"{node.start_mark}: the key {twice.pop()} stands twice")
        return super().construct_mapping(node, deep)


def documents(root, path):
    try:
        found = [one for one in yaml.load_all((root / path).read_text(), Strict) if one is not None]
    except (OSError, yaml.YAMLError) as error:
        find(path, f"is no YAML that can be read: {error}")
        return []
    return found


def only(path, where, value, known):
    """Whether it is a mapping, with keys that are known. A new one is added here, once it is looked up."""
    if not isinstance(value, dict):
        find(path, f"{where} is no mapping")
        return False
    for key in value.keys() - known:
        find(path, f"{where} has the key {key}, which this check does not know")
    return True


class Product:
    """What there is to be named."""

    def __init__(self, root):
        layers = (root / "workers/host/src/config/layers.rs").read_text()
        names = re.search(r"NAMES: &\[&str\] = &\[(.*?)\];", layers, re.S)[1]
        others = re.search(r"NOT_SETTINGS: &\[&str\] = &\[(.*?)\];", layers, re.S)[1]
        self.settings = {f"STEPFLEET_{name.upper()}" for name in re.findall(r'"(\w+)"', names)}
        self.settings |= set(re.findall(r'"(\w+)"', others))
        commands = re.search(r"pub enum Command \{(.*?)\n\}", (root / "ops/stepfleet/src/cli.rs").read_text(), re.S)[1]
        self.commands = {name.lower() for name in re.findall(r"^    (\w+)[(,]", commands, re.M)}
        served = "".join(file.read_text() for file in (root / "dispatcher/src/api").glob("*.rs"))
        self.paths = set(re.findall(r'Route::get\("([^"]+)"', served))

    def settings_of(self, path, where, names):
        for name in names:
            if name.startswith("STEPFLEET_") and name not in self.settings:
                find(path, f"{where} sets {name}, which is no setting")

    def command(self, path, where, arguments):
        if not isinstance(arguments, list) or not arguments or arguments[0] not in self.commands:
            find(path, f"{where} runs {arguments}, which is no command of the product")


# --- the image ------------------------------------------------------------------------------------------------


@functools.cache
def compiled_in(root):
    """The files that become part of the binary, each with the source that says so."""
    found = []
    sources = (file for top in ("schemas", "workers", "dispatcher", "ops/stepfleet") for file in (root / top).rglob("*.rs"))
    for file in sources:
        by = file.relative_to(root).as_posix()
        # Not what tests alone read.
        if "/tests" in by or "/target/" in by or "/examples/" in by:
            continue
        text = file.read_text()
        package = next(parent for parent in file.parents if (parent / "Cargo.toml").exists())
        paths = [file.parent / path for path in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', text)]
        paths += [package / path for path in re.findall(r'#\[folder = "([^"]+)"', text)]
        found += [(path.resolve().relative_to(root).as_posix(), by) for path in paths]
    return found


class Image:
    """What the Dockerfile promises to whoever runs its image."""

    PATH = "ops/Dockerfile"

    def __init__(self, root, product):
        text = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", (root / self.PATH).read_text()))
        lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
        self.lines = [(word, rest) for word, rest in lines]
        known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
        for word, _ in self.lines:
            if word not in known:
                find(self.PATH, f"has the instruction {word}, which this check does not know")
        self.env = dict(re.findall(r"(\w+)=(\S+)", " ".join(self.all("ENV"))))
        self.port = int(self.all("EXPOSE")[0])
        self.user = int(self.all("USER")[0].split(":")[0])
        product.settings_of(self.PATH, "ENV", self.env)
        for name in ("STEPFLEET_LISTEN", "STEPFLEET_WORKER_LISTEN"):
            if self.env.get(name) != f"0.0.0.0:{self.port}":
                find(self.PATH, f"exposes {self.port}, and {name} is {self.env.get(name)}")
        product.command(self.PATH, "CMD", json.loads(self.all("CMD")[0]))
        self.compiler(root)
        self.context(root)

    def all(self, word):
        return [rest for known, rest in self.lines if known == word]

    def compiler(self, root):
        wanted = re.search(r'(?m)^rust-version = "([\d.]+)"', (root / "Cargo.toml").read_text())[1]
        given = re.search(r"rust:([\d.]+)", self.all("FROM")[0])
        number = lambda text: [int(part) for part in text.split(".")]
        if given is None or number(given[1]) < number(wanted):
            find(self.PATH, f"builds with {self.all('FROM')[0]}, and Cargo.toml wants {wanted}")

    def context(self, root):
        """All that the compiler reads is sent to it: `.dockerignore` lets nothing pass that it does not name."""
        lines = [line for line in (root / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
        sent = [line[1:] for line in lines if line[0] == "!"]
        for path in sent:
            if not (root / path).exists():
                find(".dockerignore", f"names {path}, which is not there")
        inside = lambda path: any(path == one or path.startswith(f"{one}/") for one in sent)
        members = re.search(r"members = \[(.*?)\]", (root / "Cargo.toml").read_text(), re.S)[1]
        read = [(member, "Cargo.toml") for member in re.findall(r'"([^"]+)"', members)]
        for path, by in read + compiled_in(root):
            if not (root / path).exists():
                find(by, f"reads {path}, which is not there")
            elif not inside(path):
                find(".dockerignore", f"keeps {path} from the image's build, which {by} names")


# --- docker-compose.yml ---------------------------------------------------------------------------------------


SERVICE = {
    "image", "build", "environment", "restart", "cap_drop", "security_opt", "command", "shm_size", "volumes",
    "healthcheck", "stop_grace_period", "hostname", "entrypoint", "depends_on", "ports", "deploy", "secrets",
}
DURATION = re.compile(r"^(\d+(us|ms|s|m|h))+$")
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


class Compose:
    PATH = "docker-compose.yml"

    def __init__(self, root, product, image):
        self.root, self.product, self.image = root, product, image
        found = documents(root, self.PATH)
        self.services = {}
        if len(found) != 1 or not isinstance(found[0], dict):
            return find(self.PATH, "is not one document")
        self.top = {key: value for key, value in found[0].items() if not key.startswith("x-")}
        only(self.PATH, "the file", self.top, {"name", "services", "secrets", "volumes"})
        self.services = self.top.get("services") or {}
        self.interpolations()
        for name, service in self.services.items():
            if only(self.PATH, f"service {name}", service, SERVICE):
                self.service(f"service {name}", service)
        for name in (self.top.get("volumes") or {}).keys() - self.mounted():
            find(self.PATH, f"the volume {name} is mounted nowhere")

    def interpolations(self):
        text = re.sub(r"(?m)^\s*#.*$", "", (self.root / self.PATH).read_text()).replace("$$", "")
        for found in re.finditer(r"\$(\{[^}]*\}?|.)", text):
            if not re.fullmatch(r"\{[A-Z][A-Z0-9_]*(:?[-?+][^}]*)?\}", found[1]):
                find(self.PATH, f"{found[0]} is no variable; a plain dollar sign is written twice")

    def service(self, where, service):
        if not (isinstance(service.get("image"), str) or "build" in service):
            find(self.PATH, f"{where} has neither an image nor a way to build one")
        build = service.get("build")
        if build is not None and only(self.PATH, f"{where}: build", build, {"context", "dockerfile"}):
            context = self.root / build.get("context", ".")
            if not (context / build.get("dockerfile", "Dockerfile")).is_file():
                find(self.PATH, f"{where} is built from a file that is not there")
            self.product.command(self.PATH, where, service.get("command"))
        if str(service.get("restart", "no")) not in ("no", "always", "unless-stopped", "on-failure"):
            find(self.PATH, f"{where}: restart is {service['restart']}")
        self.durations(where, service, ["stop_grace_period"])
        check = service.get("healthcheck")
        times = ["interval", "timeout", "start_period", "start_interval"]
        if check is not None and only(self.PATH, f"{where}: healthcheck", check, {"test", "retries", *times}):
            self.durations(where, check, times)
            if not (isinstance(check.get("test"), list) and check["test"][:1] in (["CMD"], ["CMD-SHELL"])):
                find(self.PATH, f"{where}: the test of its health is no list that begins with CMD")
            self.probe(where, service, check)
        deploy = service.get("deploy", {})
        only(self.PATH, f"{where}: deploy", deploy, {"replicas"})
        self.environment(where, service)
        self.order(where, service)
        self.ports(where, service)
        self.mounts(where, service)
        for name in service.get("secrets", []):
            if name not in (self.top.get("secrets") or {}):
                find(self.PATH, f"{where} takes the secret {name}, which is not declared")

    def durations(self, where, of, names):
        for name in names:
            if name in of and not DURATION.match(str(of[name])):
                find(self.PATH, f"{where}: {name} is {of[name]}, which is no duration")

    def is_ours(self, service):
        return "build" in service

    def probe(self, where, service, check):
        """Of our own image: the probe asks at the port of the image, for a path that is served."""
        if not self.is_ours(service):
            return
        for port, path in re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", " ".join(map(str, check["test"]))):
            if int(port) != self.image.port or path not in self.product.paths:
                find(self.PATH, f"{where} is probed at :{port}{path}, where nothing answers")

    def environment(self, where, service):
        given = service.get("environment", {})
        if not isinstance(given, dict):
            return find(self.PATH, f"{where}: its environment is no mapping")
        self.product.settings_of(self.PATH, where, given)
        for name, value in given.items():
            if isinstance(value, (bool, dict, list)):
                find(self.PATH, f"{where}: {name} must be a text; put it into quotes")
            # A host without a dot is another service of this file.
            for host in re.findall(r"://(?:[^@/\s]*@)?([a-z][a-z0-9_-]*):\d+", str(value)):
                if host not in self.services:
                    find(self.PATH, f"{where}: {name} names the host {host}, which is no service")

    def order(self, where, service):
        needs = service.get("depends_on", {})
        for name, need in (needs.items() if isinstance(needs, dict) else [(name, {}) for name in needs]):
            if name not in self.services:
                find(self.PATH, f"{where} waits for {name}, which is no service")
                continue
            condition = need.get("condition", "service_started")
            other = self.services[name]
            if condition not in CONDITIONS:
                find(self.PATH, f"{where} waits for {name} to be {condition}, which is no condition")
            elif condition == "service_healthy" and "healthcheck" not in other:
                find(self.PATH, f"{where} waits for the health of {name}, which nobody checks")
            elif condition == "service_completed_successfully" and other.get("restart") in ("always", "unless-stopped"):
                find(self.PATH, f"{where} waits for the end of {name}, which is started again and again")

    def ports(self, where, service):
        for port in service.get("ports", []):
            inner = re.search(r"^127\.0\.0\.1:(?:\d+|\$\{[^}]+\}):(\d+)$", str(port))
            if inner is None:
                find(self.PATH, f"{where} publishes {port}, and not a port of this machine alone")
            elif self.is_ours(service) and int(inner[1]) != self.image.port:
                find(self.PATH, f"{where} publishes {inner[1]}, and the image listens at {self.image.port}")

    def mounts(self, where, service):
        for mount in service.get("volumes", []):
            source, target = str(mount).split(":")[:2]
            if not target.startswith("/"):
                find(self.PATH, f"{where} mounts at {target}, which is no path")
            if source.startswith("."):
                if not (self.root / source).exists():
                    find(self.PATH, f"{where} mounts {source}, which is not there")
            elif source not in (self.top.get("volumes") or {}):
                find(self.PATH, f"{where} mounts the volume {source}, which is not declared")

    def mounted(self):
        return {str(mount).split(":")[0] for service in self.services.values() for mount in service.get("volumes", [])}


# --- Kubernetes -----------------------------------------------------------------------------------------------


# The kinds of others' operators, of which the cluster's own schemas know nothing: keys of `spec`.
CUSTOM = {
    "PodMonitor": {"selector", "podMetricsEndpoints"},
    "ScaledObject": {
        "scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod", "advanced",
        "triggers",
    },
}


@functools.cache
def misshapen(text):
    """What the cluster's own schema says against an object, as JSON."""
    try:
        kubernetes_validate.validate(json.loads(text), kubernetes_validate.latest_version(), strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return getattr(error, "message", None) or str(error)
    return None


class Manifests:
    FOLDER = "ops/k8s"
    # What an operator fills in and applies apart.
    APART = {"kustomization.yaml", "secret.example.yaml"}

    def __init__(self, root, product, image):
        self.product, self.image = product, image
        self.all = []
        for file in sorted((root / self.FOLDER).glob("*.yaml")):
            path = f"{self.FOLDER}/{file.name}"
            self.all += [(path, one) for one in documents(root, path)]
        self.kustomization({file.name for file in (root / self.FOLDER).glob("*.yaml")})
        for path, one in self.all:
            if self.kind(one) != "Kustomization":
                self.shape(path, one)
                self.place(path, one)
        for path, one in self.all:
            spec = one.get("spec", {})
            if "template" in spec and "containers" in spec["template"].get("spec", {}):
                self.pods(path, one, spec)
            if self.kind(one) in ("ConfigMap", "Secret"):
                given = one.get("data") or one.get("stringData") or {}
                product.settings_of(path, one["metadata"]["name"], given)
            if self.kind(one) in CUSTOM:
                self.custom(path, one)
            if self.kind(one) in ("Service", "PodDisruptionBudget"):
                self.selected(path, one)

    def kind(self, one):
        return one.get("kind") if isinstance(one, dict) else None

    def named(self, kind, name):
        return next((one for _, one in self.all if self.kind(one) == kind and one["metadata"]["name"] == name), None)

    def templates(self):
        return [one["spec"]["template"] for _, one in self.all if "template" in one.get("spec", {})]

    def kustomization(self, files):
        path = f"{self.FOLDER}/kustomization.yaml"
        one = next((one for at, one in self.all if at == path), {})
        only(path, "the file", one, {"apiVersion", "kind", "resources", "images"})
        listed = set(one.get("resources", []))
        for name in listed ^ (files - self.APART):
            find(path, f"{name} is " + ("listed, and not there" if name in listed else "there, and not listed"))
        used = {container["image"] for template in self.templates() for container in template["spec"]["containers"]}
        for name in {image["name"] for image in one.get("images", [])} ^ used:
            find(path, f"the image {name} is named here or in the manifests, and not in both")

    def shape(self, path, one):
        if self.kind(one) in CUSTOM:
            return
        wrong = misshapen(json.dumps(one))
        if wrong:
            find(path, f"{self.kind(one)}: {wrong}")

    def place(self, path, one):
        meta = one.get("metadata", {})
        if self.kind(one) != "Namespace" and meta.get("namespace") != "stepfleet":
            find(path, f"{self.kind(one)} {meta.get('name')} is not in the fleet's namespace")

    def pods(self, path, one, spec):
        template = spec["template"]
        where = f"{one['kind']} {one['metadata']['name']}"
        labels = template.get("metadata", {}).get("labels", {})
        wanted = spec.get("selector", {}).get("matchLabels", {})
        if not wanted.items() <= labels.items():
            find(path, f"{where} selects pods that it does not make")
        pod = template["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        if pod.get("securityContext", {}).get("runAsUser") != self.image.user:
            find(path, f"{where} runs as another user than the image's {self.image.user}")
        for container in pod["containers"]:
            self.container(path, where, container, volumes)

    def container(self, path, where, container, volumes):
        self.product.command(path, where, container.get("args"))
        for source in container.get("envFrom", []):
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if key in source and self.named(kind, source[key]["name"]) is None:
                    find(path, f"{where} takes its environment from {kind} {source[key]['name']}, which is not there")
        self.product.settings_of(path, where, [one["name"] for one in container.get("env", [])])
        ports = {port.get("name"): port["containerPort"] for port in container.get("ports", [])}
        for port in ports.values():
            if port != self.image.port:
                find(path, f"{where} has the port {port}, and the image listens at {self.image.port}")
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            for way in ("httpGet", "tcpSocket"):
                asked = container.get(probe, {}).get(way)
                if asked and asked["port"] not in {*ports, *ports.values()}:
                    find(path, f"{where}: {probe} asks at the port {asked['port']}, which it does not have")
                if asked and way == "httpGet" and asked["path"] not in self.product.paths:
                    find(path, f"{where}: {probe} asks for {asked['path']}, which is not served")
        for name in {mount["name"] for mount in container.get("volumeMounts", [])} ^ volumes:
            find(path, f"{where}: the volume {name} is declared or mounted, and not both")

    def selected(self, path, one):
        wanted = one["spec"]["selector"]
        wanted = wanted.get("matchLabels", wanted)
        pods = [template for template in self.templates() if wanted.items() <= template["metadata"]["labels"].items()]
        if not pods:
            find(path, f"{one['kind']} {one['metadata']['name']} selects nothing")
        names = {port.get("name") for pod in pods for port in pod["spec"]["containers"][0].get("ports", [])}
        for port in one["spec"].get("ports", []):
            if port.get("targetPort") not in names:
                find(path, f"{one['kind']} {one['metadata']['name']} leads to the port {port.get('targetPort')}, which no pod has")

    def custom(self, path, one):
        kind, spec = one["kind"], one.get("spec", {})
        if not only(path, kind, one, {"apiVersion", "kind", "metadata", "spec"}) or not only(path, kind, spec, CUSTOM[kind]):
            return
        if kind == "ScaledObject":
            if self.named("Deployment", spec["scaleTargetRef"]["name"]) is None:
                find(path, f"scales {spec['scaleTargetRef']['name']}, which is no deployment")
            if not 0 < spec["minReplicaCount"] <= spec["maxReplicaCount"]:
                find(path, "the least number of replicas is above the greatest, or none")
            for trigger in spec["triggers"]:
                only(path, "a trigger", trigger, {"type", "metricType", "metadata"})
                # The operator reads them as texts.
                for key, value in trigger["metadata"].items():
                    if not isinstance(value, str):
                        find(path, f"{key} of the trigger {trigger['type']} must be a text; put it into quotes")
        for point in spec.get("podMetricsEndpoints", []):
            only(path, "an endpoint", point, {"port", "path", "interval", "authorization"})
            if point["path"] not in self.product.paths:
                find(path, f"scrapes {point['path']}, which is not served")
            secret = point["authorization"]["credentials"]
            kept = self.named("Secret", secret["name"]) or {}
            if secret["key"] not in (kept.get("stringData") or {}):
                find(path, f"takes {secret['key']} from the secret {secret['name']}, which does not have it")


# --- Prometheus and Grafana -----------------------------------------------------------------------------------


def prometheus(root, compose, image):
    path = "ops/dashboards/prometheus.yml"
    for one in documents(root, path):
        only(path, "the file", one, {"global", "scrape_configs"})
        only(path, "global", one.get("global", {}), {"scrape_interval", "scrape_timeout"})
        jobs = [job.get("job_name") for job in one.get("scrape_configs", [])]
        if len(set(jobs)) != len(jobs):
            find(path, "two jobs have one name")
        for job in one.get("scrape_configs", []):
            where = f"the job {job.get('job_name')}"
            known = {"job_name", "authorization", "dns_sd_configs", "static_configs", "metrics_path", "params"}
            only(path, where, job, known)
            secret = job.get("authorization", {}).get("credentials_file")
            taken = compose.services.get("prometheus", {}).get("secrets", [])
            if secret and secret.removeprefix("/run/secrets/") not in taken:
                find(path, f"{where} reads {secret}, which its container does not have")
            hosts = [(name, of["port"]) for of in job.get("dns_sd_configs", []) for name in of["names"]]
            hosts += [target.split(":") for of in job.get("static_configs", []) for target in of["targets"]]
            for host, port in hosts:
                service = compose.services.get(host)
                if service is None:
                    find(path, f"{where} scrapes {host}, which is no service")
                elif "build" in service and int(port) != image.port:
                    find(path, f"{where} scrapes {host} at {port}, and the image listens at {image.port}")


def described(root):
    """The metrics of the product, by kind."""
    names = dict(re.findall(r'pub const (\w+): &str = "(stepfleet_\w+)"', (root / "schemas/src/telemetry.rs").read_text()))
    kinds = re.findall(r"describe_(\w+)!\(\s*(\w+)", (root / "workers/host/src/metrics.rs").read_text())
    return {names[name]: kind for kind, name in kinds if name in names}


def queries(panel):
    yield from (target["expr"] for target in panel.get("targets", []))
    for inner in panel.get("panels", []):
        yield from queries(inner)


def query(path, text, kinds):
    """Not the whole language: its brackets, and that each metric is asked in the way of its kind."""
    open_ones = []
    for sign in re.sub(r'"(\\.|[^"\\])*"', "", text):
        if sign in "([{":
            open_ones.append(sign)
        elif sign in ")]}" and (not open_ones or open_ones.pop() + sign not in ("()", "[]", "{}")):
            return find(path, f"its brackets do not match: {text}")
    if open_ones:
        return find(path, f"its brackets do not match: {text}")
    for name, tail in re.findall(r"\b(stepfleet_\w+)(?:\{[^}]*\})?(\[)?", text):
        whole = re.sub(r"_(bucket|sum|count)$", "", name)
        kind = kinds.get(name) or kinds.get(whole)
        # Whether there is such a metric is looked at by `cargo xtask tidy`.
        if kind == "histogram" and name == whole:
            find(path, f"asks the histogram {name} for a value of its own: {text}")
        if kind == "histogram" and not tail:
            find(path, f"asks {name} for its total, which starts anew with each process, and not for its rate: {text}")
        if kind == "gauge" and tail:
            find(path, f"asks the gauge {name} for its rate: {text}")


def grafana(root, compose):
    service = compose.services.get("grafana", {})
    mounted = dict(str(mount).split(":")[:2][::-1] for mount in service.get("volumes", []))
    kinds = described(root)
    if not kinds:
        find("workers/host/src/metrics.rs", "describes no metric in the way that this check reads")
    for file in sorted((root / "ops/dashboards").glob("*.json")):
        path = file.relative_to(root).as_posix()
        try:
            board = json.loads(file.read_text())
        except ValueError as error:
            find(path, f"is no JSON: {error}")
            continue
        if f"./{path}" not in mounted.values():
            find(path, "is not mounted into Grafana's container")
        ids = [panel["id"] for panel in board["panels"]]
        if len(set(ids)) != len(ids):
            find(path, "two panels have one id")
        for panel in board["panels"]:
            for text in queries(panel):
                query(path, text, kinds)
    home = (service.get("environment") or {}).get("GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH")
    if home and home not in mounted:
        find("docker-compose.yml", f"Grafana's first page is {home}, which is not mounted")
    for one in documents(root, "ops/deploy/grafana/dashboards.yaml"):
        for provider in one["providers"]:
            if not any(target.startswith(provider["options"]["path"] + "/") for target in mounted):
                find("ops/deploy/grafana/dashboards.yaml", f"nothing is mounted below {provider['options']['path']}")
    for one in documents(root, "ops/deploy/grafana/datasource.yaml"):
        for source in one["datasources"]:
            host = re.match(r"http://([^:/]+)", source["url"])[1]
            if host not in compose.services:
                find("ops/deploy/grafana/datasource.yaml", f"{host} is no service")


def check(root):
    FINDINGS.clear()
    product = Product(root)
    image = Image(root, product)
    compose = Compose(root, product, image)
    Manifests(root, product, image)
    prometheus(root, compose, image)
    grafana(root, compose)
    return FINDINGS


def prove(root):
    """The mistakes that are not found."""
    missed = []
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(place).resolve() / "copy"
        ignored = shutil.ignore_patterns(".git", "target", "node_modules", "stepfleet-data", "images")
        shutil.copytree(root, copy, ignore=ignored, symlinks=True)
        for path, right, wrong in MISTAKES:
            text = (copy / path).read_text()
            if right not in text:
                missed.append(f"{path}: {right!r} is not in it any more; choose another mistake")
                continue
            (copy / path).write_text(text.replace(right, wrong, 1))
            if not check(copy):
                missed.append(f"{path}: {wrong!r} instead of {right!r} is not found")
            (copy / path).write_text(text)
    return missed


def main(root):
    found = list(check(root)) or prove(root)
    for line in found:
        print(line, file=sys.stderr)
    print(f"deployment: {len(found)} findings, {len(MISTAKES)} mistakes tried")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
