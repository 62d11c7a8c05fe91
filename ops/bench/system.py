"""Stepfleet as something to start, kill and look into: embedded (`up` on SQLite), and a fleet
(dispatcher, workers, PostgreSQL, RabbitMQ), each with its default durability."""
import json
import os
import random
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess

from base import ROOT, b, binary
from client import Client


def free_port():
    """Below the ports that the kernel gives to outgoing connections."""
    for _ in range(100):
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise RuntimeError("no free port between 20000 and 32000")


class System:
    """What the two modes have in common."""

    def __init__(self, name):
        self.dir = os.path.join(b.HOME, "stepfleet-" + name)
        self.binary = binary()
        self.token = secrets.token_hex(16)
        self.address = f"127.0.0.1:{free_port()}"
        self.shards = None
        # Outlives the servers: they come back at the same address.
        self.client = Client(self.address, self.token, int(os.environ.get("CONNECTIONS", "64")))

    def _env(self, member):
        env = {"STEPFLEET_DATA_DIR": os.path.join(self.dir, member), "STEPFLEET_TOKEN": self.token,
               "STEPFLEET_LOG": "warn", "STEPFLEET_ALLOW_PRIVATE": "true"}
        if "LEDGER" in os.environ:
            env["STEPFLEET_STEP_LOG"] = os.environ["LEDGER"]
        return env

    def _start(self, member, *arguments):
        ready = os.path.join(self.dir, member + ".ready")
        if os.path.exists(ready):
            os.unlink(ready)
        proc = b.Proc([self.binary, *arguments, "--ready-file", ready], f"stepfleet-{member}.log",
                      env=self._env(member), cwd=self.dir)
        proc.ready = ready
        return proc

    @staticmethod
    def _await(proc, timeout=120):
        def ready():
            if proc.p.poll() is not None:
                raise SystemExit(f"error: {proc.log.name} says why {proc.p.args[1]} ended")
            return os.path.exists(proc.ready)
        b.wait_for(ready, timeout, 0.002, proc.ready)

    def fresh(self):
        self.stop_workers()
        self.stop_server()
        self.remove()
        os.makedirs(self.dir)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def health(self):
        return self.client.get("/health")

    def history_bytes(self):
        return b.du(os.path.join(self.dir, "history"), apparent=True)

    def doctor(self):
        """Whether no step of history is missing or double, and what was said about it."""
        env = {**os.environ, **self._env("doctor"), "STEPFLEET_URL": "http://" + self.address}
        env.pop("STEPFLEET_STEP_LOG", None)
        run = subprocess.run([self.binary, "doctor", "--verify-history"], env=env, cwd=self.dir, text=True,
                             capture_output=True, timeout=600)
        return run.returncode == 0, (run.stdout + run.stderr)[-600:]


class Embedded(System):
    """One process on SQLite."""

    has_server = False

    def __init__(self):
        super().__init__("embedded")
        self.up = None

    def _env(self, member):
        env = {**super()._env(member), "STEPFLEET_DATA_DIR": os.path.join(self.dir, "data"),
               "STEPFLEET_HISTORY_URI": os.path.join(self.dir, "history")}
        if self.shards:
            env["STEPFLEET_SHARDS"] = str(self.shards)
        return env

    def groups(self):
        return {"server": [self.up.pid]}

    def start_server(self):
        if self.up is None:
            self.up = self._start("up", "up", "--listen", self.address)
            self._await(self.up)

    # Its workers are in it: a killed one is a killed process.
    start_workers = start_server

    def stop_server(self):
        if self.up:
            self.up.stop()
        self.up = None

    def stop_workers(self):
        pass

    def kill_workers(self):
        self.up.kill9()
        self.up = None

    def disk(self):
        path = os.path.join(self.dir, "data", "ledger.db")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            pages, free, size = (database.execute("pragma " + name).fetchone()[0]
                                 for name in ("page_count", "freelist_count", "page_size"))
        return {"database": (pages - free) * size, "history": self.history_bytes()}


