/**
 * What a conversation is made of, as a page shows it: a pure function of the records of its log, of
 * its turns and of the pieces that are still being said. Pages of the API and frames of the stream
 * become the same entries, so it does not matter which of them told.
 */

/**
 * @typedef {{offset: number, at: string, turn: string|null, agent: string|null,
 *   kind: 'message'|'calls'|'result'|'note'|'summary'|'event', [more: string]: any}} Entry
 */

const entry = (offset, at, kind, turn, agent, more) => ({ offset, at, kind, turn: turn ?? null, agent: agent ?? null, ...more });

/** @param {object} view a message of `GET …/messages?include=all` @returns {Entry} */
export function entryOfView(view) {
  const { offset, created_at: at, turn_id: turn, agent_id: agent, data, event_type: type } = view;
  const make = (kind, more) => entry(offset, at, kind, turn, agent, more);
  if (type === 'utterance') return make('message', { message: view });
  if (type === 'tool_call') {
    return make('calls', { move: data.move, calls: data.tool_calls, background: (data.in_background ?? []).map(([id]) => id), thoughts: thoughtsOf(data.parts) });
  }
  if (type === 'tool_result') return make('result', { result: data, isAsync: Boolean(data.operation_id) });
  if (type === 'summary') return make('summary', { summary: data });
  if (view.role === 'system') return make('note', { note: data });
  return make('event', { name: view.text, data });
}

const thoughtsOf = (parts) => (parts ?? []).filter(({ type }) => type === 'reasoning').map(({ text }) => text ?? '').join('');

/** @param {object} frame a committed frame of the stream @returns {Entry|null} null: nothing to show */
export function entryOfFrame(frame) {
  const { offset, at, turn_id: turn, agent_id: agent } = frame;
  const make = (kind, more) => entry(offset, at, kind, turn, agent, more);
  switch (frame.type) {
    case 'message': return entry(offset, at, 'message', frame.message.turn_id, frame.message.agent_id, { message: frame.message });
    case 'tool_call': return make('calls', { move: frame.move, calls: frame.calls, background: [], thoughts: '' });
    case 'tool_result': return make('result', { result: frame.result, isAsync: frame.is_async });
    case 'note': return make('note', { note: frame.note });
    case 'summary': return make('summary', { summary: frame.summary });
    case 'event': return make('event', { name: frame.name, data: frame.data });
    default: return null;
  }
}

/** Two sorted lists as one, each offset once; the newer telling of one wins nothing: they are the same. */
export function merge(known, more) {
  const all = new Map(known.map((one) => [one.offset, one]));
  for (const one of more) if (!all.has(one.offset)) all.set(one.offset, one);
  return [...all.values()].sort((a, b) => a.offset - b.offset);
}

/** Which reply of its turn a message is, as its id ends. */
export const moveOf = (id) => Number(/\.m(\d+)$/.exec(id)?.[1] ?? 0);

/** Events that the parts of their turn show already, or that say nothing to a reader. */
const SILENT = new Set(['tool.failed', 'turn.completed', 'turn.failed', 'conversation_turn']);

function addCalls(block, { move, calls, background, thoughts, at }, seen) {
  const made = calls.map((call, index) => ({
    kind: 'call', key: `c${move}.${index}`, move, call, at, operation: `${block.id}.${move}.${index}`,
    background: background.includes(call.id), result: null,
  }));
  const thought = thoughts || seen.get(`${block.id}.m${move}`);
  if (thought) block.parts.push({ kind: 'thoughts', key: `t${move}`, move, text: thought });
  block.parts.push(...made);
}

/** A text that came with calls is said before them. */
function addMessage(block, { message, at }) {
  const move = moveOf(message.message_id);
  const part = { kind: 'message', key: message.message_id, move, message, at };
  const first = move ? block.parts.findIndex((other) => other.kind === 'call' && other.move === move) : -1;
  if (first < 0) block.parts.push(part);
  else block.parts.splice(first, 0, part);
}

function addResult(block, { result, isAsync, at }) {
  const calls = block.parts.filter(({ kind }) => kind === 'call');
  const call = isAsync
    ? calls.find(({ operation }) => operation === result.operation_id)
    : calls.findLast(({ move, call: { id } }) => id === result.tool_call_id && (result.move === undefined || result.move === move));
  if (!call) return;
  call.result = result;
  call.endedAt = at;
  call.background ||= isAsync;
}

