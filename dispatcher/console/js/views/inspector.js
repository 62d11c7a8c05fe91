/** Beside a conversation: who takes part and what it cost, and one turn in all its steps. */
import { html, useEffect, useState } from '../lib.js';
import { request } from '../api.js';
import { clock, cost, duration, full, number, tokens } from '../format.js';
import { nameOf } from '../names.js';
import { toConversation, toDefinition, toSession } from '../router.js';
import { phaseWords } from '../transcript.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Choice, Id, ProblemBox, Skeleton } from '../ui/parts.js';
import { Context } from './context.js';
import { Memories } from './memories.js';
import { Face } from './said.js';

const Pairs = ({ rows }) => html`<dl class="pairs">${rows.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`
  <div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

function Participants({ detail, agents, onRemove, onAdd }) {
  const here = detail.participants.filter(({ left_at: left }) => !left);
  const gone = detail.participants.length - here.length;
  return html`
    <section class="card"><h2>Participants <span class="push"></span>${onAdd && html`<button type="button" class="link" id="add-agent" onClick=${onAdd}>Add an agent</button>`}</h2>
      <ul class="seats">${here.map((one) => html`
        <li key=${one.participant_id}>
          <${Face} id=${one.agent_id ?? one.user_id} name=${one.type === 'agent' ? nameOf(agents, one.agent_id) : one.user_id} />
          <div><strong>${one.type === 'agent' ? html`<a href=${toDefinition('agent', one.agent_id)}>${nameOf(agents, one.agent_id)}</a>` : one.user_id}</strong>
            <span class="faint">${one.role}${one.session_id ? html` · <a href=${toSession(one.session_id)}>session</a>` : ''}</span></div>
          ${onRemove && one.type === 'agent' && html`<button type="button" class="copy" title="Take out of the conversation" aria-label=${`Take ${one.agent_id} out`} onClick=${() => onRemove(one)}><${Icon} name="close" /></button>`}
        </li>`)}</ul>
      ${gone > 0 && html`<p class="hint">${gone} left before.</p>`}
    </section>`;
}

function Totals({ turns, more, agents }) {
  const all = [...turns.values()];
  const sum = (of) => all.reduce((total, turn) => total + of(turn.usage ?? {}), 0);
  const [input, output, spent] = [sum((u) => u.input_tokens ?? 0), sum((u) => u.output_tokens ?? 0), sum((u) => u.cost ?? 0)];
  const failed = all.filter(({ status }) => status === 'failed').length;
  const by = new Map();
  for (const turn of all) by.set(turn.agent_id, (by.get(turn.agent_id) ?? 0) + (turn.usage?.cost ?? 0));
  return html`
    <section class="card totals"><h2>Use${more && html` <span class="faint">of the last ${number(all.length)} turns</span>`}</h2>
      <dl class="numbers flat">
        <div class="number"><dt>Cost</dt><dd>${cost(spent)}</dd></div>
        <div class="number"><dt>Tokens read</dt><dd>${tokens(input)}</dd></div>
        <div class="number"><dt>Tokens written</dt><dd>${tokens(output)}</dd></div>
        <div class="number"><dt>Turns</dt><dd>${number(all.length)}</dd></div>
      </dl>
      ${failed > 0 && html`<p class="hint">${number(failed)} of the turns failed or were cancelled.</p>`}
      ${by.size > 1 && html`<${Pairs} rows=${[...by].map(([id, part]) => [nameOf(agents, id), cost(part)])} />`}
      ${all.length > 0 && spent === 0 && html`<p class="hint">No prices: the model profile has no cost_per_1k_input_tokens and cost_per_1k_output_tokens.</p>`}
    </section>`;
}

