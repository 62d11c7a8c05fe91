/** Dead letters: messages of the broker that could not be taken, and what can be done with them. */
import { html, useState } from '../lib.js';
import { request } from '../api.js';
import { ago, number } from '../format.js';
import { usePoll } from '../poll.js';
import { toast } from '../ui/toasts.js';
import { Button, Dialog, Id, ProblemBox, Skeleton } from '../ui/parts.js';

const POLL_MS = 5000;

/** What a verb does, in the words of its button and of the note that it is done. */
const VERBS = {
  redrive: { label: 'Redrive', done: 'Sent back to its queue' },
  drop: { label: 'Drop', done: 'Thrown away' },
};

const attend = (id, verb) => request(`/api/dead/${encodeURIComponent(id)}/${verb}`, { method: 'POST', body: {} });

function Letter({ letter, onDone }) {
  const [busy, setBusy] = useState(null);
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState(null);
  const act = async (verb) => {
    setBusy(verb);
    setError(null);
    try {
      await attend(letter.id, verb);
      toast('ok', VERBS[verb].done);
      onDone();
    } catch (failure) { setError(failure); }
    setBusy(null);
    setAsking(false);
  };
  return html`<li>
    <div class="letter-head"><b>${letter.reason}</b></div>
    <p><span>from ${letter.origin}</span>${letter.died_at && html`<span>${ago(letter.died_at, Date.now())}</span>`}<span>${number(letter.bytes)} bytes</span><${Id} id=${letter.id} label="id of the dead letter" /></p>
    ${letter.body && html`<pre class="letter-body">${letter.body}</pre>`}
    <div class="letter-acts"><${Button} busy=${busy === 'redrive'} disabled=${busy !== null} onClick=${() => act('redrive')}>Redrive<//>
      <${Button} disabled=${busy !== null} onClick=${() => setAsking(true)}>Drop<//></div>
    ${error && html`<${ProblemBox} error=${error} />`}
    ${asking && html`<${Dialog} title="Drop this message?" onClose=${() => setAsking(false)} actions=${html`<span class="push"></span><${Button} onClick=${() => setAsking(false)}>Cancel<//>
      <${Button} kind="danger" class="confirm" busy=${busy === 'drop'} onClick=${() => act('drop')}>Drop<//>`}>
      <p>It is thrown away for good; nothing else keeps a copy.</p><//>`}
  </li>`;
}

/** Shown when there are any; who may not see them is told so only if there is something to see. */
export function DeadLetters() {
  const { data, error, refresh } = usePoll((signal) => request('/api/dead', { query: { limit: 50 }, signal }), POLL_MS, []);
  // Dead letters belong to no namespace, so they need an admin's token.
  if (error?.problem?.status === 403) return null;
  if (error && !data) return html`<section class="card"><h2>Dead letters</h2><${ProblemBox} error=${error} retry=${refresh} /></section>`;
  if (!data) return html`<${Skeleton} rows=${1} />`;
  return html`<section class="card dead"><h2>Dead letters <span class="faint">${data.length < 50 ? number(data.length) : 'the first 50'}</span></h2>
    ${data.length ? html`<ul>${data.map((letter) => html`<${Letter} key=${letter.id} letter=${letter} onDone=${refresh} />`)}</ul>`
      : html`<p class="faint">None: every message that came could be taken.</p>`}
  </section>`;
}
