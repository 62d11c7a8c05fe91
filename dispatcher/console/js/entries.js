/** Records of a conversation's log: pages of the API and frames of the stream become the same entries. */

/**
 * @typedef {{offset: number, at: string, turn: string|null, agent: string|null,
 *   kind: 'message'|'calls'|'result'|'note'|'summary'|'event',
 *   messageId?: string|null, hasText?: boolean, [more: string]: any}} Entry
 */

const entry = (offset, at, kind, turn, agent, more) => ({ offset, at, kind, turn: turn ?? null, agent: agent ?? null, ...more });

/** @param {object} view a message of `GET …/messages?include=all` @returns {Entry} */
export function entryOfView(view) {
  const { offset, created_at: at, turn_id: turn, agent_id: agent, data, event_type: type } = view;
  const make = (kind, more) => entry(offset, at, kind, turn, agent, more);
  if (type === 'utterance') return make('message', { message: view });
  if (type === 'tool_call') {
    return make('calls', { move: data.move, messageId: null, hasText: Boolean(data.reasoning), calls: data.tool_calls, background: (data.in_background ?? []).map(([id]) => id), thoughts: thoughtsOf(data.parts) });
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
    case 'tool_call': return make('calls', { move: frame.move, messageId: frame.message_id ?? null, hasText: false, calls: frame.calls, background: [], thoughts: '' });
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