function TurnList({ turns, agents, chosen, onInspect }) {
  const list = [...turns.values()].reverse();
  return html`<section class="card"><h2>Turns</h2>
    ${list.length === 0 ? html`<p class="faint">A turn begins with the first message.</p>` : html`<ol class="turn-list">${list.slice(0, 100).map((turn) => html`
      <li key=${turn.turn_id}><button type="button" aria-pressed=${String(turn.turn_id === chosen)} data-state=${turn.status} onClick=${() => onInspect(turn.turn_id)}>
        <i></i><span>${nameOf(agents, turn.agent_id)} · ${clock(turn.created_at)}</span><span class="faint">${turn.status === 'active' ? phaseWords(turn) : turn.cancelled ? 'cancelled' : turn.status === 'failed' ? 'failed' : tokens((turn.usage?.input_tokens ?? 0) + (turn.usage?.output_tokens ?? 0))}</span>
        <span class="sum">${cost(turn.usage?.cost)}</span></button></li>`)}</ol>`}
  </section>`;
}

function Facts({ conversation }) {
  const { conversation_id: id, created_by: by, created_at: at, subject_id: subject, tags, metadata, visibility } = conversation;
  return html`<section class="card"><h2>Facts</h2>
    <${Pairs} rows=${[['Id', html`<${Id} id=${id} label="conversation id" />`], ['Created', `${full(at)} by ${by}`], ['Subject', subject], ['Tags', tags.join(', ')], ['Visibility', visibility === 'internal' ? 'internal: delegated work' : null]]} />
    ${Object.keys(metadata ?? {}).length > 0 && html`<h3>Metadata</h3><${Json} value=${metadata} />`}</section>`;
}

const Provider = ({ record }) => {
  const { usage = {}, outcome = {}, response_metadata: { lost_attempts: lost = [], error } = {} } = record;
  const end = error === 'cancelled' ? 'cut short' : 'failed';
  const ms = (outcome.finished_at_ms ?? record.finished_at_ms) - (outcome.started_at_ms ?? record.started_at_ms);
  return html`<li class="provider"><p><b>${record.model}</b> <span class="faint">${record.provider}</span></p>
    <p class="faint">${[`${tokens(usage.input_tokens)} in`, `${tokens(usage.output_tokens)} out`, usage.cached_input_tokens ? `${tokens(usage.cached_input_tokens)} cached` : '',
    duration(ms), record.cost ? cost(record.cost) : '', outcome.attempts > 1 ? `${outcome.attempts} attempts` : '', outcome.ok === false ? end : '', lost.some(({ estimated }) => estimated) ? 'partly estimated' : ''].filter(Boolean).join(' · ')}</p></li>`;
};

function Moves({ moves }) {
  return html`<ol class="moves">${moves.map((one) => {
    const thoughts = (one.record?.parts ?? []).filter(({ type }) => type === 'reasoning').map(({ text }) => text).join('');
    return html`<li key=${one.offset}><p><b>Move ${one.move ?? '–'}</b> <span class="faint">${clock(one.created_at)}${one.finish ? ` · ${one.finish}` : ''}</span></p>
      ${thoughts && html`<p class="notes">${thoughts}</p>`}
      ${one.tool_calls.map((call, i) => html`<p key=${i}><code>${call.name}</code></p>`)}
      <details><summary>Record</summary><${Json} value=${one.record} /></details></li>`;
  })}</ol>`;
}

