/** One step of the timeline: what it said, what it changed, and everything else on demand. */
import { Component, html, useEffect, useMemo, useState } from '../lib.js';
import { request } from '../api.js';
import { diff } from '../diff.js';
import { brief, clock, duration, full, number } from '../format.js';
import { createStore } from '../store.js';
import { Changes } from '../ui/changes.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Choice, Copy, ProblemBox } from '../ui/parts.js';

/** How many steps are open on the page. */
export const openSteps = createStore(0);

/** Texts longer than this are cut until asked for. */
const TEXT_CUT = 900;
const SUMMARY_MAX = 3;

const mark = { added: '+', removed: '−', changed: '' };

/** The first changes on one line, for those who only look over. */
function Summary({ changes }) {
  if (!changes.length) return html`<span class="faint">state unchanged</span>`;
  return html`<span class="summary">
    ${changes.slice(0, SUMMARY_MAX).map(({ kind, path, from, to }) => html`<span key=${path} data-change=${kind}>${mark[kind]}${path} ${
    kind === 'changed' ? html`<s>${brief(from, 18)}</s> → <b>${brief(to, 22)}</b>` : kind === 'added' ? html`<b>${brief(to, 22)}</b>` : ''}</span>`)}
    ${changes.length > SUMMARY_MAX && html`<span class="faint">and ${changes.length - SUMMARY_MAX} more</span>`}
  </span>`;
}

/** The step before, read when it is not on the page. @returns {[object|null, Error|null]} */
function useBefore(step, before, wanted) {
  const [found, setFound] = useState([before, null]);
  useEffect(() => {
    if (before || !wanted || step.iteration === 0) return undefined;
    const controller = new AbortController();
    const n = step.iteration - 1;
    request('/api/agent-steps', { signal: controller.signal, query: { session_id: step.session_id, min_iteration: n, max_iteration: n, limit: 1 } })
      .then(({ items }) => setFound([items[0] ?? null, null]))
      .catch((error) => { if (error.name !== 'AbortError') setFound([null, error]); });
    return () => controller.abort();
  }, [step, before, wanted]);
  return before ? [before, null] : found;
}

function Details({ step, before }) {
  const [tab, setTab] = useState('changes');
  const [previous, error] = useBefore(step, before, tab === 'changes');
  const changes = useMemo(() => (previous || step.iteration === 0 ? diff(previous?.state ?? {}, step.state) : null), [previous, step]);
  const tabs = [['changes', 'Changes'], ['state', 'State'], ...(step.data !== null ? [['data', 'Data']] : []), ['record', 'Record']];
  return html`
    <div class="details">
      <div class="details-head"><${Choice} label="Details of the step" value=${tab} onChange=${setTab} options=${tabs} />
        <${Copy} text=${JSON.stringify(tab === 'data' ? step.data : tab === 'record' ? step : step.state, null, 2)} label=${`Copy ${tab === 'changes' ? 'state' : tab} as JSON`} /></div>
      ${tab === 'changes' && (error ? html`<${ProblemBox} error=${error} />` : changes ? html`<${Changes} changes=${changes} none="This step left the state as it was." />` : html`<p class="faint">Reading the step before…</p>`)}
      ${tab === 'state' && html`<${Json} value=${step.state} />`}
      ${tab === 'data' && html`<${Json} value=${step.data} />`}
      ${tab === 'record' && html`<${Json} value=${step} />`}
    </div>`;
}

function Said({ step }) {
  const [whole, setWhole] = useState(false);
  if (step.text === null || step.text === undefined) {
    return step.data !== null && step.data !== undefined ? html`<p class="said data">${brief(step.data, 160)}</p>` : null;
  }
  const long = step.text.length > TEXT_CUT && !whole;
  return html`<p class="said">${long ? `${step.text.slice(0, TEXT_CUT)}…` : step.text}</p>
    ${long && html`<button type="button" class="link" onClick=${() => setWhole(true)}>Show all ${number(step.text.length)} characters</button>`}`;
}

function StepBody({ step, offset, before }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!open) return undefined;
    openSteps.set(openSteps.get() + 1);
    return () => openSteps.set(openSteps.get() - 1);
  }, [open]);
  const changes = useMemo(() => (before || step.iteration === 0 ? diff(before?.state ?? {}, step.state) : null), [step, before]);
  return html`
    <li class="step" data-step=${step.iteration} data-offset=${offset} data-outcome=${step.status}>
      <span class="rail" aria-hidden="true"></span>
      <div class="step-head">
        <button type="button" class="step-open" aria-expanded=${String(open)} onClick=${() => setOpen(!open)} aria-label=${`Step ${step.iteration}, details`}>
          <${Icon} name="chevron" /><b>#${number(step.iteration)}</b></button>
        <span class="tokens"><code>${step.step_token}</code> → <code>${step.next_step_token}</code></span>
        ${step.turn_id && html`<code class="step-turn" title=${`Turn ${step.turn_id}`}>${step.turn_id}</code>`}
        <span class="latency" title="Latency">${duration(step.latency_ms)}</span>
        <time datetime=${step.created_at} title=${full(step.created_at)}>${clock(step.created_at)}</time>
      </div>
      ${step.guidance !== null && step.guidance !== undefined && html`<p class="guidance"><${Icon} name="bolt" /><span>guidance</span> <code>${brief(step.guidance, 200)}</code></p>`}
      <${Said} step=${step} />
      ${step.error && html`<p class="step-error"><${Icon} name="warn" /><span>${step.error}</span></p>`}
      ${step.notes && html`<p class="notes">${step.notes}</p>`}
      ${!open && changes && html`<button type="button" class="peek" onClick=${() => setOpen(true)} title="Show what the step changed"><${Summary} changes=${changes} /></button>`}
      ${open && html`<${Details} step=${step} before=${before} />`}
    </li>`;
}

/** Steps never change, so a step is rendered again only when its predecessor was loaded. */
export class Step extends Component {
  shouldComponentUpdate(next) {
    return next.step !== this.props.step || next.before !== this.props.before;
  }

  render(props) {
    return html`<${StepBody} ...${props} />`;
  }
}
