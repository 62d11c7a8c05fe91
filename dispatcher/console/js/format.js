/** Times, numbers and ids as people read them. */

/** @param {number} ms */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  const m = s / 60;
  if (m < 60) return `${Math.round(m)} min`;
  const h = m / 60;
  if (h < 48) return `${Math.round(h)} h`;
  return `${Math.round(h / 24)} d`;
}

/** How long ago, in whole units; a second of clock difference reads as now. */
export function ago(rfc, now) {
  if (!rfc) return '–';
  const ms = now - Date.parse(rfc);
  if (Number.isNaN(ms)) return '–';
  if (ms < 1500) return 'now';
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : duration(ms);
}

/** How long until; null when it is over. */
export function until(rfc, now) {
  const ms = Date.parse(rfc) - now;
  return ms > 0 ? (ms < 60_000 ? `${Math.ceil(ms / 1000)} s` : duration(ms)) : null;
}

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

/** Time of day. */
export const clock = (rfc) => (rfc ? clockFormat.format(new Date(rfc)) : '–');

/** Times within a sentence of the server, as the reader's clock shows them. */
export const withClock = (text) => text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (rfc) => clock(rfc));

/** Date and time, for titles. */
export const full = (rfc) => (rfc ? fullFormat.format(new Date(rfc)) : '');

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
export const number = (n) => (n === null || n === undefined ? '–' : grouped.format(n));

/** A long id by its end: ULIDs of the same hour share their beginning. */
export const shortId = (id) => (id && id.length > 14 ? `…${id.slice(-8)}` : id ?? '–');

/** Whether a server made this id; people's own names are shown whole. */
export const isUlid = (id) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id);

/** Names of statuses in the order of a life, with the sessions that can be acted upon. */
export const STATUSES = ['starting', 'running', 'paused', 'stopping', 'stopped', 'completed', 'error'];
export const isFinal = (status) => status === 'stopped' || status === 'completed';

const REASONS = {
  done: 'finished',
  destroyed: 'destroyed',
  max_steps: 'reached its step limit',
  max_runtime: 'reached its time limit',
  failed: 'failed',
};

/** Why a session is not stepping right now, in a few words. */
export function causeText(session, now) {
  const { cause, status } = session;
  const left = session.wake_at && until(session.wake_at, now);
  switch (cause.kind) {
    case 'runnable': return status === 'starting' ? 'about to start' : status === 'stopping' ? 'ends now' : 'runs';
    case 'timer': return left ? `next step in ${left}` : 'runs';
    case 'input': return 'waits for input';
    case 'operation': return left ? `waits for an operation, at most ${left}` : 'waits for an operation';
    case 'paused': return `paused by ${cause.by}${cause.reason ? `: ${cause.reason}` : ''}`;
    case 'ended':
      if (status === 'error') return session.last_error ?? 'failed';
      return REASONS[session.stop_reason] ?? 'ended';
    default: return cause.kind;
  }
}

/** A value on one line, cut to a length. */
export function brief(value, max = 40) {
  const text = typeof value === 'string' ? value : JSON.stringify(value) ?? 'undefined';
  const line = text.replace(/\s+/g, ' ');
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** Costs are estimates of small sums: as many digits as say something. Without a currency: prices have none. */
export function cost(sum) {
  if (!sum) return '0';
  return sum >= 1 ? sum.toFixed(2) : String(Number(sum.toPrecision(2)));
}

/** Tokens in few characters. */
export function tokens(n) {
  if (n === null || n === undefined) return '–';
  if (n < 1000) return String(n);
  return n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}
