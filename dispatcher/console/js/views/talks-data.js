/** The list of conversations: rows of the API, and for each who takes part and what is under way. */
import { useEffect, useRef, useState } from '../lib.js';
import { request } from '../api.js';
import { usePoll } from '../poll.js';
import { createStore, useStore } from '../store.js';
import { phaseWords } from '../transcript.js';
import { nameOf } from '../names.js';

const POLL_MS = 4000;
/** Details that are read at once. */
const LANES = 4;

/** Details by conversation, shared by the list and the rail: `{at, detail}`, good until it was written to. */
const details = createStore(new Map());

/** A detail is read again when the log grew, and each time while something is under way. */
function useDetails(rows) {
  const known = useStore(details);
  const running = useRef(false);
  useEffect(() => {
    if (!rows || running.current) return;
    const stale = rows.filter((row) => {
      const have = details.get().get(row.conversation_id);
      return !have || have.at !== row.last_offset || have.detail.active_turns.length > 0;
    });
    if (!stale.length) return;
    running.current = true;
    const lane = async () => {
      for (let row = stale.shift(); row; row = stale.shift()) {
        const { conversation_id: id, last_offset: at } = row;
        try {
          const detail = await request(`/api/conversations/${encodeURIComponent(id)}`);
          details.set(new Map(details.get()).set(id, { at, detail }));
        } catch {
          // The row is shown without; the next poll tries again.
        }
      }
    };
    Promise.all(Array.from({ length: LANES }, lane)).then(() => { running.current = false; });
  }, [rows]);
  return known;
}

/** One conversation, read if no list has read it yet. */
export function useDetail(id) {
  const known = useStore(details).get(id)?.detail;
  useEffect(() => {
    if (details.get().has(id)) return;
    request(`/api/conversations/${encodeURIComponent(id)}`)
      .then((detail) => details.set(new Map(details.get()).set(id, { at: detail.conversation.last_offset, detail })), () => {});
  }, [id]);
  return known;
}

/** @param {object} query of `GET /api/conversations` @param {number} limit */
export function useTalks(query, limit) {
  const poll = usePoll((signal) => request('/api/conversations', { signal, query: { ...query, limit } }), POLL_MS, [JSON.stringify(query), limit]);
  const known = useDetails(poll.data?.items ?? null);
  const [rows, setRows] = useState(null);
  useEffect(() => {
    setRows(poll.data?.items.map((row) => ({ row, detail: known.get(row.conversation_id)?.detail ?? null })) ?? null);
  }, [poll.data, known]);
  return { ...poll, rows };
}

/** Who takes part, people last and only if no agent does. */
export const withWhom = (detail, agents) => {
  if (!detail) return '';
  const here = detail.participants.filter(({ left_at: left }) => !left);
  const names = here.filter(({ type }) => type === 'agent').map(({ agent_id: id }) => nameOf(agents, id));
  return (names.length ? names : here.map(({ user_id: id }) => id)).join(', ');
};

/** What is under way in it, in words; empty if nothing. */
export function doing(detail, agents) {
  const active = detail?.active_turns ?? [];
  const asks = active.find(({ phase }) => phase === 'waiting_approval');
  if (asks) return `${nameOf(agents, asks.agent_id)} waits for your answer`;
  if (!active.length) return '';
  const [first] = active;
  return `${nameOf(agents, first.agent_id)} ${phaseWords(first)}${active.length > 1 ? `, and ${active.length - 1} more` : ''}`;
}

/** The status with what only the detail knows. */
export const statusOf = ({ row, detail }) => (row.status === 'active' && detail?.conversation.status === 'waiting' ? 'waiting' : row.status);
