/** The dialog that writes a definition: the server checks while it is typed, and says what a save would do. */
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { request } from '../api.js';
import { curl } from '../curl.js';
import { placeOf } from '../json-place.js';
import { Changes, changesOf } from '../ui/changes.js';
import { JsonEditor, readJson } from '../ui/json.js';
import { Button, Copy, Dialog, Field, ProblemBox } from '../ui/parts.js';
import { toast } from '../ui/toasts.js';

const CHECK_AFTER_MS = 500;
const send = (item, query, signal) => request('/api/definitions', { method: 'POST', query, body: [item], signal });

/** Asks the server what a save would do, a moment after the last key. @returns {{plan, error, busy}} */
function useDryRun(kind, value) {
  const [state, setState] = useState({ plan: null, error: null, busy: false });
  const body = value === undefined ? '' : JSON.stringify(value);
  useEffect(() => {
    if (!body) { setState({ plan: null, error: null, busy: false }); return undefined; }
    const controller = new AbortController();
    // What was said before stays until there is something newer, so that nothing jumps.
    setState((old) => ({ ...old, busy: true }));
    const timer = setTimeout(() => {
      send({ kind, definition: JSON.parse(body) }, { dry_run: true }, controller.signal)
        .then((answer) => setState({ plan: answer.items[0], error: null, busy: false }))
        .catch((error) => { if (error.name !== 'AbortError') setState({ plan: null, error, busy: false }); });
    }, CHECK_AFTER_MS);
    return () => { clearTimeout(timer); controller.abort(); };
  }, [kind, body]);
  return state;
}

const fieldOf = (field) => field.replace(/^\[0\]\.definition\.?/, '');

/** What is wrong, each at its line; a click goes there. */
function Problems({ errors, text, onGo }) {
  return html`<ul class="at-lines" role="alert" aria-label="What is wrong">
    ${errors.map(({ field, message }, index) => {
    const path = fieldOf(field);
    const place = placeOf(text, path);
    return html`<li key=${index}><button type="button" class="link" onClick=${() => onGo(place)}>line ${place.line}</button>
        <span><code>${path || 'all of it'}</code> ${message}</span></li>`;
  })}</ul>`;
}

function Plan({ plan, what }) {
  if (plan.change === 'created') return html`<p class="plan" data-change="created">A save creates this ${what}.</p>`;
  if (plan.change === 'unchanged') return html`<p class="plan">This is what version ${plan.version} has: a save changes nothing.</p>`;
  return html`<div class="plan" data-change="updated"><p>A save makes version ${plan.version}:</p>
    <${Changes} changes=${changesOf(plan.fields ?? [])} none="Nothing that shows." /></div>`;
}

/**
 * @param {{kind: import('../kinds.js').Kind, like?: object, onClose: () => void, onDone: (written: object) => void}} props
 *   `like`: the content to start from
 */
export function DefineDialog({ kind, like, onClose, onDone }) {
  const [text, setText] = useState(() => JSON.stringify(like ?? kind.start, null, 2));
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState(null);
  const box = useRef(null);
  const { value, error: wrong } = useMemo(() => readJson(text, { object: true }), [text]);
  const { plan, error, busy: checking } = useDryRun(kind.kind, value);
  const errors = (error?.problem?.errors ?? []).length > 0 && value !== undefined ? error.problem.errors : null;
  const item = { kind: kind.kind, definition: value };
  const goTo = ({ start, end }) => {
    const area = box.current?.querySelector('textarea');
    if (!area) return;
    area.focus();
    area.setSelectionRange(start, end);
    const lines = area.value.split('\n').length;
    area.scrollTop = Math.max(0, (area.value.slice(0, start).split('\n').length / lines) * area.scrollHeight - area.clientHeight / 2);
  };
  const save = async () => {
    setBusy(true);
    setFailed(null);
    try {
      const answer = await send(item, {});
      const written = answer.items[0];
      toast('ok', written.change === 'unchanged' ? 'Nothing has changed' : `Version ${written.version} is written`);
      onDone(written);
    } catch (failure) {
      setFailed(failure);
      setBusy(false);
    }
  };
  const rows = Math.min(26, Math.max(10, text.split('\n').length + 1));
  return html`
    <${Dialog} title=${like ? `Edit ${kind.one}` : `New ${kind.one}`} onClose=${onClose} wide actions=${html`
      <${Copy} text=${curl('/api/definitions', { method: 'POST', body: [item] })} label="Copy as curl" icon="terminal" words="curl" />
      <span class="push faint" aria-live="polite">${checking ? 'checking…' : ''}</span>
      <${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind="primary" class="confirm" busy=${busy} disabled=${Boolean(wrong) || value === undefined || !plan} onClick=${save}>Save<//>`}>
      <p class="hint about">${kind.about} ${kind.versioned ? 'A save makes a new version; the old ones stay.' : 'It is updated in place.'}</p>
      <div ref=${box} class="define">
        <${Field} id="d-text" label="Definition" hint="A JSON object. Defaults may be left out." error=${wrong}>
          <${JsonEditor} id="d-text" rows=${rows} value=${text} error=${wrong ?? errors} onInput=${setText} /><//>
      </div>
      ${errors ? html`<${Problems} errors=${errors} text=${text} onGo=${goTo} />`
    : error && html`<${ProblemBox} error=${error} />`}
      ${plan && !wrong && html`<${Plan} plan=${plan} what=${kind.one} />`}
      ${failed && html`<${ProblemBox} error=${failed} />`}
    <//>`;
}
