/** The list of conversations, with what waits for a person above it. */
import { html, useEffect, useMemo, useState } from '../lib.js';
import { newId } from '../api.js';
import { ago, full, isUlid, number, shortId } from '../format.js';
import { useKeys } from '../keys.js';
import { useAgents } from '../names.js';
import { lastTalks, setTalksQuery, toConversation } from '../router.js';
import { useNow, useStore } from '../store.js';
import { Button, Command, Empty, ProblemBox, Skeleton, Status } from '../ui/parts.js';
import { waiting } from '../waiting.js';
import { NoAgents } from './talk-empty.js';
import { beginWith, TalkDialog } from './talk-new.js';
import { doing, statusOf, useTalks, withWhom } from './talks-data.js';

const PAGE = 50;
const MOST = 500;
const STATUSES = ['active', 'completed', 'failed'];
/** The agent that a new installation has. */
const GUIDE = 'guide';

const filterOf = (query) => ({
  status: STATUSES.includes(query.get('status')) ? query.get('status') : undefined,
  agent_id: query.get('agent_id') || undefined,
  include: query.get('include') === 'internal' ? 'internal' : undefined,
});

function Filters({ query, agents }) {
  const { status, agent_id: agent, include } = filterOf(query);
  const change = (name, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    setTalksQuery(next);
  };
  return html`
    <div class="filters" role="search">
      <div class="chips" role="group" aria-label="Status">${STATUSES.map((one) => html`
        <button key=${one} type="button" class="chip" data-status=${one} aria-pressed=${String(status === one)} onClick=${() => change('status', status === one ? null : one)}>${one}</button>`)}</div>
      <select aria-label="Agent" value=${agent ?? ''} class=${agent ? 'set' : ''} onChange=${(event) => change('agent_id', event.target.value)}>
        <option value="">All agents</option>${(agents ?? []).map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}</select>
      <label class="check"><input type="checkbox" id="internal" checked=${Boolean(include)} onChange=${(event) => change('include', event.target.checked ? 'internal' : null)} /> Delegated work too</label>
      ${query.toString() && html`<button type="button" class="link" onClick=${() => setTalksQuery(new URLSearchParams())}>Clear</button>`}
    </div>`;
}

function Row({ one, agents, now }) {
  const { row, detail } = one;
  const { conversation_id: id } = row;
  const whom = withWhom(detail, agents);
  const what = doing(detail, agents);
  return html`
    <tr data-conversation=${id}>
      <td class="c-status"><${Status} status=${statusOf(one)} /></td>
      <td class="c-name"><div><a class="row-link" href=${toConversation(id)} title=${id}>${row.title || whom || shortId(id)}</a>
        ${row.visibility === 'internal' && html`<span class="tag">internal</span>`}<code title=${id}>${isUlid(id) || id.length > 24 ? shortId(id) : id}</code></div></td>
      <td class="c-whom" title=${whom}>${whom || '–'}</td>
      <td class="c-cause" title=${what} data-whom=${whom} data-idle=${what ? undefined : ''}>${what || (row.tags.length ? row.tags.join(', ') : '–')}</td>
      <td class="c-time" title=${`Last activity ${full(row.updated_at)}`}>${ago(row.updated_at, now)}</td>
      <td class="c-age" title=${`Created ${full(row.created_at)}`}>${ago(row.created_at, now)}</td>
    </tr>`;
}

/** Begins with one agent at once: a click, and one can write. */
function Begin({ agent }) {
  const id = useMemo(newId, []);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const begin = async () => {
    setBusy(true);
    setError(null);
    try {
      await beginWith(id, agent.id);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<p><${Button} kind="primary" class="begin" busy=${busy} onClick=${begin}>Talk to ${agent.name}<//></p>
    ${error && html`<${ProblemBox} error=${error} />`}`;
}

function Nothing({ filtered, agents, onCreate }) {
  if (filtered) {
    return html`<${Empty} title="No conversation matches"><p>Nothing has this status or agent at the moment. The list keeps looking.</p>
      <${Button} onClick=${() => setTalksQuery(new URLSearchParams())}>Clear the filter<//><//>`;
  }
  const defined = agents?.filter((one) => one.defined) ?? [];
  const first = defined.find(({ id }) => id === GUIDE) ?? defined[0];
  return html`<${Empty} title="No conversations yet">
    ${first || !agents ? html`<p>Talk to your agents: their answers stream in, tools and questions show as they happen, and every word is kept.</p>
      ${first ? html`<${Begin} key=${first.id} agent=${first} />` : html`<p><${Button} kind="primary" icon="plus" onClick=${onCreate}>New conversation<//></p>`}<p>or from a terminal:</p>
      <${Command} text=${`stepfleet say hello "What can you do?" --with ${first?.id ?? 'AGENT'}`} />`
    : html`<${NoAgents} />`}<//>`;
}

/** @param {{query: URLSearchParams}} props */
export function Conversations({ query }) {
  const tail = query.toString();
  const filter = useMemo(() => filterOf(query), [tail]);
  const [limit, setLimit] = useState(PAGE);
  const [creating, setCreating] = useState(false);
  const agents = useAgents();
  const now = useNow();
  const asks = useStore(waiting);
  const { data, rows, error, loading, refresh } = useTalks(filter, limit);
  useEffect(() => { lastTalks.set(tail ? `#/conversations?${tail}` : '#/conversations'); setLimit(PAGE); }, [tail]);
  useKeys({ n: () => setCreating(true) });
  return html`
    <div class="page conversations">
      <div class="page-head">
        <h1>Conversations</h1>
        <span class="faint count" aria-live="polite">${rows && `${number(rows.length)}${data.next_cursor ? '+' : ''}`}</span>
        <${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)} id="new-conversation">New conversation<//>
      </div>
      ${asks > 0 && html`<a class="asks-bar" href="#/approvals"><b>${number(asks)} ${asks === 1 ? 'call waits' : 'calls wait'} for an answer.</b> Look at ${asks === 1 ? 'it' : 'them'}</a>`}
      <${Filters} query=${query} agents=${agents} />
      ${error && html`<${ProblemBox} error=${error} retry=${refresh} floating=${Boolean(rows)} />`}
      ${!rows ? !error && html`<${Skeleton} rows=${8} />`
    : !rows.length ? html`<${Nothing} filtered=${tail !== ''} agents=${agents} onCreate=${() => setCreating(true)} />`
      : html`<table class="list talks">
          <thead><tr><th class="c-status" scope="col">Status</th><th class="c-name" scope="col">Conversation</th><th class="c-whom" scope="col">With</th>
            <th class="c-cause" scope="col">Doing</th><th class="c-time" scope="col">Active</th><th class="c-age" scope="col">Age</th></tr></thead>
          <tbody>${rows.map((one) => html`<${Row} key=${one.row.conversation_id} one=${one} agents=${agents} now=${now} />`)}</tbody></table>`}
      <div class="more">${data?.next_cursor && limit < MOST && html`<${Button} busy=${loading} onClick=${() => setLimit(Math.min(MOST, limit + PAGE))}>Show ${PAGE} more<//>`}</div>
      ${creating && html`<${TalkDialog} onClose=${() => setCreating(false)} />`}
    </div>`;
}
