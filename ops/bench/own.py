"""Measurements that the comparison's peers have no counterpart of: take-over with a second worker
standing by, scaling over workers, control under a backlog, and stored bytes after archiving."""
import os
import signal
import sys
import time

from base import b, executions

QUICK = os.environ.get("QUICK") == "1"
HERE = os.path.dirname(os.path.abspath(__file__))


def run(adapter, parts):
    """Each part gets a fresh installation."""
    os.makedirs(b.RUN_DIR, exist_ok=True)
    ledger = os.path.join(b.RUN_DIR, f"ledger-own-{os.getpid()}.txt")
    os.environ["LEDGER"] = ledger
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = b.Out(adapter.peer, adapter.variant)
    for part in parts:
        open(ledger, "w").close()
        try:
            PARTS[part](adapter, out, ledger)
        finally:
            adapter.stop_workers()
            adapter.stop_server()
            b.stop_all()
            os.unlink(ledger)


def start(adapter, workers=1, shards=None):
    system = adapter.system
    system.shards, system.count = shards, workers
    adapter.fresh()
    adapter.start_server()
    adapter.start_workers()
    settle(adapter, workers)


def settle(adapter, workers):
    """Until all shards are owned, and evenly."""
    system = adapter.system

    def even():
        if not system.has_server:
            return system.health()["status"] == "ok"
        owned, health = system.shards_per_worker(), system.health()
        fair = health["shards"] // workers
        return len(owned) == workers and sum(owned) == health["shards"] and owned[0] > fair // 3
    b.wait_for(even, 60, 0.1, "shards spread over the workers")


def create(session, agent, payload):
    return {"type": "create", "session_id": session, "agent_id": agent, "action_id": "create-" + session,
            "payload": payload}


def act(session, verb, payload=None):
    return {"type": verb, "session_id": session, "action_id": f"{verb}-{session}-{time.time_ns()}",
            "payload": payload or {}}


def backlog(adapter, out, _ledger):
    """Pause and resume of a session whose one shard works on a long backlog of inputs."""
    inputs, crowd = (5_000 if QUICK else 100_000), [f"crowd-{n}" for n in range(100)]
    start(adapter, shards=1)
    client = adapter.system.client
    client.act_all(create(session, "crowd", {"moniker": "echo"}) for session in crowd)
    client.act(create("target", "target", {"moniker": "count", "loop_interval_ms": 10}))
    client.act_all(act(session, "pause") for session in crowd)
    await_statuses(client, "crowd", "starting,running")
    begun = time.monotonic()
    client.act_all(act(crowd[n % len(crowd)], "input", {"text": f"input {n}"}) for n in range(inputs))
    accepted = time.monotonic() - begun
    client.act_all(act(session, "resume") for session in crowd)
    begun, pauses, resumes, left = time.monotonic(), [], [], inputs
    events = client.events("target")
    while len(pauses) < 200 and left > 0:
        for verb, status, times in (("pause", "paused", pauses), ("resume", "running", resumes)):
            at = b.now()
            client.act(act("target", verb))
            await_status(events, status)
            times.append((b.now() - at) / 1e6)
        left = adapter.system.health()["pending_actions"]
    took = time.monotonic() - begun
    extra = {"n": len(pauses), "backlog": inputs, "backlog_left": left, "over_s": round(took, 1),
             "accepted_per_s": round(inputs / accepted)}
    out("control_backlog_p50", b.pct(pauses, 50), "ms", **extra)
    out("control_backlog_p99", b.pct(pauses, 99), "ms", **extra, resume_p99=round(b.pct(resumes, 99), 1))


def await_statuses(client, agent, gone):
    """Until no session of the agent has one of these."""
    path = f"/api/sessions?agent_id={agent}&status={gone}&limit=1"
    b.wait_for(lambda: not client.get(path)["items"], 60, 0.02, f"{agent} to leave {gone}")


def await_status(events, wanted):
    for event in events:
        if event["type"] == "status" and wanted in str(event.get("data")):
            return
    raise RuntimeError("the stream ended")


def stored(adapter, out, _ledger):
    """What the second of two equal loads adds, once it is archived and the journal is trimmed: the
    first one leaves behind free space that a running installation has anyway."""
    sessions = 64 if QUICK else 512
    start(adapter)
    adapter.run_sessions([f"first-{n}" for n in range(sessions)], b.N)
    before = at_rest(adapter)
    adapter.run_sessions([f"second-{n}" for n in range(sessions)], b.N)
    after = at_rest(adapter)
    grown = {key: round((after[key] - before[key]) / (sessions * b.N), 1) for key in after}
    total = grown["database"] + grown["history"]
    out("stored_bytes_per_step", round(total, 1), "B", sessions=sessions, by=grown)


