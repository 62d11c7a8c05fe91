"""A small HTTP client: keep-alive connections with several requests in flight on each, and event
streams. Standard library only, and cheap: it shares the machine with what it measures."""
import http.client
import json
import socket
import time

# Requests in flight on a connection: few enough that both directions fit into the socket buffers,
# so that writing all of them before reading cannot block for ever.
IN_FLIGHT_MAX = 32
AGAIN = (429, 502, 503, 504)


class Refused(RuntimeError):
    """An answer that a repeat cannot mend."""


class Unavailable(OSError):
    """Not now: a repeat may succeed."""


class Connection:
    def __init__(self, address, timeout=30):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def answer(self):
        """-> (status, body) of the next answer."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self._more()
        head = self.buffer[:end].lower()
        at = head.find(b"\r\ncontent-length:")
        length = int(head[at + 17:].split(b"\r\n", 1)[0]) if at >= 0 else 0
        while len(self.buffer) < end + 4 + length:
            self._more()
        body = self.buffer[end + 4:end + 4 + length]
        self.buffer = self.buffer[end + 4 + length:]
        return int(head[9:12]), body

    def close(self):
        self.socket.close()


class Client:
    """For one thread. `address` is host:port; the server may go and come back there."""

    def __init__(self, address, token, connections=64):
        self.address, self.token, self.width = address, token, connections
        self.connections = []

    def _request(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = (f"{method} {path} HTTP/1.1\r\nhost: {self.address}\r\nauthorization: bearer {self.token}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n")
        return head.encode() + data

    def _take(self, count):
        """So many connections, opened as needed."""
        while len(self.connections) < count:
            self.connections.append(Connection(self.address))
        return self.connections[:count]

    def _drop(self, connection):
        connection.close()
        if connection in self.connections:
            self.connections.remove(connection)

    def close(self):
        for connection in list(self.connections):
            self._drop(connection)

    def call(self, method, path, body=None):
        """-> the JSON of a good answer. An idle connection that the server has closed is replaced."""
        request = self._request(method, path, body)
        fresh = not self.connections
        connection = self._take(1)[0]
        try:
            connection.send(request)
            status, answer = connection.answer()
        except OSError:
            self._drop(connection)
            if fresh:
                raise
            self.close()
            return self.call(method, path, body)
        if status >= 300:
            raise (Unavailable if status in AGAIN else Refused)(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer) if answer else None

    def get(self, path):
        return self.call("GET", path)

    def act(self, body):
        return self.call("POST", "/api/actions", body)

    def act_all(self, bodies, timeout=600):
        """Posts actions, each with an action_id of its own so that repeats act once, until all of
        them are accepted."""
        left = [self._request("POST", "/api/actions", body) for body in bodies]
        deadline = time.monotonic() + timeout
        while left:
            try:
                lots = self._send(left)
                left = left[sum(len(lot) for _, lot in lots):]
                again = [request for connection, lot in lots for request in self._answers(connection, lot)]
            except OSError:
                # Not even a connection: nothing of this round is known to be accepted.
                self.close()
                again = [True]
            else:
                left = again + left
            if again:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(left)} actions were not accepted")
                time.sleep(0.02)

    def _send(self, requests):
        width = min(self.width, len(requests))
        connections = self._take(width)
        now = requests[:width * IN_FLIGHT_MAX]
        lots = [(connection, now[i::width]) for i, connection in enumerate(connections)]
        for connection, lot in lots:
            try:
                connection.send(b"".join(lot))
            except OSError:
                self._drop(connection)
        return lots

    def _answers(self, connection, lot):
        """-> those that have to be sent again."""
        again = []
        for n, request in enumerate(lot):
            try:
                status, answer = connection.answer()
            except OSError:
                self._drop(connection)
                return again + lot[n:]
            if status in AGAIN:
                again.append(request)
            elif status >= 300:
                raise Refused(f"{status} {answer[:300]!r}")
        return again

    def events(self, session, timeout=60):
        """-> the events of a session, from its first on, as they are committed."""
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        connection.request("GET", f"/api/sessions/{session}/events", headers={"authorization": f"bearer {self.token}"})
        response = connection.getresponse()
        if response.status != 200:
            raise Refused(f"events of {session}: {response.status} {response.read(300)!r}")
        try:
            while line := response.readline():
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])
        finally:
            connection.close()
