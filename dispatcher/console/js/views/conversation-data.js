/** One conversation as its page keeps it: the newest records, older ones on demand, and the live stream. */
import { useCallback, useEffect, useRef, useState } from '../lib.js';
import { newId, request } from '../api.js';
import { tell } from '../drafts.js';
import { entryOfFrame, entryOfView, merge } from '../entries.js';
import { followConversation } from '../socket.js';
import { arrange } from '../transcript.js';

/** Records read at first and for each page upwards. */
const WINDOW = 100;
const TURNS_PAGE = 200;
/** Turns whose use is added up; a conversation with more says so. */
const TURNS_MOST = 2000;
/** Pieces are shown in batches: a fast model costs a few renders a second. */
const FLUSH_MS = 50;
/** A hidden page gives its connection back. */
const HIDDEN_MS = 60_000;
/** Operations are read again while a turn waits: an approval may be answered elsewhere. */
const OPERATIONS_MS = 4000;

export const pathOf = (id) => `/api/conversations/${encodeURIComponent(id)}`;

async function readTurns(id) {
  const turns = [];
  let cursor;
  do {
    const page = await request(`${pathOf(id)}/turns`, { query: { order: 'desc', limit: TURNS_PAGE, cursor } });
    turns.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && turns.length < TURNS_MOST);
  return { turns, more: Boolean(cursor) };
}

const fresh = () => ({ entries: [], turns: new Map(), drafts: new Map(), thoughts: new Map(), sending: [], asks: [], timer: 0, stream: null, before: null, moreTurns: false });

/** @param {string} id */
export function useConversation(id) {
  const store = useRef(null);
  store.current ??= fresh();
  const [view, setView] = useState({ loaded: false, error: null, link: 'connecting', status: null, detail: null, items: [], turns: new Map(), asks: [], older: false, moreTurns: false });
  const stopped = useRef(false);

  const show = useCallback((more = {}) => {
    const s = store.current;
    clearTimeout(s.timer);
    s.timer = 0;
    const items = arrange(s.entries, s.turns, s.drafts, s.thoughts);
    for (const post of s.sending) items.push({ kind: 'said', key: post.message.message_id, ...post });
    if (!stopped.current) setView((old) => ({ ...old, items, turns: new Map(s.turns), asks: s.asks, older: s.before !== null, moreTurns: s.moreTurns, ...more }));
  }, []);
  const showSoon = useCallback(() => { store.current.timer ||= setTimeout(show, FLUSH_MS); }, []);

  const readDetail = useCallback(async () => {
    try {
      const detail = await request(pathOf(id));
      if (!stopped.current) setView((old) => ({ ...old, detail, status: detail.conversation.status }));
    } catch (error) {
      if (!stopped.current) setView((old) => ({ ...old, error: old.detail ? old.error : error }));
    }
  }, [id]);

  const readAsks = useCallback(async () => {
    try {
      const page = await request('/api/operations', { query: { conversation_id: id, kind: 'approval', state: 'pending', limit: 100 } });
      store.current.asks = page.items;
      showSoon();
    } catch {
      // The next time tells.
    }
  }, [id]);

  const take = useCallback((frame) => {
    const s = store.current;
    tell(s.drafts, frame, (message, text) => s.thoughts.set(message, text));
    if (frame.type === 'turn') s.turns.set(frame.turn.turn_id, frame.turn);
    if (frame.type === 'turn' && (frame.turn.phase === 'waiting_approval' || s.asks.length > 0)) readAsks();
    if (frame.type === 'status') setView((old) => ({ ...old, status: frame.status }));
    const entry = frame.offset === undefined || frame.offset === null ? null : entryOfFrame(frame);
    if (entry) {
      s.entries = merge(s.entries, [entry]);
      if (entry.kind === 'message') s.sending = s.sending.filter(({ message }) => message.message_id !== entry.message.message_id);
      if (entry.kind === 'event' && !entry.turn) readDetail();
    }
    showSoon();
  }, [id]);

  const connect = useCallback((after) => {
    store.current.stream?.stop();
    store.current.stream = followConversation(id, after, { onFrame: take, onState: (link) => setView((old) => ({ ...old, link })) });
  }, [id]);

  /** Starts with the newest; the stream goes on from there. */
  const begin = useCallback(async () => {
    const s = store.current;
    try {
      const [detail, page, { turns, more }] = await Promise.all([
        request(pathOf(id)),
        request(`${pathOf(id)}/messages`, { query: { include: 'all', order: 'desc', limit: WINDOW } }),
        readTurns(id),
      ]);
      if (stopped.current) return;
      s.entries = merge([], page.items.map(entryOfView));
      s.before = page.next_cursor ?? null;
      s.moreTurns = more;
      for (const turn of turns.reverse()) s.turns.set(turn.turn_id, turn);
      show({ loaded: true, detail, status: detail.conversation.status });
      readAsks();
      connect(page.items[0]?.offset ?? 0);
    } catch (error) {
      if (!stopped.current) setView((old) => ({ ...old, error, loaded: true }));
    }
  }, [id]);

  useEffect(() => {
    stopped.current = false;
    let hidden = 0;
    let parked = false;
    begin();
    const change = () => {
      const s = store.current;
      clearTimeout(hidden);
      if (document.hidden) hidden = setTimeout(() => { parked = true; s.stream?.stop(); }, HIDDEN_MS);
      else if (parked && s.stream) { parked = false; connect(s.stream.cursor()); readDetail(); }
    };
    document.addEventListener('visibilitychange', change);
    const poll = setInterval(() => { if (!document.hidden && store.current.asks.length) readAsks(); }, OPERATIONS_MS);
    return () => {
      stopped.current = true;
      document.removeEventListener('visibilitychange', change);
      clearTimeout(hidden);
      clearInterval(poll);
      clearTimeout(store.current.timer);
      store.current.stream?.stop();
    };
  }, [id]);

  const older = useCallback(async () => {
    const s = store.current;
    if (s.before === null) return;
    const page = await request(`${pathOf(id)}/messages`, { query: { include: 'all', order: 'desc', limit: WINDOW, before: s.before } });
    s.before = page.next_cursor ?? null;
    s.entries = merge(page.items.map(entryOfView), s.entries);
    show();
  }, [id]);

  /** Says something. The id is chosen here: a repeat after a lost answer says it once. */
  const say = useCallback(async (body) => {
    const s = store.current;
    const message = { message_id: newId(), ...body };
    const post = { message: { ...message, user_id: null }, at: new Date().toISOString(), sending: true };
    s.sending = [...s.sending, post];
    show();
    const send = () => request(`${pathOf(id)}/messages`, { method: 'POST', body: message });
    try {
      return await send().catch((error) => { if (error.problem?.code !== 'unreachable') throw error; return send(); });
    } catch (error) {
      s.sending = s.sending.filter((one) => one !== post);
      show();
      throw error;
    }
  }, [id]);

  return { ...view, older, olderLeft: view.older, say, readAsks, readDetail };
}
