/** The dialogs that begin a conversation, and that bring an agent into one. */
import { html, useEffect, useMemo, useState } from '../lib.js';
import { newId, request } from '../api.js';
import { curl } from '../curl.js';
import { readAgents, useAgents } from '../names.js';
import { go, toConversation } from '../router.js';
import { Button, Copy, Dialog, Field, ProblemBox, Skeleton } from '../ui/parts.js';
import { Face } from './said.js';
import { NoAgents } from './talk-empty.js';

/** Begins a conversation with one agent, and goes there. A repeat with the same id begins no second one. */
export async function beginWith(id, agent) {
  await request('/api/conversations', { method: 'POST', body: { conversation_id: id, agents: [{ agent_id: agent }] } });
  go(toConversation(id));
}

/** The agents to choose from; defined ones first, as only those were made to converse. */
function AgentChoice({ agents, chosen, onToggle, one }) {
  const [query, setQuery] = useState('');
  const fits = ({ id, name }) => `${id} ${name}`.toLowerCase().includes(query.trim().toLowerCase());
  const list = agents.filter(({ defined }) => defined).filter(fits);
  return html`
    ${agents.length > 8 && html`<input type="search" aria-label="Search agents" placeholder="Search" value=${query} onInput=${(event) => setQuery(event.target.value)} />`}
    <ul class="agent-choice">${list.map(({ id, name, description }) => html`
      <li key=${id}><label data-agent=${id}><input type=${one ? 'radio' : 'checkbox'} name="agent" checked=${chosen.includes(id)} onChange=${() => onToggle(id)} />
        <${Face} id=${id} name=${name} /><span><strong>${name}</strong> <code>${id}</code>${description && html`<span class="hint">${description}</span>`}</span></label></li>`)}</ul>`;
}

/** @param {{onClose: () => void, agent?: string}} props `agent`: chosen already */
export function TalkDialog({ onClose, agent: first }) {
  const agents = useAgents();
  const id = useMemo(newId, []);
  const [chosen, setChosen] = useState(first ? [first] : []);
  const [title, setTitle] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => { readAgents().catch(setError); }, []);
  const defined = agents?.filter((one) => one.defined) ?? null;
  const picked = chosen.length ? chosen : defined?.length === 1 ? [defined[0].id] : [];
  const body = {
    conversation_id: id,
    ...(title.trim() ? { title: title.trim() } : {}),
    agents: picked.map((agent) => ({ agent_id: agent })),
  };
  const toggle = (agent) => setChosen(picked.includes(agent) ? picked.filter((one) => one !== agent) : [...picked, agent]);
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      await request('/api/conversations', { method: 'POST', body });
      onClose();
      go(toConversation(id));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title="New conversation" onClose=${onClose} actions=${html`
      <${Copy} text=${curl('/api/conversations', { method: 'POST', body })} label="Copy as curl" icon="terminal" words="curl" /><span class="push"></span>
      <${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind="primary" class="confirm" busy=${busy} disabled=${!picked.length} onClick=${send}>Begin<//>`}>
      <${Field} id="t-title" label="Title" hint="Optional; what the list calls it.">
        <input id="t-title" value=${title} maxlength="200" onInput=${(event) => setTitle(event.target.value)}
          onKeyDown=${(event) => { if (event.key === 'Enter' && picked.length) send(); }} /><//>
      <div class="field"><span class="field-label">Agents</span>
        ${!defined ? html`<${Skeleton} rows=${3} />` : !defined.length ? html`<div class="no-agents"><${NoAgents} /></div>`
    : html`<${AgentChoice} agents=${agents} chosen=${picked} onToggle=${toggle} />`}
        ${defined?.length > 1 && html`<p class="hint">Each gets a session of its own. Several answer side by side.</p>`}</div>
      ${error && html`<${ProblemBox} error=${error} />`}
    <//>`;
}

/** @param {{id: string, taken: string[], onClose: () => void, onDone: () => void}} props */
export function JoinDialog({ id, taken, onClose, onDone }) {
  const agents = useAgents();
  const [chosen, setChosen] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const free = agents?.filter((one) => one.defined && !taken.includes(one.id)) ?? null;
  const send = async () => {
    setBusy(true);
    try {
      await request(`/api/conversations/${encodeURIComponent(id)}/participants`, { method: 'POST', body: { agent_id: chosen } });
      onDone();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title="Add an agent" onClose=${onClose} actions=${html`<span class="push"></span><${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind="primary" class="confirm" busy=${busy} disabled=${!chosen} onClick=${send}>Add<//>`}>
      ${!free ? html`<${Skeleton} rows=${3} />` : !free.length ? html`<div class="no-agents">${agents.some((one) => one.defined) ? html`<p>Every agent that is defined takes part.</p>` : html`<${NoAgents} />`}</div>`
    : html`<${AgentChoice} agents=${free} chosen=${chosen ? [chosen] : []} onToggle=${setChosen} one />`}
      ${error && html`<${ProblemBox} error=${error} />`}
    <//>`;
}