class Service:
    """PostgreSQL or RabbitMQ of `ops/services`, in the list of what the comparison counts as its own."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name

    @property
    def pid(self):
        try:
            with open(os.path.join(self.fleet.services_dir, self.name + ".pid")) as record:
                return int(record.read().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def stop(self):
        self.fleet.stop_server()


class Fleet(System):
    """Processes as they would be on several machines."""

    has_server = True

    def __init__(self):
        super().__init__("fleet")
        self.services_dir = os.path.join(self.dir, "services")
        self.services = [Service(self, "postgres"), Service(self, "rabbitmq")]
        self.migrated = False
        self.dispatcher = None
        self.workers = []
        self.count = int(os.environ.get("WORKERS", "1"))
        # What dies with "the server": all of it, or one part.
        self.victims = os.environ.get("KILL", "postgres,rabbitmq,dispatcher").split(",")

    def _ops(self, command, *arguments, wait=True):
        run = subprocess.Popen([os.path.join(ROOT, "ops", "services"), command, self.services_dir, *arguments],
                               stdin=subprocess.DEVNULL)
        if wait and run.wait(300):
            raise RuntimeError(f"ops/services {command} {' '.join(arguments)} failed")
        return run

    def _env(self, member):
        env = {**super()._env(member), "STEPFLEET_HISTORY_URI": os.path.join(self.dir, "history")}
        with open(os.path.join(self.services_dir, "env")) as lines:
            env.update(line.strip().split("=", 1) for line in lines if "=" in line)
        return env

    def groups(self):
        return {"server": [self.dispatcher.pid, *(service.pid for service in self.services)],
                "worker": [worker.pid for worker in self.workers]}

    def start_server(self):
        """The database first, the dispatcher while the broker is still starting."""
        parent = ["--parent", str(os.getpid())]
        self._ops("up", "postgres", *([] if self.migrated else ["rabbitmq"]), *parent)
        for service in self.services:
            if service not in b.LIVE:
                b.LIVE.append(service)
        if not self.migrated:
            shards = ["--shards", str(self.shards)] if self.shards else []
            subprocess.run([self.binary, "migrate", *shards], env={**os.environ, **self._env("migrate")}, cwd=self.dir,
                           check=True, stdout=subprocess.DEVNULL)
            self.migrated = True
        if self.dispatcher is None:
            self.dispatcher = self._start("dispatcher", "dispatcher", "--listen", self.address)
        self._ops("up", "rabbitmq", *parent)
        self._await(self.dispatcher)

    def stop_server(self):
        if self.dispatcher:
            self.dispatcher.stop()
        self.dispatcher = None
        if any(service in b.LIVE for service in self.services):
            self._ops("down")
            for service in self.services:
                b.LIVE.remove(service)

    def kill_server(self):
        runs = [self._ops("kill", victim, wait=False) for victim in self.victims if victim != "dispatcher"]
        if "dispatcher" in self.victims:
            self.dispatcher.kill9()
            self.dispatcher = None
        for run in runs:
            run.wait(60)

    def start_workers(self):
        for n in range(len(self.workers), self.count):
            self.workers.append(self._start(f"worker-{n + 1}", "worker"))
        for worker in self.workers:
            self._await(worker)

    def stop_workers(self):
        for worker in self.workers:
            worker.p.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.stop()
        self.workers = []

    def kill_workers(self):
        for worker in self.workers:
            worker.kill9()
        self.workers = []

    def remove(self):
        super().remove()
        self.migrated = False

    def sql(self, text):
        url = self._env("sql")["STEPFLEET_DATABASE_URL"]
        run = subprocess.run(["psql", "-qAtX", "-c", text, url], capture_output=True, text=True, timeout=60)
        if run.returncode:
            raise RuntimeError(run.stderr)
        return run.stdout.strip()

    def disk(self):
        """Tables with their indexes, and the position of the write-ahead log."""
        tables = self.sql("select coalesce(sum(pg_total_relation_size(oid)), 0) from pg_class where relkind = 'r' "
                          "and relnamespace = 'public'::regnamespace")
        wal = self.sql("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
        return {"database": int(tables), "history": self.history_bytes(), "wal": int(wal)}

    def shards_per_worker(self):
        return sorted(len(worker["shards"]) for worker in self.client.get("/api/workers"))
