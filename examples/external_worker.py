#!/usr/bin/env python3
"""A worker in Python for tools of kind `external`, standard library only.

It claims tasks of a pool over HTTP, runs them, and sends the result back. Start as many as you like,
anywhere: each task goes to one of them. Kill one at any time: what it had is given to another one
if the tool says that this is safe (`effect_class: idempotent`), and is told to be in doubt otherwise.
Told to stop (SIGTERM), it ends what it has begun, gives back what it has not, and goes.

    python3 examples/external_worker.py --check                       try the tools by themselves
    STEPFLEET_TOKEN=... python3 examples/external_worker.py --url http://127.0.0.1:7070 --pool python
"""
import argparse
import http.client
import json
import os
import signal
import statistics
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

WAIT_S = 20
BODY_BYTES_MAX = 8 << 20


class ToolError(Exception):
    """How a task failed. If it is `retriable`, with the code EXECUTION_FAILED, INTERNAL_ERROR or TIMEOUT, a task that
    may be repeated is given to a worker again while it has attempts left; else the model is shown it."""

    def __init__(self, code, message, retriable=False):
        super().__init__(message)
        self.error = {"code": code, "message": message, "retriable": retriable}


def numbers(task):
    """Statistics of a list of numbers: {"values": [1, 2, 3]}."""
    values = task["input"].get("values")
    if not isinstance(values, list) or not values or not all(isinstance(v, (int, float)) for v in values):
        raise ToolError("INVALID_INPUT", "values must be a list of numbers, at least one")
    return {
        "count": len(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "spread": statistics.pstdev(values),
    }


def slugs(task):
    """Words joined for an address: {"text": "Hello, World"} is "hello-world"."""
    text = str(task["input"].get("text", "")).lower()
    words = "".join(c if c.isalnum() else " " for c in text).split()
    return {"slug": "-".join(words)}


# By the name that the model calls.
TOOLS = {"number_statistics": numbers, "make_slug": slugs}


def end_of(task):
    """What becomes of a task: {"result": ...} or {"error": ...}."""
    tool = TOOLS.get(task["tool"])
    try:
        if tool is None:
            raise ToolError("NOT_FOUND", "this worker has no tool %s" % task["tool"])
        return {"result": tool(task)}
    except ToolError as failed:
        return {"error": failed.error}
    except Exception as broken:  # A bug of a tool must not end the worker.
        return {"error": {"code": "INTERNAL_ERROR", "message": repr(broken), "retriable": False}}


def said(refused):
    """How the body of a refusal begins."""
    try:
        return refused.read(2000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as broken:
        return repr(broken)


class Fleet:
    def __init__(self, url, token, worker):
        self.url, self.token, self.worker = url.rstrip("/"), token, worker

    def post(self, path, body, timeout):
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                text = response.read(BODY_BYTES_MAX)
                return response.status, json.loads(text) if text else None
        except (http.client.HTTPException, ValueError) as broken:  # It broke off, or is no JSON.
            raise OSError("an answer that cannot be read: %r" % broken) from broken

    def claim(self, pool):
        """One task, or None if there was none for a while."""
        query = urllib.parse.urlencode({"wait_s": WAIT_S, "worker": self.worker})
        path = "/api/pools/%s/claim?%s" % (urllib.parse.quote(pool), query)
        status, task = self.post(path, {}, timeout=WAIT_S + 15)
        return task if status == 200 else None

    def release(self, pool, task):
        """Gives back a task that was not begun: another worker gets it at once, and no attempt is lost."""
        body = {"operation_id": task["operation_id"], "until": task["until"], "worker": self.worker}
        try:
            self.post("/api/pools/%s/release" % urllib.parse.quote(pool), body, timeout=10)
            print("%s was given back" % task["operation_id"], flush=True)
        except OSError as failed:  # It is another one's when its claim has ended.
            print("%s was not given back: %s" % (task["operation_id"], failed), file=sys.stderr)

    def tell(self, task, end):
        """Sends the end until it is taken: the same end may be sent twice."""
        body = dict(end, operation_id=task["operation_id"], session_id=task["session_id"])
        if "error" in end:  # Told once more, it costs no later attempt.
            body["attempt"] = task["attempt"]
        while True:
            try:
                return self.post("/api/tool-results", body, timeout=30)
            except urllib.error.HTTPError as refused:
                if refused.code < 500 and refused.code != 429:
                    # Somebody else ended it, or its session is gone: nobody waits for it any more.
                    print("not taken: %s" % said(refused), file=sys.stderr)
                    return None
            except OSError as away:
                print("the fleet is away: %s" % away, file=sys.stderr)
            time.sleep(1)


def serve(fleet, pool, tasks, stop):
    print("worker %s serves pool %s" % (fleet.worker, pool), flush=True)
    while tasks != 0 and not stop.is_set():
        try:
            task = fleet.claim(pool)
        except urllib.error.HTTPError as refused:
            if refused.code in (400, 401, 403, 404):
                sys.exit("refused: %s" % said(refused))
            time.sleep(1)
            continue
        except OSError as away:
            print("the fleet is away: %s" % away, file=sys.stderr)
            time.sleep(1)
            continue
        if task is None:
            continue
        if stop.is_set():  # It came while this worker was told to stop.
            return fleet.release(pool, task)
        end = end_of(task)
        print("%s attempt %d: %s" % (task["tool"], task["attempt"], json.dumps(end)), flush=True)
        fleet.tell(task, end)
        tasks -= 1


def check():
    assert end_of({"tool": "make_slug", "input": {"text": "Hello, World!"}}) == {"result": {"slug": "hello-world"}}
    made = end_of({"tool": "number_statistics", "input": {"values": [1, 2, 6]}})["result"]
    assert (made["count"], made["mean"], made["median"]) == (3, 3.0, 2)
    assert end_of({"tool": "number_statistics", "input": {}})["error"]["code"] == "INVALID_INPUT"
    assert end_of({"tool": "other", "input": {}})["error"]["code"] == "NOT_FOUND"
    print("ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:7070")
    parser.add_argument("--pool", default="python")
    parser.add_argument("--worker", default="python-%d" % os.getpid(), help="a name for operators")
    parser.add_argument("--tasks", type=int, default=-1, help="end after so many")
    parser.add_argument("--check", action="store_true", help="try the tools by themselves")
    options = parser.parse_args()
    if options.check:
        return check()
    token = os.environ.get("STEPFLEET_TOKEN")
    if not token:
        sys.exit("set STEPFLEET_TOKEN to a token with scope act")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())  # A claim under way is waited for: its task would be lost.
    serve(Fleet(options.url, token, options.worker), options.pool, options.tasks, stop)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
