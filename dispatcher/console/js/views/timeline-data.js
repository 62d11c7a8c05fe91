/** The events of one session as the timeline keeps them: live, held while reading, older on demand. */
import { useCallback, useEffect, useRef, useState } from '../lib.js';
import { request } from '../api.js';
import { follow, readRange } from '../sse.js';

/** Events read at first and for each "older". */
const WINDOW = 100;
/** Most events kept on the page while following; older ones are read again when asked for. */
const KEEP = 300;
/** Most events held back while reading; above that the list starts anew at the end. */
const HELD_MAX = 2000;
/** Live events are shown in batches, so that a fast session costs a few renders a second. */
const FLUSH_MS = 120;
/** A batch of more events than this is a rush: fewer are shown, less often. */
const RUSH = 150;
const RUSH_MS = 500;
/** A hidden page gives its connection back: a browser has six per server. */
const HIDDEN_MS = 20_000;

/**
 * @param {string} id
 * @param {boolean} following false: new events are counted and held back
 * @param {(event: object) => void} onEvent told of each live event that is no step
 */
export function useTimeline(id, following, onEvent) {
  const [view, setView] = useState({ events: [], held: 0, gap: false, loaded: false, link: 'connecting', error: null });
  const store = useRef({ events: [], held: [], gap: false, batch: [], timer: 0, rush: false, stream: null, parked: false });
  const follows = useRef(following);
  /** The page was left: what is still asked for opens no stream any more. */
  const left = useRef(false);
  const told = useRef(onEvent);
  told.current = onEvent;

  const show = useCallback((more = {}) => {
    const { events, held, gap } = store.current;
    setView((old) => ({ ...old, events, held: held.length, gap, ...more }));
  }, []);

  const release = useCallback(() => {
    const s = store.current;
    s.events = (s.gap ? s.held : [...s.events, ...s.held]).slice(-KEEP);
    s.held = [];
    s.gap = false;
    show();
  }, []);

  const flush = useCallback(() => {
    const s = store.current;
    s.timer = 0;
    const fresh = s.batch;
    s.batch = [];
    s.rush = fresh.length > RUSH;
    if (follows.current) {
      const all = [...s.events, ...fresh];
      const keep = s.rush ? WINDOW : KEEP;
      s.events = all.length > keep + WINDOW || s.rush ? all.slice(-keep) : all;
    } else {
      s.held.push(...fresh);
      if (s.held.length > HELD_MAX) { s.held = s.held.slice(-KEEP); s.gap = true; }
    }
    show({ loaded: true });
    fresh.forEach((event) => { if (event.type !== 'step') told.current(event); });
  }, []);

  const connect = useCallback((after) => {
    const s = store.current;
    s.stream?.stop();
    s.stream = follow(id, after, {
      onEvent: (event) => {
        s.batch.push(event);
        if (!s.timer) s.timer = setTimeout(flush, s.rush ? RUSH_MS : FLUSH_MS);
      },
      onState: (link) => setView((old) => ({ ...old, link, loaded: old.loaded || link === 'ended' })),
      onRefused: (error) => setView((old) => ({ ...old, error, link: 'lost' })),
    });
  }, [id]);

  /** Starts at the newest events; what came before is read on demand. */
  const begin = useCallback(async () => {
    try {
      const { session } = await request(`/api/sessions/${encodeURIComponent(id)}`);
      if (left.current) return;
      connect(Math.max(0, session.last_offset - WINDOW));
      if (session.last_offset === 0) setView((old) => ({ ...old, loaded: true }));
    } catch (error) {
      setView((old) => ({ ...old, error, loaded: true }));
    }
  }, [id]);

  useEffect(() => {
    left.current = false;
    let hidden = 0;
    begin();
    const change = async () => {
      const s = store.current;
      clearTimeout(hidden);
      if (document.hidden) { hidden = setTimeout(() => { s.parked = true; s.stream?.stop(); }, HIDDEN_MS); return; }
      if (!s.stream || !s.parked) return;
      s.parked = false;
      const cursor = s.stream.cursor();
      const { session } = await request(`/api/sessions/${encodeURIComponent(id)}`).catch(() => ({}));
      if (left.current) return;
      if (session && session.last_offset - cursor > HELD_MAX) {
        Object.assign(s, { events: [], held: [], batch: [], gap: false });
        connect(session.last_offset - WINDOW);
      } else {
        connect(cursor);
      }
    };
    document.addEventListener('visibilitychange', change);
    return () => {
      left.current = true;
      document.removeEventListener('visibilitychange', change);
      clearTimeout(hidden);
      clearTimeout(store.current.timer);
      store.current.stream?.stop();
    };
  }, [id]);

  useEffect(() => {
    follows.current = following;
    if (following) release();
  }, [following]);

  const older = useCallback(async () => {
    const first = store.current.events[0]?.offset ?? 1;
    const events = await readRange(id, Math.max(0, first - 1 - WINDOW), first);
    store.current.events = [...events, ...store.current.events];
    show();
  }, [id]);

  return { ...view, older, release };
}
