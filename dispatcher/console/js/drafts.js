/** What models are saying right now: pieces by message, dropped when the whole is committed. */

/** `again`: what an attempt before it said was taken back.
 * @typedef {{id: string, turn: string, attempt: number, again: boolean, late: boolean, next: number, parts: {kind: string, text: string, name?: string}[]}} Draft */

/** Takes in one frame. Returns whether the drafts changed. @param {Map<string, Draft>} drafts */
export function tell(drafts, frame, onThoughts = () => {}) {
  switch (frame.type) {
    case 'token': return addToken(drafts, frame);
    case 'retract': {
      const draft = drafts.get(frame.message_id);
      if (!draft || draft.attempt > frame.attempt) return false;
      // It stays as an empty one: another attempt follows, and says so.
      drafts.set(draft.id, { ...draft, attempt: frame.attempt + 1, again: true, late: false, next: 0, parts: [] });
      return true;
    }
    case 'message': return settle(drafts, frame.message.message_id, onThoughts);
    // The calls are in this frame; a text that came with them follows as a message.
    case 'tool_call': return settle(drafts, frame.message_id, onThoughts);
    case 'turn': return frame.turn.status !== 'active' && drop(drafts, ({ turn }) => turn === frame.turn.turn_id);
    case 'lag': return drop(drafts, () => true);
    default: return false;
  }
}

/** A reply is there as a whole: its pieces go, and with them those of the replies of its turn before it, which came to nothing. */
function settle(drafts, id, onThoughts) {
  const whole = drafts.get(id);
  if (!whole) return false;
  for (const draft of [...drafts.values()].filter(({ turn }) => turn === whole.turn)) {
    keepThoughts(draft, onThoughts);
    drafts.delete(draft.id);
    if (draft === whole) break;
  }
  return true;
}

function drop(drafts, is) {
  const before = drafts.size;
  for (const draft of [...drafts.values()]) if (is(draft)) drafts.delete(draft.id);
  return drafts.size !== before;
}

/** Thoughts are in no message; who saw them may keep them. */
function keepThoughts(draft, onThoughts) {
  const text = draft.parts.filter(({ kind }) => kind === 'reasoning').map((part) => part.text).join('');
  if (text && !draft.late) onThoughts(draft.id, text);
}

function addToken(drafts, { message_id: id, turn_id: turn, attempt, index, kind, part, text, name }) {
  let draft = drafts.get(id);
  if (draft && attempt < draft.attempt) return false;
  if (!draft || attempt > draft.attempt) draft = { id, turn, attempt, again: Boolean(draft), late: index > 0, next: 0, parts: [] };
  if (index < draft.next) return false;
  const parts = [...draft.parts];
  const known = parts[part];
  parts[part] = known ? { ...known, text: known.text + text } : { kind, text, name };
  drafts.set(id, { ...draft, next: index + 1, parts });
  return true;
}
