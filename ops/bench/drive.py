#!/usr/bin/env python3
"""Stepfleet in the comparison: the same job as every peer, then measurements of our own.

VARIANT  embedded (`up` on SQLite) or fleet (dispatcher, workers, PostgreSQL, RabbitMQ)
ONLY     the comparison's parts, and of our own: backlog, stored, takeover, scale
WORKERS  processes of the fleet (1); further variables: `benchlib`'s, PEERS_DIR, STEPFLEET_BIN
"""
import os
import time

from base import b
from system import Embedded, Fleet
import own

OPEN = "starting,running,paused,stopping,stopped,error"
CONTROLS = 40


class Stepfleet(b.Adapter):
    peer = "stepfleet"

    def __init__(self, system):
        self.system = system
        self.variant = os.environ["VARIANT"]
        if system.has_server and system.count > 1:
            self.variant += f" w{system.count}"
        for name in ("fresh", "groups", "disk", "start_server", "stop_server", "start_workers", "stop_workers",
                     "kill_workers", "kill_server"):
            setattr(self, name, getattr(system, name, None))

    def has_server(self):
        return self.system.has_server

    def install_bytes(self):
        return os.path.getsize(self.system.binary)

    def run_sessions(self, sids, n):
        agent = "agent-" + sids[0]
        self.system.client.act_all(({
            "type": "create", "action_id": "create-" + sid, "session_id": sid, "agent_id": agent,
            "payload": {"moniker": "bench", "state": {"seed": sid}, "config": {"steps": n}},
        } for sid in sids), self.timeout)
        # One session alone is asked for as often as the other adapters that ask do (Celery's: 2 ms); the question is
        # work for the processors that run the step.
        wait_until_completed(self.system, agent, self.timeout, 0.002 if len(sids) == 1 else 0.0005)

    def control(self, out):
        """From the call of a client to the event that a client sees, of sessions that wait."""
        client, tag = self.system.client, time.time_ns()
        times = {"interrupt": [], "pause": [], "resume": [], "destroy": []}
        for n in range(CONTROLS):
            session = f"control-{tag}-{n}"
            client.act({"type": "create", "session_id": session, "agent_id": "control",
                        "payload": {"moniker": "count", "loop_interval_ms": 3_600_000}})
            events = client.events(session)
            until(events, lambda event: event["type"] == "step")
            for verb, payload, seen in CONTROL_STEPS:
                time.sleep(0.02)
                start = b.now()
                client.act({"type": verb, "session_id": session, "payload": payload})
                until(events, seen)
                times[verb].append((b.now() - start) / 1e6)
            events.close()
        # Under the peers' names, too: a message that a waiting session acts on, and a stop order.
        for name, verb in (("signal", "interrupt"), ("cancel", "pause"), *((verb, verb) for verb in times)):
            for percent in (50, 99):
                out(f"control_{name}_p{percent}", b.pct(times[verb], percent), "ms", n=CONTROLS, what=verb)


def status(wanted):
    """Whether an event says that the session now has the status."""
    return lambda event: event["type"] in ("status", "end") and wanted in str(event.get("data") or "stopped")


CONTROL_STEPS = [
    # Urgent guidance ends the wait; the step that takes it follows.
    ("interrupt", {"guidance": {"set": 7}, "mode": "now"},
     lambda event: event["type"] == "step" and event["step"].get("guidance") is not None),
    ("pause", {}, status("paused")),
    ("resume", {}, status("running")),
    ("destroy", {}, status("stopped")),
]


def until(events, wanted):
    for event in events:
        if wanted(event):
            return event
    raise RuntimeError("the stream ended before the event that was waited for")


def wait_until_completed(system, agent, timeout, pause):
    """Asks for a session that is not completed, until there is none, after `pause` seconds at first. The answer is
    one row at most; it is asked for ever less often, so that the end is noticed within a thirtieth of the time."""
    path = f"/api/sessions?agent_id={agent}&status={OPEN}&limit=1"
    start = time.monotonic()
    while True:
        time.sleep(min(0.05, max(pause, (time.monotonic() - start) / 30)))
        try:
            left = system.client.get(path)["items"]
        except OSError:
            # Its server was killed and comes back.
            left = [{"status": "unknown"}]
        if not left:
            return
        if left[0]["status"] in ("error", "stopped", "paused"):
            raise RuntimeError(f"{left[0]['session_id']} is {left[0]['status']}: {left[0].get('last_error')}")
        if time.monotonic() - start > timeout:
            raise TimeoutError(f"sessions of {agent} are not completed after {timeout} s")


def main():
    variant = os.environ.setdefault("VARIANT", "embedded")
    if variant not in ("embedded", "fleet"):
        raise SystemExit(f"error: VARIANT is embedded or fleet, not {variant}")
    adapter = Stepfleet(Embedded() if variant == "embedded" else Fleet())
    only = set(os.environ.get("ONLY", "cold,latency,first,control,tput,recover").split(","))
    if only - set(own.PARTS):
        b.run_suite(adapter)
    own.run(adapter, [part for part in own.PARTS if part in only])
    adapter.system.remove()


main()
