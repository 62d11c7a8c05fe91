/** Pause or resume many sessions: the ones selected, or all that match the filter. */
import { html, useState } from '../lib.js';
import { newId, request } from '../api.js';
import { curl } from '../curl.js';
import { number, shortId } from '../format.js';
import { Button, Choice, Copy, Dialog, ProblemBox } from '../ui/parts.js';

const plural = (n) => `${number(n)} ${n === 1 ? 'session' : 'sessions'}`;

/** @returns {object} a filter as `POST /api/sessions/bulk` takes it */
function bulkFilter(all, picked, filter) {
  if (!all) return { session_ids: [...picked] };
  const { status, agent_id: agent, moniker } = filter;
  return { ...(status.length ? { status } : {}), ...(agent ? { agent_id: agent } : {}), ...(moniker ? { moniker } : {}) };
}

function words({ status, agent_id: agent, moniker }) {
  const parts = [status.length && `status ${status.join(' or ')}`, agent && `agent ${agent}`, moniker && `moniker ${moniker}`].filter(Boolean);
  return parts.length ? parts.join(', ') : 'no filter: every session of this namespace';
}

function Result({ answer, chosen, verb }) {
  return html`
    <div class="bulk-result" role="status">
      <p><strong>${number(answer.accepted)}</strong> of ${plural(answer.matched)} accepted.</p>
      ${chosen > answer.matched && html`<p>${number(chosen - answer.matched)} had nothing to ${verb} and ${chosen - answer.matched === 1 ? 'was' : 'were'} left alone.</p>`}
      ${answer.refused.length > 0 && html`
        <p>${number(answer.refused.length)} refused:</p>
        <ul>${answer.refused.slice(0, 50).map((one) => html`<li key=${one.session_id}><code title=${one.session_id}>${shortId(one.session_id)}</code> ${one.detail} <span class="faint">${one.code}</span></li>`)}</ul>
        ${answer.refused.length > 50 && html`<p class="faint">and ${number(answer.refused.length - 50)} more</p>`}`}
    </div>`;
}

function BulkDialog({ action, picked, filter, onClose, onDone }) {
  const [scope, setScope] = useState('picked');
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [answer, setAnswer] = useState(null);
  // One key for this dialog: pressing again after a lost answer repeats, it does not act twice.
  const [key, setKey] = useState(newId);
  const all = scope === 'all';
  const body = { action, filter: bulkFilter(all, picked, filter), ...(action === 'pause' && reason.trim() ? { payload: { reason: reason.trim() } } : {}) };
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      setAnswer(await request('/api/sessions/bulk', { method: 'POST', body, idempotencyKey: key }));
    } catch (failure) {
      setError(failure);
      if (failure.problem?.code !== 'unreachable') setKey(newId());
    }
    setBusy(false);
  };
  const verb = action === 'pause' ? 'Pause' : 'Resume';
  const close = () => (answer ? onDone() : onClose());
  return html`
    <${Dialog} title=${`${verb} sessions`} onClose=${close} actions=${answer
    ? html`<${Button} kind="primary" onClick=${close}>Done<//>`
    : html`<${Copy} text=${curl('/api/sessions/bulk', { method: 'POST', body })} label="Copy as curl" icon="terminal" words="curl" /><span class="push"></span>
      <${Button} onClick=${close}>Cancel<//>
      <${Button} kind="primary" class="confirm" busy=${busy} onClick=${send}>${all ? `${verb} all that match` : `${verb} ${plural(picked.size)}`}<//>`}>
      ${answer ? html`<${Result} answer=${answer} chosen=${all ? 0 : picked.size} verb=${action} />` : html`
        <${Choice} label="Which sessions" value=${scope} onChange=${setScope} options=${[['picked', `${number(picked.size)} selected`], ...(filter.q ? [] : [['all', 'All that match the filter']])]} />
        ${filter.q && html`<p class="hint">“All that match” works with status, agent and moniker; the text search chooses only what is shown.</p>`}
        ${all && html`<p>Filter: ${words(filter)}. This includes sessions that are not shown here.</p>`}
        <p>${action === 'pause' ? 'A running step is finished first; then the session waits until it is resumed. Ended sessions are left alone.' : 'Each goes on at its next step. Sessions that failed try their step again.'}</p>
        ${action === 'pause' && html`<div class="field"><label for="bulk-reason">Reason, shown to others</label>
          <input id="bulk-reason" maxlength="200" value=${reason} onInput=${(event) => setReason(event.target.value)} /></div>`}
        ${error && html`<${ProblemBox} error=${error} />`}`}
    <//>`;
}

/** Floats over the list, so that selecting moves nothing. */
export function BulkBar({ picked, filter, onDone, onClear }) {
  const [action, setAction] = useState(null);
  return html`
    <div class="bulk-bar" role="region" aria-label="Selected sessions">
      <strong>${plural(picked.size)}</strong>
      <${Button} icon="pause" class="bulk-pause" onClick=${() => setAction('pause')}>Pause<//>
      <${Button} icon="play" class="bulk-resume" onClick=${() => setAction('resume')}>Resume<//>
      <${Button} kind="quiet icon-only" icon="close" aria-label="Clear the selection" onClick=${onClear} />
      ${action && html`<${BulkDialog} action=${action} picked=${picked} filter=${filter}
        onClose=${() => setAction(null)} onDone=${() => { setAction(null); onDone(); }} />`}
    </div>`;
}
