/** What changed between two JSON values, as a flat list of paths. */

const MOST = 300;

const isObject = (value) => value !== null && typeof value === 'object';

/** Whether two JSON values are equal. */
export function same(a, b) {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

const join = (path, key) => (typeof key === 'number' ? `${path}[${key}]` : path ? `${path}.${key}` : key);

/**
 * Lists are compared after what they share at both ends, so that one element more at the front
 * is one addition and not a change of everything.
 */
function lists(before, after, path, out) {
  let head = 0;
  const least = Math.min(before.length, after.length);
  while (head < least && same(before[head], after[head])) head += 1;
  let tail = 0;
  while (tail < least - head && same(before[before.length - 1 - tail], after[after.length - 1 - tail])) tail += 1;
  const was = before.slice(head, before.length - tail);
  const is = after.slice(head, after.length - tail);
  const both = Math.min(was.length, is.length);
  for (let i = 0; i < both; i += 1) walk(was[i], is[i], join(path, head + i), out);
  was.slice(both).forEach((value, i) => out.push({ kind: 'removed', path: join(path, head + both + i), from: value }));
  is.slice(both).forEach((value, i) => out.push({ kind: 'added', path: join(path, head + both + i), to: value }));
}

function walk(before, after, path, out) {
  if (out.length >= MOST || Object.is(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) { lists(before, after, path, out); return; }
  if (isObject(before) && isObject(after) && !Array.isArray(before) && !Array.isArray(after)) {
    for (const key of Object.keys(before)) {
      if (!(key in after)) out.push({ kind: 'removed', path: join(path, key), from: before[key] });
      else walk(before[key], after[key], join(path, key), out);
    }
    for (const key of Object.keys(after)) {
      if (!(key in before)) out.push({ kind: 'added', path: join(path, key), to: after[key] });
    }
    return;
  }
  out.push({ kind: 'changed', path: path || '(all)', from: before, to: after });
}

/**
 * @param {unknown} before
 * @param {unknown} after
 * @returns {{kind: 'added'|'removed'|'changed', path: string, from?: unknown, to?: unknown}[]} at most 300
 */
export function diff(before, after) {
  const out = [];
  walk(before, after, '', out);
  return out.slice(0, MOST);
}
