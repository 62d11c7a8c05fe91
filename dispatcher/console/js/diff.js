/** What changed between two JSON values, as a flat list of paths. */

const MOST = 300;
/** Most comparisons of elements for one pair of lists. */
const PAIRS_MAX = 10_000;

const isObject = (value) => value !== null && typeof value === 'object';

/** Whether two JSON values are equal. */
export function same(a, b) {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

const join = (path, key) => (typeof key === 'number' ? `${path}[${key}]` : path ? `${path}.${key}` : key);

/** Pairs of equal elements, in order, as many as possible; none if that would cost too much. */
function matches(was, is) {
  if (was.length * is.length > PAIRS_MAX) return [];
  const left = was.map((value) => JSON.stringify(value));
  const right = is.map((value) => JSON.stringify(value));
  const most = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      most[i][j] = left[i] === right[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) { pairs.push([i, j]); i += 1; j += 1; } else if (most[i + 1][j] >= most[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

/**
 * Lists are compared around their equal elements, so that one element more at the front is one
 * addition and not a change of everything. Between equal elements, as many were as are: changes.
 */
function lists(before, after, path, out) {
  let head = 0;
  const least = Math.min(before.length, after.length);
  while (head < least && same(before[head], after[head])) head += 1;
  let tail = 0;
  while (tail < least - head && same(before[before.length - 1 - tail], after[after.length - 1 - tail])) tail += 1;
  const was = before.slice(head, before.length - tail);
  const is = after.slice(head, after.length - tail);
  let [i, j] = [0, 0];
  for (const [to, at] of [...matches(was, is), [was.length, is.length]]) {
    if (to - i === at - j) {
      for (; i < to; i += 1, j += 1) walk(was[i], is[j], join(path, head + j), out);
    } else {
      for (; i < to; i += 1) out.push({ kind: 'removed', path: join(path, head + i), from: was[i] });
      for (; j < at; j += 1) out.push({ kind: 'added', path: join(path, head + j), to: is[j] });
    }
    i = to + 1;
    j = at + 1;
  }
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
