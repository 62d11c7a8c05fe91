# Two servers that speak the protocols of model providers, for tests: python model_servers.py ENV_FILE PARENT.
#
# Serves on free ports of 127.0.0.1, writes the addresses, and ends, together with its directory,
# when the process PARENT has gone (0: never). What they answer to which words is below.

import asyncio
import sys

import uvicorn
from llm_mock_api.mock_server import MockServer, MockServerOptions
from llm_mock_api.types.reply import ErrorReply, ReplyObject, ToolCall, Usage
from llmock.main import create_app

# Nothing compiled is left beside the sources.
sys.dont_write_bytecode = True
from served import announce, end_with

RULES = {
    "think": ReplyObject(text="Größe: 42 🦀", reasoning="Let me count.", usage=Usage(input=11, output=7)),
    "weather": ReplyObject(
        text="Let me look.",
        tools=[
            ToolCall(id="call_a", name="get_weather", args={"city": "Zürich", "days": [1, 2]}),
            ToolCall(id="call_b", name="get_time", args={}),
        ],
    ),
    "too fast": ReplyObject(error=ErrorReply(status=429, message="slow down")),
    "no key": ReplyObject(error=ErrorReply(status=401, message="who are you?", type="authentication_error")),
}


async def serve(app):
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    return f"http://127.0.0.1:{port}", task


async def main():
    env_file, parent = sys.argv[1], int(sys.argv[2])
    faulty, task = await serve(create_app())
    ruled = MockServer(MockServerOptions(default_latency=5, default_chunk_size=3))
    # The first that fits answers, and the words of the user stay the same behind a result.
    ruled.when_tool_result("call_b").reply("It is sunny at noon.")
    for words, reply in RULES.items():
        ruled.when(words).reply(reply)
    ruled.fallback("unheard of")
    await ruled.start()
    lines = {"LLMOCK_URL": faulty, "LLM_MOCK_API_URL": ruled.url}
    announce(env_file, lines)
    end_with(parent, env_file)
    await task


asyncio.run(main())
