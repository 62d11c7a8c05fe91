/** JSON as a tree that opens where you look, and an editor that says where it is wrong. */
import { html, useState } from '../lib.js';

const MOST_CHILDREN = 100;
const LONG_TEXT = 400;

const kindOf = (value) => (value === null ? 'null' : typeof value);

function Leaf({ value, all }) {
  const [whole, setWhole] = useState(all);
  if (typeof value !== 'string') return html`<span class=${`j-${kindOf(value)}`}>${String(value)}</span>`;
  const long = value.length > LONG_TEXT && !whole;
  return html`<span class="j-string">${JSON.stringify(long ? value.slice(0, LONG_TEXT) : value)}</span>${
    long && html`<button type="button" class="link" onClick=${() => setWhole(true)}>${value.length - LONG_TEXT} more characters</button>`}`;
}

function Node({ name, value, depth, all }) {
  const list = Array.isArray(value);
  const entries = value !== null && typeof value === 'object' ? Object.entries(value) : null;
  const [open, setOpen] = useState(all || depth < 1 || (depth < 3 && (entries?.length ?? 0) <= 12));
  const [most, setMost] = useState(all ? Infinity : MOST_CHILDREN);
  const label = name !== undefined && html`<span class="j-key">${name}</span>`;
  if (!entries) return html`<div class="j-line">${label}<${Leaf} value=${value} all=${all} /></div>`;
  if (!entries.length) return html`<div class="j-line">${label}<span class="j-null">${list ? '[]' : '{}'}</span></div>`;
  const count = `${entries.length} ${list ? (entries.length === 1 ? 'item' : 'items') : entries.length === 1 ? 'field' : 'fields'}`;
  return html`
    <div class="j-node">
      <button type="button" class="j-toggle" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
        ${label}<span class="j-count">${list ? '[' : '{'} ${count} ${list ? ']' : '}'}</span>
      </button>
      ${open && html`<div class="j-children">
        ${entries.slice(0, most).map(([key, child]) => html`<${Node} key=${key} name=${key} value=${child} depth=${depth + 1} all=${all} />`)}
        ${entries.length > most && html`
          <button type="button" class="link" onClick=${() => setMost(most + MOST_CHILDREN)}>${entries.length - most} more</button>`}
      </div>`}
    </div>`;
}

/** @param {{value: unknown, all?: boolean}} props `all`: nothing is folded or cut, for what somebody must read */
export const Json = ({ value, all = false }) => html`<div class="json"><${Node} value=${value} depth=${0} all=${all} /></div>`;

/**
 * Reads JSON as a person typed it.
 * @returns {{value?: unknown, error?: string}} the error names line and column where the browser tells them
 */
export function readJson(text, { object = false } = {}) {
  if (!text.trim()) return { value: undefined };
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = /position (\d+)/.exec(error.message);
    if (!at) return { error: `This is not JSON: ${error.message}` };
    const before = text.slice(0, Number(at[1])).split('\n');
    return { error: `Not JSON at line ${before.length}, column ${before.at(-1).length + 1}. Text needs "double quotes", and the last element no comma.` };
  }
  if (object && (value === null || typeof value !== 'object' || Array.isArray(value))) {
    return { error: 'This must be an object, as in {"key": "value"}.' };
  }
  return { value };
}

/** A text area for JSON. Tab leaves it, as people without a mouse expect. */
export const JsonEditor = ({ id, value, onInput, rows = 5, error }) => html`
  <textarea id=${id} class="code" rows=${rows} spellcheck="false" autocomplete="off" autocapitalize="off"
    aria-invalid=${error ? 'true' : undefined} value=${value} onInput=${(event) => onInput(event.target.value)}></textarea>`;
