"""A foreign client of the broker: any AMQP library will do, this one is Python's pika.

Reads one order per line from standard input and answers each with a line:
  {"n": 1, "op": "publish", "key": QUEUE, "body": TEXT, "message_id": ID, "times": 2}
  {"n": 2, "op": "meddle", "queues": [QUEUE...], "seconds": 5.0, "seed": 7}
"""

import json
import random
import sys
import time

import pika

ACTIONS = "stepfleet.actions"


class Broker:
    """A connection that is made anew whenever it is lost."""

    def __init__(self, url):
        self.parameters = pika.URLParameters(url)
        self.parameters.heartbeat = 10
        self.parameters.blocked_connection_timeout = 4
        self.parameters.socket_timeout = 4
        self.parameters.stack_timeout = 6
        self.connection = None

    def channel(self):
        if self.connection is None or not self.connection.is_open:
            self.connection = pika.BlockingConnection(self.parameters)
        channel = self.connection.channel()
        channel.confirm_delivery()
        return channel

    def drop(self):
        connection, self.connection = self.connection, None
        try:
            connection.close()
        except Exception:  # It is lost; there is nothing to be saved of it.
            pass


def publish(broker, order):
    channel = broker.channel()
    properties = pika.BasicProperties(message_id=order["message_id"], delivery_mode=2)
    for _ in range(order.get("times", 1)):
        channel.basic_publish("", order["key"], order["body"].encode(), properties, mandatory=True)
    channel.close()
    return 0


def meddle(broker, order):
    """Copies of what is published come again, shuffled and doubled; what waits is thrown away."""
    dice = random.Random(order["seed"])
    channel = broker.channel()
    tap = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 2000}).method.queue
    for queue in order["queues"]:
        channel.queue_bind(tap, ACTIONS, queue)
    ends, moved = time.monotonic() + order["seconds"], 0
    while time.monotonic() < ends:
        copies = []
        while len(copies) < 40:
            method, properties, body = channel.basic_get(tap, auto_ack=True)
            if method is None:
                break
            copies += [(method.routing_key, properties, body)] * dice.choice([0, 1, 1, 2])
        dice.shuffle(copies)
        for key, properties, body in copies:
            channel.basic_publish("", key, body, properties)
            moved += 1
        if dice.random() < 0.3:
            channel.queue_purge(dice.choice(order["queues"]))
        broker.connection.sleep(0.1)
    channel.queue_delete(tap)
    channel.close()
    return moved


def main():
    broker = Broker(sys.stdin.readline().strip())
    for line in sys.stdin:
        order = json.loads(line)
        answer = {"n": order["n"], "ok": False}
        try:
            work = publish if order["op"] == "publish" else meddle
            answer.update(ok=True, moved=work(broker, order))
        except Exception as error:
            answer["error"] = repr(error)
            broker.drop()
        print(json.dumps(answer), flush=True)


main()
