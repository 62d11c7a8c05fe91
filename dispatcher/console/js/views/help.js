/** Shortcuts, and the name that actions of this browser carry. */
import { html } from '../lib.js';
import { actor } from '../api.js';
import { useStore } from '../store.js';
import { Dialog, Field } from '../ui/parts.js';

const KEYS = [
  ['Everywhere', [['1', 'Sessions'], ['2', 'Fleet'], ['3', 'Definitions'], ['4', 'Conversations'], ['5', 'Approvals'], ['t', 'Theme'], ['?', 'This help'], ['Esc', 'Close']]],
  ['Sessions', [['/', 'Search'], ['j k', 'Next, previous session'], ['Enter', 'Open'], ['x', 'Select'], ['n', 'New session']]],
  ['Conversations', [['n', 'New conversation'], ['c', 'Write'], ['Enter', 'Send'], ['Shift Enter', 'New line'], ['i', 'Inspector'], ['Backspace', 'Back to the list']]],
  ['Definitions', [['n', 'New one of this kind'], ['e', 'Edit'], ['Backspace', 'Back to the list']]],
  ['One session', [['p', 'Pause or resume'], ['i', 'Interrupt with guidance'], ['u', 'Send input'], ['f', 'Follow on and off'], ['Backspace', 'Back to the list']]],
];

export function Help({ onClose }) {
  const name = useStore(actor);
  return html`
    <${Dialog} title="Help" onClose=${onClose} wide>
      <div class="help-keys">
        ${KEYS.map(([title, keys]) => html`
          <section key=${title}><h3>${title}</h3><dl>
            ${keys.map(([key, what]) => html`<div key=${key}><dt>${key.split(' ').map((one) => html`<kbd>${one}</kbd>`)}</dt><dd>${what}</dd></div>`)}
          </dl></section>`)}
      </div>
      <${Field} label="Your name" id="actor" hint="Others see it as in “paused by ana”. Kept in this browser.">
        <input id="actor" maxlength="64" value=${name} placeholder="the token’s own name" onInput=${(event) => actor.set(event.target.value.trim())} />
      <//>
      <p class="faint">Everything here is also in the HTTP API: <a href="/openapi.json" target="_blank" rel="noreferrer">openapi.json</a>.</p>
    <//>`;
}
