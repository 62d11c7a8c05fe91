/** Dead letters: messages of the broker that could not be taken, and what can be done with them. */
import { html, useState } from '../lib.js';
import { ApiError, request } from '../api.js';
import { ago, number } from '../format.js';
import { usePoll } from '../poll.js';
import { toast } from '../ui/toasts.js';
import { Button, Dialog, Id, ProblemBox, Skeleton } from '../ui/parts.js';

const POLL_MS = 5000;

/** What a verb does, in the words of its button and of the note that it is done. */
const VERBS = {
  redrive: {
    label: 'Redrive',
    done: 'Sent back to its queue',
    all: 'Sent back',
    means: 'Each goes back to the queue it came from, those that are not shown here as well.',
  },
  drop: {
    label: 'Drop',
    done: 'Thrown away',
    all: 'Thrown away',
    means: 'They are thrown away for good, those that are not shown here as well; nothing else keeps a copy.',
  },
};

const attend = (id, verb) => request(`/api/dead/${encodeURIComponent(id)}/${verb}`, { method: 'POST', body: {} });

/** All that lie there now, shown or not. The answer has lines that tell how far it is; the last one how it ended. */
async function attendAll(verb) {
  const answer = await request(`/api/dead/${verb}`, { method: 'POST', body: { all: true }, text: true });
  const last = JSON.parse(answer.trim().split('\n').at(-1));
  if (last.finished) return last;
  const detail = `${number(last.letters)} of them were ${last.done} before that; the others are left.`;
  throw new ApiError({ status: 0, code: 'unavailable', title: last.error ?? 'The answer broke off', detail });
}

function All({ onDone }) {
  const [asking, setAsking] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      const { letters, stuck } = await attendAll(asking);
      toast('ok', `${VERBS[asking].all}: ${number(letters)}${stuck ? `; ${number(stuck)} stay, their queue is gone` : ''}`);
    } catch (failure) { setError(failure); }
    setBusy(false);
    setAsking(null);
    onDone();
  };
  return html`<div class="letters-acts">
    ${Object.entries(VERBS).map(([verb, { label }]) => html`<${Button} key=${verb} id=${`${verb}-all`} onClick=${() => setAsking(verb)}>${label} all<//>`)}
    ${error && html`<${ProblemBox} error=${error} />`}
    ${asking && html`<${Dialog} title=${`${VERBS[asking].label} all messages?`} onClose=${() => setAsking(null)} actions=${html`<span class="push"></span><${Button} onClick=${() => setAsking(null)}>Cancel<//>
      <${Button} kind=${asking === 'drop' ? 'danger' : 'primary'} class="confirm" busy=${busy} onClick=${act}>${VERBS[asking].label} all<//>`}>
      <p>${VERBS[asking].means}</p><//>`}
  </div>`;
}

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
    ${data.length > 1 && html`<${All} onDone=${refresh} />`}
    ${data.length ? html`<ul>${data.map((letter) => html`<${Letter} key=${letter.id} letter=${letter} onDone=${refresh} />`)}</ul>`
      : html`<p class="faint">None: every message that came could be taken.</p>`}
  </section>`;
}
