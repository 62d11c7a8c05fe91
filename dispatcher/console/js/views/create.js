/** The dialog that creates a session, with what is wrong shown at the field it is about. */
import { html, useMemo, useState } from '../lib.js';
import { act, actionBody } from '../api.js';
import { curl } from '../curl.js';
import { MONIKERS, monikerOf } from '../monikers.js';
import { go, toSession } from '../router.js';
import { JsonEditor, readJson } from '../ui/json.js';
import { Button, Copy, Dialog, Field, ProblemBox } from '../ui/parts.js';
import { toast } from '../ui/toasts.js';

const pretty = (value) => (value && Object.keys(value).length ? JSON.stringify(value, null, 2) : '');

/** The form as it starts: empty, or as a session was created. */
function startOf(like) {
  const spec = like?.spec ?? { moniker: MONIKERS[0].name };
  const known = monikerOf(spec.moniker);
  return {
    moniker: spec.moniker,
    agent: like?.session.agent_id ?? '',
    task: spec.task ?? '',
    config: pretty(like ? spec.config : known?.config),
    state: pretty(like ? null : known?.state),
    stop: like ? (spec.stop_on_done ? 'yes' : 'no') : '',
    steps: spec.max_steps ?? '',
    runtime: spec.max_runtime_ms ? spec.max_runtime_ms / 1000 : '',
    interval: like ? spec.loop_interval_ms : '',
  };
}

const numberOf = (text) => (text === '' ? undefined : Number(text));

/** @returns {{body: object, wrong: Record<string, string>}} */
function read(form) {
  const config = readJson(form.config, { object: true });
  const state = readJson(form.state, { object: true });
  const payload = {
    moniker: form.moniker,
    task: form.task.trim() || undefined,
    config: config.value,
    state: state.value,
    stop_on_done: form.stop ? form.stop === 'yes' : undefined,
    max_steps: numberOf(form.steps),
    max_runtime_s: numberOf(form.runtime),
    loop_interval_ms: numberOf(form.interval),
  };
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  const wrong = {};
  if (config.error) wrong.config = config.error;
  if (state.error) wrong.state = state.error;
  return { body: actionBody('create', form.agent.trim() ? { agent_id: form.agent.trim() } : {}, given), wrong };
}

const PLACES = { agent_id: 'agent', moniker: 'moniker', task: 'task', config: 'config', state: 'state', stop_on_done: 'stop', max_steps: 'steps', max_runtime_s: 'runtime', loop_interval_ms: 'interval' };

/** Puts the server's field problems at the fields of the form; the rest stays a list. */
function place(error) {
  const at = {};
  let rest = 0;
  for (const { field, message } of error?.problem?.errors ?? []) {
    const name = PLACES[field.replace(/^payload\./, '').split(/[.[]/)[0]];
    if (!name) { rest += 1; continue; }
    const path = field.replace(/^payload\./, '');
    at[name] = [at[name], `${path} ${message}`].filter(Boolean).join(' ');
  }
  return { at, boxed: Boolean(error) && (rest > 0 || !Object.keys(at).length) };
}

const StateField = ({ form, set, at }) => html`
  <${Field} id="c-state" label="State of the first step" hint="A JSON object. Empty: what the moniker starts with." error=${at.state}>
    <${JsonEditor} id="c-state" rows=${3} value=${form.state} error=${at.state} onInput=${(text) => set('state', text)} /><//>`;

function Limits({ form, set, at, withState }) {
  const input = (name, label, hint, props = {}) => html`
    <${Field} id=${`c-${name}`} label=${label} hint=${hint} error=${at[name]}>
      <input id=${`c-${name}`} inputmode="numeric" type="number" min="0" value=${form[name]} onInput=${(event) => set(name, event.target.value)} ...${props} /><//>`;
  return html`
    <details class="limits" open=${['stop', 'steps', 'runtime', 'interval', 'state'].some((name) => at[name])}>
      <summary>${withState ? 'First state and limits' : 'Limits'}</summary>
      ${withState && html`<${StateField} form=${form} set=${set} at=${at} />`}
      <div class="field-row">
        ${input('steps', 'At most steps', null, { placeholder: 'no limit' })}
        ${input('runtime', 'At most seconds', null, { placeholder: 'no limit' })}
        ${input('interval', 'Interval, ms', null, { placeholder: 'as the moniker' })}
        <${Field} id="c-stop" label="When it is done" error=${at.stop}>
          <select id="c-stop" value=${form.stop} onChange=${(event) => set('stop', event.target.value)}>
            <option value="">as the moniker</option><option value="yes">end</option><option value="no">go on</option></select><//>
      </div>
    </details>`;
}

/** @param {{onClose: () => void, like?: object}} props `like`: the detail of a session to start from */
export function CreateDialog({ onClose, like }) {
  const [form, setForm] = useState(() => startOf(like));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const { body, wrong } = useMemo(() => read(form), [form]);
  const known = monikerOf(form.moniker);
  const placed = place(error);
  const at = { ...placed.at, ...wrong };
  // What the server said stays until the next try, so that nothing moves while it is corrected.
  const set = (name, value) => setForm((old) => ({ ...old, [name]: value }));
  const choose = (name) => {
    const next = monikerOf(name);
    setForm((old) => ({ ...old, moniker: name, config: pretty(next?.config), state: pretty(next?.state) }));
    setError(null);
  };
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      const answer = await act(body);
      toast('ok', 'Session accepted');
      onClose();
      go(toSession(answer.session_id));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const names = MONIKERS.map(({ name }) => name);
  if (!known) names.push(form.moniker);
  return html`
    <${Dialog} title=${like ? 'Run again' : 'New session'} onClose=${onClose} wide actions=${html`
      <${Copy} text=${curl('/api/actions', { method: 'POST', body })} label="Copy as curl" icon="terminal" words="curl" /><span class="push"></span>
      <${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind="primary" class="confirm" busy=${busy} disabled=${Object.keys(wrong).length > 0} onClick=${send}>Create session<//>`}>
      <div class="field-row two">
        <${Field} id="c-moniker" label="Moniker" error=${at.moniker}>
          <select id="c-moniker" value=${form.moniker} onChange=${(event) => choose(event.target.value)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select><//>
        <${Field} id="c-agent" label="Agent" error=${at.agent}>
          <input id="c-agent" value=${form.agent} placeholder="a new one" spellcheck="false" autocapitalize="off" autocomplete="off" onInput=${(event) => set('agent', event.target.value)} /><//>
      </div>
      ${known && html`<p class="hint about">${known.about}</p>`}
      ${(known?.task || form.task || at.task) && html`
        <${Field} id="c-task" label="Task" hint="What the model is to do, in your words." error=${at.task}>
          <textarea id="c-task" rows="4" value=${form.task} onInput=${(event) => set('task', event.target.value)}></textarea><//>`}
      <${Field} id="c-config" label="Config" hint="The moniker’s settings, a JSON object. May be empty." error=${at.config}>
        <${JsonEditor} id="c-config" rows=${Math.min(10, Math.max(3, form.config.split('\n').length))} value=${form.config} error=${at.config} onInput=${(text) => set('config', text)} /><//>
      ${known?.state && html`<${StateField} form=${form} set=${set} at=${at} />`}
      <${Limits} form=${form} set=${set} at=${at} withState=${!known?.state} />
      ${placed.boxed && html`<${ProblemBox} error=${error} />`}
    <//>`;
}
