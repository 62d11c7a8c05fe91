/** What changes a conversation itself: its name, and its end. */
import { html, useState } from '../lib.js';
import { request } from '../api.js';
import { Button, Dialog, ProblemBox } from '../ui/parts.js';
import { toast } from '../ui/toasts.js';
import { pathOf } from './conversation-data.js';

/** Sends what a button stands for, and tells what went wrong. */
export const attempt = async (send, said) => {
  try {
    await send();
    toast('ok', said);
  } catch (error) {
    toast('error', error.message);
  }
};

export function RenameDialog({ id, title, onClose, onDone }) {
  const [text, setText] = useState(title ?? '');
  const [error, setError] = useState(null);
  const send = async () => {
    try {
      await request(pathOf(id), { method: 'PATCH', body: { title: text.trim() } });
      onDone();
      onClose();
    } catch (failure) { setError(failure); }
  };
  return html`<${Dialog} title="Rename" onClose=${onClose} actions=${html`<span class="push"></span><${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" class="confirm" onClick=${send}>Rename<//>`}>
    <input id="title" aria-label="Title" value=${text} maxlength="200" onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => { if (event.key === 'Enter') send(); }} />
    ${error && html`<${ProblemBox} error=${error} />`}<//>`;
}

export function CompleteDialog({ id, onClose, onDone }) {
  const send = () => { attempt(() => request(pathOf(id), { method: 'PATCH', body: { status: 'completed' } }).then(onDone), 'Completed'); onClose(); };
  return html`<${Dialog} title="Complete this conversation?" onClose=${onClose} actions=${html`<span class="push"></span><${Button} onClick=${onClose}>Cancel<//><${Button} kind="danger" class="confirm" onClick=${send}>Complete<//>`}>
    <p>Nothing more can be said in it, for good. What was said stays, and turns that are under way go on to their end.</p><//>`;
}
