/** The inbox: what agents of all conversations ask people for. */
import { html, useEffect } from '../lib.js';
import { request } from '../api.js';
import { ago, full, number, shortId } from '../format.js';
import { nameOf, useAgents } from '../names.js';
import { usePoll } from '../poll.js';
import { toConversation } from '../router.js';
import { createStore, useNow } from '../store.js';
import { Command, Empty, ProblemBox, Skeleton } from '../ui/parts.js';
import { Ask } from './approve.js';
import { useDetail, withWhom } from './talks-data.js';

const POLL_MS = 4000;
const MOST = 100;

/** How many wait, for the badge in the bar. */
export const waiting = createStore(0);

/** Reads what waits; one poll for the badge and the inbox. */
export function useWaiting() {
  const poll = usePoll((signal) => request('/api/operations', { signal, query: { kind: 'approval', state: 'pending', limit: MOST } }), POLL_MS, []);
  useEffect(() => { if (poll.data) waiting.set(poll.data.items.length); }, [poll.data]);
  return poll;
}

function Place({ id, agents }) {
  const detail = useDetail(id);
  return html`<a href=${toConversation(id)}>${detail?.conversation.title || withWhom(detail, agents) || shortId(id)}</a>`;
}

/** @param {{poll: object}} props what `useWaiting` gives */
export function Approvals({ poll }) {
  const { data, error, refresh } = poll;
  const agents = useAgents();
  const now = useNow();
  return html`
    <div class="page approvals">
      <div class="page-head"><h1>Approvals</h1><span class="faint count" aria-live="polite">${data && number(data.items.length)}${data?.next_cursor ? '+' : ''}</span></div>
      ${error && html`<${ProblemBox} error=${error} retry=${refresh} floating=${Boolean(data)} />`}
      ${!data ? !error && html`<${Skeleton} rows=${3} kind="step" />`
    : !data.items.length ? html`<${Empty} title="Nothing waits for you">
        <p>Calls of tools with <code>requires_approval</code> appear here with their exact arguments, the longest waiting first. In a terminal:</p><${Command} text="stepfleet approvals" /><//>`
      : html`<ol class="inbox">${data.items.map((one) => {
        const agent = one.request.context?.agent_id;
        return html`<li key=${one.operation_id} class="card"><header><${Place} id=${one.conversation_id} agents=${agents} />
            <span class="faint" title=${full(one.created_at)}>${ago(one.created_at, now)} ago</span></header>
          <${Ask} operation=${one} who=${agent ? nameOf(agents, agent) : 'An agent'} onDone=${refresh} /></li>`;
      })}</ol>`}
    </div>`;
}
