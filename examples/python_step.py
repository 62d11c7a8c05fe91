#!/usr/bin/env python3
"""A step function in Python for the `http` moniker, standard library only.

The agent keeps word statistics: every input (or guidance) with a text is counted, and each step
says what it has seen so far. The server keeps nothing: the whole memory is the state of the frame,
so it may be killed and started at any time.

    python3 examples/python_step.py --port 9000     serves POST /step
    python3 examples/python_step.py --check         runs the step function on a few frames
"""
import argparse
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_BYTES_MAX = 8 << 20
WORDS_MAX = 200  # distinct words kept, so that the state stays small
TOP = 5


def step(frame):
    """One step: takes {step, state, guidance?}, gives {step, next_step, state, text, data, done}.

    A pure function of the frame. The runner may send the same frame again after a crash, with the
    same Idempotency-Key; the answer is then the same.
    """
    state = frame.get("state") or {}
    guidance = frame.get("guidance") or {}
    counts = dict(state.get("counts") or {})
    steps = int(state.get("steps") or 0) + 1
    goal = guidance.get("until", state.get("until", 10))

    heard = text_of(guidance)
    words = re.findall(r"[^\W\d_]+", heard.lower())
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    counts = dict(order[:WORDS_MAX])

    total = int(state.get("words") or 0) + len(words)
    top = [{"word": word, "count": count} for word, count in order[:TOP]]
    if words:
        text = "Heard %d words. Most frequent so far: %s." % (
            len(words),
            ", ".join("%s (%d)" % (entry["word"], entry["count"]) for entry in top),
        )
    else:
        text = "Step %d of %s, nothing heard. %d words so far." % (steps, goal, total)
    return {
        "step": frame["step"],
        "next_step": "listen/%d" % steps,
        "state": {"steps": steps, "until": goal, "words": total, "counts": counts},
        "text": text,
        "data": {"words": total, "distinct": len(counts), "top": top},
        "done": steps >= goal,
    }


def text_of(guidance):
    """The text of an input ({"input": "..."} or {"input": {"text": "..."}}) or of plain guidance."""
    said = guidance.get("input", guidance)
    if isinstance(said, dict):
        said = said.get("text", "")
    return said if isinstance(said, str) else ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= BODY_BYTES_MAX:
            self.close_connection = True
            return self.answer(413, {"error": "the frame is too large"})
        body = self.rfile.read(length)
        if self.path != "/step":
            return self.answer(404, {"error": "POST frames to /step"})
        try:
            frame = json.loads(body)
            if not isinstance(frame, dict) or not isinstance(frame.get("step"), str):
                raise ValueError("a frame is an object with a step")
            answer = step(frame)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            # 4xx: the fleet does not try again, the step fails with this message.
            return self.answer(422, {"error": str(error)})
        return self.answer(200, answer)

    def answer(self, status, value):
        body = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        print(
            self.headers.get("X-Stepfleet-Session", "-") if self.headers else "-",
            format % args,
            file=sys.stderr,
            flush=True,
        )


def check():
    """Runs the step function on frames whose answers are known."""
    first = step({"step": "start", "state": {}, "guidance": {"input": {"text": "the cat and the dog"}}})
    assert first["state"]["counts"]["the"] == 2, first
    assert first["next_step"] == "listen/1" and first["done"] is False, first
    second = step({"step": first["next_step"], "state": first["state"], "guidance": {"input": "The end"}})
    assert second["data"]["top"][0] == {"word": "the", "count": 3}, second
    assert second["state"]["words"] == 7 and second["step"] == "listen/1", second
    again = step({"step": first["next_step"], "state": first["state"], "guidance": {"input": "The end"}})
    assert again == second, "the same frame gives the same answer"
    last = step({"step": "listen/2", "state": second["state"], "guidance": {"until": 3}})
    assert last["done"] is True and last["state"]["until"] == 3, last
    assert json.loads(json.dumps(last)) == last
    print("ok")


def main():
    parser = argparse.ArgumentParser(description="A step function for the http moniker.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000, help="0 = any free port")
    parser.add_argument("--check", action="store_true", help="check the step function and exit")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    server = ThreadingHTTPServer((arguments.host, arguments.port), Handler)
    host, port = server.server_address[:2]
    print("step function at http://%s:%d/step" % (host, port), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