def at_rest(adapter):
    """The sizes when all is archived and they have stopped to change."""
    b.wait_for(lambda: adapter.system.health()["journal_lag_rows"] == 0, 120, 0.2, "everything archived")
    time.sleep(20)  # archived rows stay readable for 15 s
    last, end = None, time.monotonic() + 90
    while time.monotonic() < end:
        sizes = adapter.disk()
        now = (sizes["database"], sizes["history"])
        if now == last:
            return sizes
        last = now
        time.sleep(6)
    return adapter.disk()


def takeover(adapter, out, ledger):
    """Two workers share paced sessions; one is killed, or frozen and thawed again."""
    if adapter.system.has_server:
        for how in (signal.SIGKILL, signal.SIGSTOP):
            for n in range(1 if QUICK else 3):
                lose_a_worker(adapter, out, ledger, how, f"{how.name.lower()}-{n}-")


def lose_a_worker(adapter, out, ledger, how, prefix):
    sessions = [f"{prefix}{n}" for n in range(64)]
    start(adapter, workers=2)
    client = adapter.system.client
    pace = {"moniker": "bench", "config": {"steps": 1_000_000}, "loop_interval_ms": 50}
    client.act_all(create(session, prefix + "agent", pace) for session in sessions)
    time.sleep(3)
    victim = adapter.system.workers[0]
    lost = b.now()
    os.kill(victim.pid, how)
    time.sleep(0.01)
    orphans = {}
    for session, _, pid, at in executions(ledger, prefix):
        orphans[session] = (pid, at)
    orphans = {session for session, (pid, _) in orphans.items() if pid == victim.pid}
    moved = {}

    def all_move():
        for session, _, pid, at in executions(ledger, prefix):
            if session in orphans and pid != victim.pid and at > lost:
                moved.setdefault(session, (at - lost) / 1e9)
        return len(moved) == len(orphans)
    try:
        b.wait_for(all_move, 60, 0.2, "orphans to move")
    except TimeoutError:
        b.log(f"{len(orphans) - len(moved)} of {len(orphans)} sessions do not move after a minute")
    if how == signal.SIGSTOP:
        os.kill(victim.pid, signal.SIGCONT)
        time.sleep(3)
    client.call("POST", "/api/sessions/bulk", {"action": "destroy", "filter": {"agent_id": prefix + "agent"}})
    await_statuses(client, prefix + "agent", "starting,running,stopping")
    runs = {}
    for session, step, _, _ in executions(ledger, prefix):
        runs[session, step] = runs.get((session, step), 0) + 1
    proven, said = adapter.system.doctor()
    if not proven:
        b.log("doctor:", said)
    out("takeover_" + how.name.lower(), max(moved.values(), default=None), "s", orphans=len(orphans),
        moved=len(moved), p50=b.pct(list(moved.values()), 50), first=min(moved.values(), default=None),
        executed_again=sum(n - 1 for n in runs.values()), history_proven=proven)


def scale(adapter, out, ledger):
    """Steps that wait 20 ms for somebody else: twice the workers with twice the sessions, and twice
    the workers with the same sessions."""
    if not adapter.system.has_server:
        return
    url_file = os.path.join(b.RUN_DIR, "sleeper.url")
    sleeper = b.Proc([sys.executable, os.path.join(HERE, "sleeper.py"), url_file, "20"], "sleeper.log")
    b.wait_for(lambda: os.path.exists(url_file), 20, 0.02, "the sleeping step function")
    with open(url_file) as file:
        url = file.read()
    load = int(os.environ.get("SCALE_SESSIONS", "24"))
    rates = {}
    for workers, sessions in ((1, load), (1, 2 * load), (2, 2 * load)):
        start(adapter, workers=workers)
        rates[workers, sessions] = io_rate(adapter, ledger, url, f"io-{workers}-{sessions}-", sessions)
    sleeper.stop()
    os.unlink(url_file)
    one, crowded, two = rates.values()
    out("io_scale_1_to_2", two[0] / one[0], "x", same_sessions=round(two[0] / crowded[0], 2), sessions=load,
        steps_per_s=[round(rate) for rate, _ in rates.values()], cores=[cores for _, cores in rates.values()])


def io_rate(adapter, ledger, url, prefix, sessions):
    client, agent = adapter.system.client, prefix + "agent"
    payload = {"moniker": "http", "config": {"url": url}}
    client.act_all(create(f"{prefix}{n}", agent, payload) for n in range(sessions))
    time.sleep(2)
    seconds = 3 if QUICK else 8
    groups = {"all": [pid for pids in adapter.groups().values() for pid in pids]}
    sampler, start_at = b.Sampler(groups, every=60).start(), b.now()
    time.sleep(seconds)
    end_at, used = b.now(), sampler.stop()["all"]["cpu_s"]
    client.call("POST", "/api/sessions/bulk", {"action": "destroy", "filter": {"agent_id": agent}})
    steps = sum(start_at < at <= end_at for _, _, _, at in executions(ledger, prefix))
    return steps * 1e9 / (end_at - start_at), round(used * 1e9 / (end_at - start_at), 2)


PARTS = {"backlog": backlog, "stored": stored, "takeover": takeover, "scale": scale}
