/** A tool call as a card: what was called with what, how it stands, what came of it. */
import { html, useState } from '../lib.js';
import { brief, duration } from '../format.js';
import { useNow } from '../store.js';
import { callState } from '../transcript.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Copy } from '../ui/parts.js';
import { Ask } from './approve.js';

const WORDS = { running: 'running', done: 'done', failed: 'failed', refused: 'denied', asks: 'needs your answer', background: 'in the background', left: 'not finished' };

const summaryOf = (input) => (input && typeof input === 'object'
  ? Object.entries(input).map(([key, value]) => `${key}: ${brief(value, 28)}`).join(', ') : brief(input ?? '', 60));

function Time({ part, state }) {
  const now = useNow();
  if (!part.at) return null;
  const end = part.endedAt ? Date.parse(part.endedAt) : state === 'running' || state === 'background' || state === 'asks' ? now : null;
  return end === null ? null : html`<span class="call-time">${duration(end - Date.parse(part.at))}</span>`;
}

function Outcome({ result }) {
  if (result.success === false) {
    const error = result.error ?? {};
    return html`<div class="call-error"><${Icon} name="warn" /><div><p>${error.message ?? brief(error, 400)}</p>
      <p class="faint">${error.code}${error.retriable ? ' · may be tried again' : ''}</p></div></div>`;
  }
  const value = result.result;
  return typeof value === 'string' ? html`<pre class="call-text">${value}</pre>` : html`<${Json} value=${value ?? null} />`;
}

/** @param {{part: object, ask?: object, active: boolean, who: string, onAnswered: () => void}} props */
export function Call({ part, ask, active, who, onAnswered }) {
  const [open, setOpen] = useState(false);
  const { call, result } = part;
  const state = callState(part, ask, active);
  const told = state === 'failed' || state === 'refused' ? result.error?.message ?? '' : '';
  return html`
    <div class="call" data-state=${state} data-tool=${call.name}>
      <button type="button" class="call-head" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
        <span class="call-mark" aria-hidden="true"></span>
        <code class="call-name">${call.name}</code>
        <span class="call-brief">${told || summaryOf(call.input)}</span>
        <span class="call-state">${WORDS[state]}</span>
        <${Time} part=${part} state=${state} />
        <${Icon} name="chevron" />
      </button>
      ${open && html`<div class="call-body">
        <section><h4>Arguments <${Copy} text=${JSON.stringify(call.input, null, 2)} label="Copy the arguments" /></h4><${Json} value=${call.input ?? {}} /></section>
        ${result && html`<section><h4>${result.success === false ? 'Error' : 'Result'} <${Copy} text=${JSON.stringify(result.result ?? result.error, null, 2)} label="Copy the result" /></h4><${Outcome} result=${result} /></section>`}
        ${!result && !ask && html`<p class="hint">${state === 'left' ? 'The turn ended before it had a result.' : 'The result appears here by itself.'}</p>`}
      </div>`}
      ${ask && html`<${Ask} operation=${ask} who=${who} onDone=${onAnswered} />`}
    </div>`;
}
