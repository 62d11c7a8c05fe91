/** The HTTP API: one function for every request, problems as errors, ids for safe repeats. */
import { logOut, token } from './auth.js';
import { createStore, local, remember, remembered } from './store.js';

/** Whether the server answered the last request. */
export const online = createStore(true);

/** Who acts, as `paused by …` shows it. */
export const actor = createStore(remembered(local, 'stepfleet.actor') ?? '');
actor.subscribe((name) => remember(local, 'stepfleet.actor', name || null));

/**
 * A problem document (RFC 9457), or what stands for one when there is no answer.
 * @typedef {{status: number, code: string, title: string, detail: string,
 *   errors?: {field: string, message: string}[], action_id?: string}} Problem
 */
export class ApiError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

const unreachable = {
  status: 0,
  code: 'unreachable',
  title: 'The server does not answer',
  detail: 'Check that stepfleet is running; the console goes on by itself when it answers again.',
};

/** @returns {Problem} */
function problemOf(status, text) {
  try {
    const body = JSON.parse(text);
    if (body && typeof body.code === 'string') return { status, ...body };
  } catch {
    // Not JSON: a proxy answered, say so below.
  }
  return { status, code: 'unexpected', title: `Status ${status}`, detail: text.slice(0, 300) || 'The answer was empty.' };
}

/** Turns a failed request into an error, and a refused token into the login form. */
export function failureOf(status, text) {
  const problem = problemOf(status, text);
  if (status === 401) logOut('The server does not know this token. It may have been revoked, or be from another data directory.');
  return new ApiError(problem);
}

/** Headers of every request. */
export const headers = (more = {}) => ({
  ...(token.get() ? { Authorization: `Bearer ${token.get()}` } : {}),
  ...more,
});

/** A path with its query; empty values are left out, lists are joined by commas. */
export function address(path, query = {}) {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    const text = Array.isArray(value) ? value.join(',') : value;
    if (text !== undefined && text !== null && text !== '') given.set(key, String(text));
  }
  const tail = given.toString();
  return tail ? `${path}?${tail}` : path;
}

/**
 * @param {string} path
 * @param {{method?: string, query?: object, body?: unknown, signal?: AbortSignal, text?: boolean, accept?: number[], idempotencyKey?: string}} options
 *   `accept`: statuses besides 2xx whose body is an answer, not a problem.
 */
export async function request(path, { method = 'GET', query, body, signal, text = false, accept = [], idempotencyKey } = {}) {
  let response;
  let answer;
  try {
    response = await fetch(address(path, query), {
      method,
      signal,
      cache: 'no-store',
      headers: headers({
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(idempotencyKey ? { 'Idempotency-Key': idempotencyKey } : {}),
      }),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    answer = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    online.set(false);
    throw new ApiError(unreachable);
  }
  online.set(true);
  if (!response.ok && !accept.includes(response.status)) throw failureOf(response.status, answer);
  if (text) return answer;
  return answer ? JSON.parse(answer) : null;
}

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** A fresh ULID. `crypto.randomUUID` would need a secure context. */
export function newId() {
  let time = Date.now();
  let head = '';
  for (let i = 0; i < 10; i += 1) {
    head = ALPHABET[time % 32] + head;
    time = Math.floor(time / 32);
  }
  const random = crypto.getRandomValues(new Uint8Array(16));
  return head + [...random].map((byte) => ALPHABET[byte % 32]).join('');
}

/** The body of an action, as the request sends it and as the curl command shows it. */
export const actionBody = (type, target, payload) => ({
  type,
  ...target,
  ...(payload && Object.keys(payload).length ? { payload } : {}),
  ...(actor.get() ? { actor: actor.get() } : {}),
});

/**
 * Sends an action. The id is chosen here, so one repeat after a lost answer cannot act twice.
 * @returns {Promise<{action_id: string, session_id: string, accepted: boolean}>}
 */
export async function act(body) {
  const send = () => request('/api/actions', { method: 'POST', body: { action_id: id, ...body } });
  const id = body.action_id ?? newId();
  try {
    return await send();
  } catch (error) {
    if (error.problem?.code !== 'unreachable') throw error;
    return send();
  }
}
