/* What a program sees as `tools`. A call is a line of the output that begins with `mark`, which nobody else
   can know; its answer is a line of the input. The input is read only while a call is open: a program
   that waits for input does not end. It is put before the first line of the program, as one line. */
{
  const { stdin, stdout } = Deno, mark = "stepfleet-tools " + crypto.randomUUID(), open = new Map();
  const encoder = new TextEncoder(), decoder = new TextDecoder(), buffer = new Uint8Array(65536);
  let last = 0, rest = "", reading = false;
  class ToolError extends Error {}
  ToolError.prototype.name = "ToolError";
  const say = (text) => {
    for (let bytes = encoder.encode(text); bytes.length > 0;) bytes = bytes.subarray(stdout.writeSync(bytes));
  };
  const take = (line) => {
    const { id, result, error } = JSON.parse(line);
    const { resolve, reject } = open.get(id);
    open.delete(id);
    if (error) reject(Object.assign(new ToolError(error.message), error));
    else resolve(result);
  };
  const listen = async () => {
    if (reading) return;
    reading = true;
    while (open.size > 0) {
      const count = await stdin.read(buffer);
      if (count === null) throw new ToolError("nobody answers any more");
      const lines = (rest + decoder.decode(buffer.subarray(0, count), { stream: true })).split("\n");
      rest = lines.pop();
      lines.forEach(take);
    }
    reading = false;
  };
  const call = (tool, input = {}) => new Promise((resolve, reject) => {
    const line = JSON.stringify({ id: ++last, tool: String(tool), input });
    open.set(last, { resolve, reject });
    say(mark + line + "\n");
    listen();
  });
  say(mark + "\n");
  globalThis.tools = new Proxy({ call, then: undefined, toJSON: undefined }, {
    get: (own, name) => name in own || typeof name === "symbol" ? own[name] : (input) => call(name, input),
  });
}
