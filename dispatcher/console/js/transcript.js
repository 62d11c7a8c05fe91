/**
 * What a conversation is made of, as a page shows it: a pure function of the records of its log, of
 * its turns and of the pieces that are still being said.
 */

/** @typedef {import('./entries.js').Entry} Entry */

/** Events that the parts of their turn show already, or that say nothing to a reader. */
const SILENT = new Set(['tool.failed', 'turn.completed', 'turn.failed', 'conversation_turn']);

function addCalls(block, { move, messageId, hasText, calls, background, thoughts, at }, seen) {
  block.replies.push({ move, messageId, hasText });
  const made = calls.map((call, index) => ({
    kind: 'call', key: `c${move}.${index}`, move, call, at, operation: `${block.id}.${move}.${index}`,
    background: background.includes(call.id), result: null,
  }));
  const thought = thoughts || seen.get(messageId);
  if (thought) block.parts.push({ kind: 'thoughts', key: `t${move}`, move, text: thought });
  block.parts.push(...made);
}

/** The calls that a message came with. What was read does not name it: there it is the next one behind calls that came with a text. */
function claimReply(block, id) {
  const reply = block.replies.find(({ messageId }) => messageId === id) ?? block.replies.findLast(({ messageId, hasText }) => hasText && !messageId);
  if (reply) reply.messageId = id;
  return reply;
}

/** A text that came with calls is said before them. */
function addMessage(block, { message, at }) {
  const move = claimReply(block, message.message_id)?.move ?? 0;
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
 * @returns {object[]} items: `said` by people and by agents without turns, `turn` of an agent with its parts, `line` for what happened
 */
export function arrange(entries, turns, drafts, thoughts = new Map()) {
  const items = [];
  const blocks = new Map();
  const steered = new Map();
  const blockOf = (id, agent) => {
    let block = blocks.get(id);
    if (!block) {
      block = { kind: 'turn', key: id, id, agent: agent ?? turns.get(id)?.agent_id ?? null, parts: [], replies: [], ended: null };
      blocks.set(id, block);
      items.push(block);
    }
    block.agent ??= agent;
    return block;
  };
  for (const one of entries) {
    if (one.turn && one.kind === 'message' && one.message.role === 'user') {
      // What another agent asked opens the turn of the one that answers; it is not among its words.
      const place = blocks.has(one.turn) ? items.indexOf(blocks.get(one.turn)) : items.length;
      items.splice(place, 0, { kind: 'said', key: one.message.message_id, message: one.message, at: one.at });
    } else if (one.turn && one.kind !== 'summary') {
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
