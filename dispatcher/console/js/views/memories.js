/** What the agents of a conversation remember: an agent has its memories in every conversation. */
import { html, useEffect, useState } from '../lib.js';
import { request } from '../api.js';
import { ago, full } from '../format.js';
import { nameOf } from '../names.js';
import { useNow } from '../store.js';
import { Button, ProblemBox, Skeleton } from '../ui/parts.js';

const PAGE = 50;

const path = (agent) => `/api/agents/${encodeURIComponent(agent)}/memories`;

/** What is too long for a list is read when it is asked for. */
function Long({ agent, id }) {
  const [state, setState] = useState({ content: null, error: null, busy: false });
  const read = async () => {
    setState((old) => ({ ...old, busy: true }));
    try {
      const memory = await request(`${path(agent)}/${encodeURIComponent(id)}`);
      setState({ content: memory.content, error: null, busy: false });
    } catch (error) {
      setState({ content: null, error, busy: false });
    }
  };
  if (state.error) return html`<${ProblemBox} error=${state.error} />`;
  if (state.content !== null) return html`<p class="memory-text memory-whole">${state.content}</p>`;
  return html`<${Button} busy=${state.busy} onClick=${read}>Read its content<//>`;
}

function Memory({ agent, memory, now }) {
  const [open, setOpen] = useState(false);
  return html`<li><p class="memory-head"><span class="tag" data-tier=${memory.tier}>${memory.tier}</span>
      ${memory.label && html`<b>${memory.label}</b>`}<span class="faint">${memory.type}</span><span class="push"></span>
      ${memory.relevance !== undefined && html`<span class="relevance faint" title="How well it fits">${Math.round(memory.relevance * 100)} %</span>`}
      <span class="faint" title=${full(memory.updated_at)}>${ago(memory.updated_at, now)}</span></p>
    ${memory.content ? html`<button type="button" class="memory-text" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${memory.content}</button>`
    : html`<${Long} agent=${agent} id=${memory.id} />`}</li>`;
}

function Of({ id, name }) {
  const now = useNow();
  const [state, setState] = useState({ items: null, next: null, error: null, busy: false });
  const [wanted, setWanted] = useState('');
  const read = async (cursor) => {
    setState((old) => ({ ...old, busy: true }));
    try {
      const page = await request(path(id), { query: wanted.trim() ? { query: wanted } : { limit: PAGE, cursor } });
      setState((old) => ({ items: [...(cursor ? old.items : []), ...page.items], next: page.next_cursor, error: null, busy: false }));
    } catch (error) {
      setState((old) => ({ ...old, error, busy: false }));
    }
  };
  useEffect(() => { read(); }, [id]);
  return html`<section class="card memories"><h2>${name} remembers <span class="push"></span><button type="button" class="link" onClick=${() => read()}>Read again</button></h2>
    <form class="memory-search" onSubmit=${(event) => { event.preventDefault(); read(); }}>
      <input type="search" aria-label=${`Search what ${name} remembers`} placeholder="Search by meaning and words"
        value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></form>
    ${state.error ? html`<${ProblemBox} error=${state.error} />` : !state.items ? html`<${Skeleton} rows=${2} />`
    : !state.items.length ? html`<p class="faint">${wanted.trim() ? 'Nothing that fits.' : 'Nothing yet. Agents remember with their memory tools, and by what is extracted from a turn when it ends.'}</p>`
      : html`<ul>${state.items.map((memory) => html`<${Memory} key=${memory.id} agent=${id} memory=${memory} now=${now} />`)}</ul>`}
    ${state.next && html`<${Button} busy=${state.busy} onClick=${() => read(state.next)}>Show more<//>`}</section>`;
}

/** @param {{ids: string[], agents: object[]}} props */
export const Memories = ({ ids, agents }) => (ids.length
  ? ids.map((id) => html`<${Of} key=${id} id=${id} name=${nameOf(agents, id)} />`)
  : html`<p class="hint">No agent takes part.</p>`);
