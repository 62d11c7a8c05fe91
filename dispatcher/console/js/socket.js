/**
 * The stream of a conversation over its WebSocket. The cursor is the offset of the last committed
 * frame, so a reconnect goes on without gap or repeat; pieces of replies are lost with a connection
 * and told so as `lag`.
 */
import { address } from './api.js';
import { token } from './auth.js';

const PROTOCOL = 'stepfleet';
const PATIENCE_MS = 8000;

/** The token travels as a subprotocol: addresses end up in logs. */
function connect(id, after) {
  const path = address(`/conversations/${encodeURIComponent(id)}`, { after });
  return new WebSocket(`${location.origin.replace(/^http/, 'ws')}${path}`, [PROTOCOL, `bearer.${token.get()}`]);
}

/**
 * Follows a conversation until it ends or `stop()` is called.
 * @param {string} id
 * @param {number} after offset of the last record already known
 * @param {{onFrame: (frame: object) => void, onState: (state: 'connecting'|'live'|'lost'|'ended') => void}} handlers
 */
export function followConversation(id, after, { onFrame, onState }) {
  let cursor = after;
  let tries = 0;
  let stopped = false;
  let timer = 0;
  let socket = null;
  const open = () => {
    socket = connect(id, cursor);
    let ended = false;
    socket.onopen = () => { tries = 0; onState('live'); };
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.type === 'end') { ended = true; return; }
      if (frame.offset !== undefined && frame.offset !== null) {
        if (frame.offset <= cursor) return;
        cursor = frame.offset;
      }
      onFrame(frame);
    };
    socket.onclose = () => {
      if (stopped) return;
      onFrame({ type: 'lag' });
      if (ended) { onState('ended'); return; }
      onState('lost');
      tries += 1;
      timer = setTimeout(open, Math.min(300 * 2 ** tries, PATIENCE_MS));
    };
  };
  onState('connecting');
  open();
  return {
    stop: () => { stopped = true; clearTimeout(timer); socket?.close(); },
    cursor: () => cursor,
  };
}