/** One turn: read again while it is active. */
function TurnInside({ id, turn, agents }) {
  const [detail, setDetail] = useState(null);
  const [error, setError] = useState(null);
  const stands = `${turn?.moves} ${turn?.phase} ${turn?.status}`;
  useEffect(() => {
    let gone = false;
    request(`/api/turns/${encodeURIComponent(id)}`).then((found) => { if (!gone) { setDetail(found); setError(null); } }, (failure) => { if (!gone) setError(failure); });
    return () => { gone = true; };
  }, [id, stands]);
  if (error) return html`<${ProblemBox} error=${error} />`;
  if (!detail || detail.turn.turn_id !== id) return html`<${Skeleton} rows=${4} />`;
  const one = turn ?? detail.turn;
  const { usage, issues } = one;
  const calls = detail.provider_calls;
  return html`
    <section class="card"><h2>${nameOf(agents, one.agent_id)}’s turn <span class="status" data-status=${{ active: 'running', completed: 'completed', failed: 'error' }[one.status]}>${one.cancelled ? 'cancelled' : one.status}</span></h2>
      <${Pairs} rows=${[
    ['Doing', one.status === 'active' ? phaseWords(one) : null], ['Began', clock(one.created_at)],
    ['Took', one.completed_at ? duration(Date.parse(one.completed_at) - Date.parse(one.created_at)) : null],
    ['Asked by', one.caller?.user_id ?? one.caller?.agent_id ?? one.caller?.run_id], ['Moves', number(one.moves)],
    ['Tokens', `${number(usage?.input_tokens ?? 0)} read, ${number(usage?.output_tokens ?? 0)} written`], ['Cost', cost(usage?.cost)],
    ['Issues', Object.entries(issues ?? {}).map(([name, value]) => (value === true ? name.replaceAll('_', ' ') : `${name.replaceAll('_', ' ')}: ${value}`)).join(', ')],
    ['Session', html`<a href=${toSession(one.session_id)}>its steps</a>`], ['Id', html`<${Id} id=${id} label="turn id" />`]]} />
    </section>
    <${Context} id=${id} at=${one.context_assembly_run_id} />
    <section class="card"><h2>Calls of the model</h2>${calls.length ? html`<ul class="providers">${calls.map((record, i) => html`<${Provider} key=${i} record=${record} />`)}</ul>` : html`<p class="faint">None yet.</p>`}</section>
    <section class="card"><h2>Moves</h2>${detail.moves.length ? html`<${Moves} moves=${detail.moves} />` : html`<p class="faint">The model has not replied yet.</p>`}</section>
    ${detail.operations.length > 0 && html`<section class="card"><h2>Operations</h2><ul class="operations">${detail.operations.map((op) => html`
      <li key=${op.operation_id}><p><code>${op.tool}</code> <span class="faint">${op.kind} · ${op.state}${op.attempt - op.lost > 1 ? ` · attempt ${op.attempt - op.lost} of ${op.max_attempts}` : ''}${op.lost ? ` · ${op.lost} lost` : ''}</span></p>
        ${op.kind === 'agent' && html`<p><a href=${toConversation(`${op.operation_id}.c`)}>What was said there</a></p>`}
        <details><summary>Request</summary><${Json} value=${op.request} /></details></li>`)}</ul></section>`}`;
}

/** @param {object} props `tab` and `chosen` are the page's, so that a click in the transcript leads here */
export function Inspector({ talk, agents, tab, setTab, chosen, onInspect, onRemove, onAdd, onClose }) {
  const { detail, turns } = talk;
  const latest = chosen ?? [...turns.keys()].at(-1) ?? null;
  const ids = [...new Set(detail.participants.filter(({ type }) => type === 'agent').map(({ agent_id: agent }) => agent))];
  return html`
    <aside class="inspector" aria-label="Inspector">
      <header><${Choice} label="What to look into" value=${tab} onChange=${setTab} options=${[['all', 'Overview'], ['turn', 'Turn'], ['memory', 'Memory']]} />
        <button type="button" class="button quiet icon-only" aria-label="Close the inspector" onClick=${onClose}><${Icon} name="close" /></button></header>
      <div class="inspector-in">
        ${tab === 'all' && html`<${Participants} detail=${detail} agents=${agents} onRemove=${onRemove} onAdd=${onAdd} />
          <${Totals} turns=${turns} more=${talk.moreTurns} agents=${agents} />
          <${TurnList} turns=${turns} agents=${agents} chosen=${chosen} onInspect=${onInspect} /><${Facts} conversation=${detail.conversation} />`}
        ${tab === 'turn' && (latest ? html`<${TurnInside} key=${latest} id=${latest} turn=${turns.get(latest)} agents=${agents} />` : html`<p class="hint">A turn begins with the first message.</p>`)}
        ${tab === 'memory' && html`<${Memories} ids=${ids} agents=${agents} />`}
      </div>
    </aside>`;
}
