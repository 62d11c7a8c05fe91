/** What waits for a person's answer, in all conversations: one poll for the badge in the bar and the inbox. */
import { useEffect } from './lib.js';
import { request } from './api.js';
import { usePoll } from './poll.js';
import { createStore, useStore } from './store.js';

const POLL_MS = 4000;
const MOST = 100;

/** How many wait. */
export const waiting = createStore(0);
const asked = createStore(0);

/** Reads again at once: something was answered. */
export const readWaiting = () => asked.set(asked.get() + 1);

/** For the frame of the page, which is shown once. */
export function useWaiting() {
  const poll = usePoll((signal) => request('/api/operations', { signal, query: { kind: 'approval', state: 'pending', limit: MOST } }), POLL_MS, [useStore(asked)]);
  useEffect(() => { if (poll.data) waiting.set(poll.data.items.length); }, [poll.data]);
  return poll;
}