function addToTurn(block, one, seen) {
  if (one.kind === 'calls') addCalls(block, one, seen);
  else if (one.kind === 'message') addMessage(block, one);
  else if (one.kind === 'result') addResult(block, one);
  else if (one.kind === 'note') block.parts.push({ kind: 'note', key: `n${one.offset}`, note: one.note, at: one.at });
  else if (one.name === 'conversation_turn') Object.assign(block, { startedAt: one.at, input: one.data?.input_message_id ?? null, caller: one.data?.caller ?? null });
  else if (one.name === 'turn.completed' || one.name === 'turn.failed') {
    Object.assign(block, { endedAt: one.at, ended: one.name === 'turn.failed' ? 'failed' : 'completed', error: one.data?.error ?? null, cancelled: one.data?.cancelled === true });
  } else if (!SILENT.has(one.name)) block.parts.push({ kind: 'event', key: `e${one.offset}`, name: one.name, data: one.data, at: one.at });
}

/** A call without a result while its turn said more: it goes on in the background. */
function markBackground(block) {
  const last = block.parts.findLastIndex(({ kind }) => kind === 'message' || kind === 'draft');
  block.parts.forEach((part, index) => { if (part.kind === 'call' && !part.result && index < last && part.move < (block.parts[last].move || Infinity)) part.background = true; });
}

/**
 * @param {Entry[]} entries in their order
 * @param {Map<string, object>} turns as the API tells of them
 * @param {Map<string, object>} drafts what is being said, by message id
 * @param {Map<string, string>} thoughts of messages that were seen being thought
 * @returns {object[]} items: `said` by people, `turn` of an agent with its parts, `line` for what happened
 */
export function arrange(entries, turns, drafts, thoughts = new Map()) {
  const items = [];
  const blocks = new Map();
  const steered = new Map();
  const blockOf = (id, agent) => {
    let block = blocks.get(id);
    if (!block) {
      block = { kind: 'turn', key: id, id, agent: agent ?? turns.get(id)?.agent_id ?? null, parts: [], ended: null };
      blocks.set(id, block);
      items.push(block);
    }
    block.agent ??= agent;
    return block;
  };
  for (const one of entries) {
    if (one.turn && one.kind !== 'summary') {
      addToTurn(blockOf(one.turn, one.agent), one, thoughts);
      if (one.kind === 'note' && one.note.message_id) steered.set(one.note.message_id, one.turn);
    } else if (one.kind === 'message') {
      items.push({ kind: 'said', key: one.message.message_id, message: one.message, at: one.at });
    } else if (one.kind === 'summary') {
      items.push({ kind: 'summary', key: `s${one.offset}`, summary: one.summary, at: one.at });
    } else if (one.kind === 'event') {
      items.push({ kind: 'line', key: `e${one.offset}`, name: one.name, data: one.data, at: one.at });
    }
  }
  for (const turn of turns.values()) if (turn.status === 'active') blockOf(turn.turn_id, turn.agent_id);
  for (const draft of drafts.values()) blockOf(draft.turn).parts.push({ kind: 'draft', key: draft.id, draft });
  for (const block of blocks.values()) {
    block.turn = turns.get(block.id) ?? null;
    for (const part of block.parts) if (part.kind === 'message' && !block.parts.some((other) => other.kind === 'thoughts' && other.move === part.move)) part.thoughts = thoughts.get(part.key) ?? '';
    markBackground(block);
  }
  for (const item of items) if (item.kind === 'said') item.steered = steered.get(item.message.message_id) ?? null;
  return items;
}

/** How a turn stands: what was committed counts before what was told of it. */
export function stateOf(block) {
  const { turn, ended, cancelled } = block;
  if (ended === 'failed' || turn?.status === 'failed') return cancelled || turn?.cancelled ? 'cancelled' : 'failed';
  if (ended || turn?.status === 'completed') return 'completed';
  return 'active';
}

const PHASES = {
  queued: 'queued', assembling: 'reads up', thinking: 'thinks', waiting_tool: 'waits for a tool',
  waiting_agent: 'waits for another agent', waiting_async: 'waits for work in the background',
  waiting_approval: 'waits for your answer', responding: 'answers',
};

/** What an active turn does, in words. */
export const phaseWords = (turn) => PHASES[turn?.phase] ?? turn?.phase?.replaceAll('_', ' ') ?? 'begins';

/** How a call stands. @param {object} part @param {object|undefined} ask its open approval @param {boolean} active */
export function callState(part, ask, active) {
  if (part.result) return part.result.success === false ? (part.result.error?.code === 'PERMISSION_DENIED' ? 'refused' : 'failed') : 'done';
  if (ask) return 'asks';
  if (!active) return 'left';
  return part.background ? 'background' : 'running';
}
