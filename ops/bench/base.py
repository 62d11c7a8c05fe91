"""Where things are: the comparison's library, which lies beside the checkout, and our binary.

PEERS_DIR names the directory of the comparison (`benchlib.py` and a script for each peer).
"""
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS_DIR = os.environ.get("PEERS_DIR") or os.path.join(os.path.dirname(ROOT), "shared", "bench", "peers")

if not os.path.isfile(os.path.join(PEERS_DIR, "benchlib.py")):
    sys.exit(f"error: there is no benchlib.py in {PEERS_DIR}; name the directory of the comparison in PEERS_DIR")
sys.path.insert(0, PEERS_DIR)
import benchlib as b  # noqa: E402

b.HOME = os.path.abspath(b.HOME)


def binary():
    """The stepfleet to measure: STEPFLEET_BIN, else where `ops/up` builds it."""
    target = os.environ.get("STEPFLEET_TARGET_DIR") or os.path.expanduser("~/.cache/stepfleet/target")
    path = os.environ.get("STEPFLEET_BIN") or os.path.join(target, "debug", "stepfleet")
    if not os.access(path, os.X_OK):
        sys.exit(f"error: {path} cannot be run; build it with `cargo build --package stepfleet`, or name one in STEPFLEET_BIN")
    return os.path.abspath(path)


def executions(path, prefix=""):
    """-> [(session, step, pid, time), ...] in order of writing, on the clock of `benchlib.now`.

    A worker notes executions with the time of day; the comparison's clock is the monotonic one.
    """
    shift = time.time_ns() - time.monotonic_ns()
    found = []
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            for line in lines:
                part = line.split()
                # The last line may still be half written.
                if len(part) == 4 and line.endswith("\n") and part[0].startswith(prefix):
                    found.append((part[0], int(part[1]), int(part[2]), int(part[3]) - shift))
    except FileNotFoundError:
        pass
    return found


def read_ledger(path, prefix=""):
    """In place of the comparison's own, for the sake of the clock."""
    ledger = {}
    for session, step, _, at in executions(path, prefix):
        ledger.setdefault(session, []).append((step, at))
    return ledger


b.read_ledger = read_ledger
