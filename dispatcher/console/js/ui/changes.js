/** Changes of a JSON value as a list of paths with before and after. */
import { html } from '../lib.js';

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1));

/** @param {{changes: {kind: 'added'|'removed'|'changed', path: string, from?: unknown, to?: unknown}[], none: string}} props */
export function Changes({ changes, none }) {
  if (!changes.length) return html`<p class="faint">${none}</p>`;
  return html`<dl class="changes">
    ${changes.map(({ kind, path, from, to }) => html`
      <div key=${path + kind} data-change=${kind}><dt>${path}</dt>
        <dd>${kind !== 'added' && html`<del>${text(from)}</del>`}${kind !== 'removed' && html`<ins>${text(to)}</ins>`}</dd></div>`)}
  </dl>`;
}

/** The changes of a dry run as the list takes them. */
export const changesOf = (fields) => fields.map(({ field, from, to }) => ({
  kind: from === undefined ? 'added' : to === undefined ? 'removed' : 'changed', path: field, from, to,
}));
