#!/usr/bin/env python3
"""A step function for the `http` moniker that takes its time: `sleeper.py URL_FILE MILLISECONDS`.

It answers every frame after the wait, any number of them at once, and writes its address to the file.
"""
import asyncio
import json
import os
import sys


async def serve(reader, writer, wait):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            at = head.lower().find(b"\r\ncontent-length:")
            length = int(head[at + 17:].split(b"\r\n", 1)[0])
            frame = json.loads(await reader.readexactly(length))
            await asyncio.sleep(wait)
            body = json.dumps({"step": frame["step"], "next_step": frame["step"], "state": frame.get("state") or {},
                               "text": "done waiting", "done": False}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                         + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(url_file, wait):
    server = await asyncio.start_server(lambda r, w: serve(r, w, wait), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with open(url_file + ".new", "w") as file:
        file.write(f"http://127.0.0.1:{port}/step")
    os.rename(url_file + ".new", url_file)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2]) / 1000))
