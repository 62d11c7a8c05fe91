/**
 * Server-sent events over fetch: unlike EventSource this can send the Authorization header.
 * The cursor is the offset of the last event, so a reconnect goes on without gap or repeat.
 */
import { address, failureOf, headers } from './api.js';

/** Splits a byte stream into frames. @param {(frame: {event: string, id: string, data: string}) => void} onFrame */
export function frameParser(onFrame) {
  let rest = '';
  let frame = { event: 'message', id: '', data: [] };
  const line = (text) => {
    if (text === '') {
      if (frame.data.length) onFrame({ ...frame, data: frame.data.join('\n') });
      frame = { event: 'message', id: '', data: [] };
      return;
    }
    const colon = text.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') frame.data.push(value);
    else if (name === 'event' || name === 'id') frame[name] = value;
  };
  return (chunk) => {
    rest += chunk;
    // A CR at the very end may be half of a CRLF: it waits for the next chunk.
    const held = rest.endsWith('\r') ? '\r' : '';
    const lines = rest.slice(0, rest.length - held.length).split(/\r\n|\n|\r/);
    rest = lines.pop() + held;
    lines.forEach(line);
  };
}

/** Reads one connection until it closes. Resolves true if the session has ended. */
async function readOnce(sessionId, after, signal, onEvent, onOpen) {
  const path = address(`/api/sessions/${encodeURIComponent(sessionId)}/events`, { after });
  const response = await fetch(path, { signal, cache: 'no-store', headers: headers({ Accept: 'text/event-stream' }) });
  if (!response.ok) throw failureOf(response.status, await response.text());
  onOpen();
  let ended = false;
  const push = frameParser((frame) => {
    const event = JSON.parse(frame.data);
    if (event.type === 'end') ended = true;
    onEvent(event);
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return ended;
    push(value);
  }
}

const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
});

/**
 * Follows a session for good: reconnects from the cursor until it ends or `stop()` is called.
 * @param {string} sessionId
 * @param {number} after offset of the last event already known
 * @param {{onEvent: (event: object) => void, onState: (state: 'connecting'|'live'|'lost'|'ended') => void,
 *   onRefused: (error: Error) => void}} handlers
 */
export function follow(sessionId, after, { onEvent, onState, onRefused }) {
  const controller = new AbortController();
  const { signal } = controller;
  let cursor = after;
  (async () => {
    let tries = 0;
    onState('connecting');
    while (!signal.aborted) {
      try {
        const ended = await readOnce(sessionId, cursor, signal, (event) => {
          if (event.type === 'end') return;
          if (event.offset <= cursor) return;
          cursor = event.offset;
          onEvent(event);
        }, () => { tries = 0; onState('live'); });
        if (ended) { onState('ended'); return; }
      } catch (error) {
        if (signal.aborted) return;
        const status = error.problem?.status ?? 0;
        if (status >= 400 && status < 500 && status !== 429) { onRefused(error); return; }
      }
      if (signal.aborted) return;
      onState('lost');
      tries += 1;
      await pause(Math.min(300 * 2 ** tries, 8000), signal);
    }
  })();
  return { stop: () => controller.abort(), cursor: () => cursor };
}

/** Reads the events `after < offset < before`, which are all committed already. */
export async function readRange(sessionId, after, before) {
  const controller = new AbortController();
  const events = [];
  try {
    await readOnce(sessionId, after, controller.signal, (event) => {
      if (event.type !== 'end' && event.offset < before) events.push(event);
      if (event.type === 'end' || event.offset >= before - 1) controller.abort();
    }, () => {});
  } catch (error) {
    if (!controller.signal.aborted) throw error;
  }
  return events;
}
