/** Short notes about what was done, read aloud by screen readers. */
import { html } from '../lib.js';
import { createStore, useStore } from '../store.js';
import { Icon } from './icons.js';

const MOST = 4;
const notes = createStore([]);
let next = 1;

const drop = (id) => notes.set(notes.get().filter((note) => note.id !== id));

/** @param {'ok'|'error'} kind @param {string} text */
export function toast(kind, text) {
  const id = next;
  next += 1;
  notes.set([...notes.get().slice(1 - MOST), { id, kind, text }]);
  setTimeout(() => drop(id), kind === 'error' ? 9000 : 3500);
}

export function Toasts() {
  const list = useStore(notes);
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${list.map(({ id, kind, text }) => html`
        <div key=${id} class=${`toast ${kind}`}>
          <${Icon} name=${kind === 'ok' ? 'check' : 'warn'} /><span>${text}</span>
          <button type="button" aria-label="Dismiss" onClick=${() => drop(id)}><${Icon} name="close" /></button>
        </div>`)}
    </div>`;
}
