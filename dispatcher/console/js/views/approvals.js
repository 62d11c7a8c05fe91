/** The inbox: what agents of all conversations ask people for. */
import { html, useEffect } from '../lib.js';
import { ago, full, number, shortId } from '../format.js';
import { nameOf, useAgents } from '../names.js';
import { toConversation } from '../router.js';
import { useNow } from '../store.js';
import { Command, Empty, ProblemBox, Skeleton } from '../ui/parts.js';
import { readWaiting } from '../waiting.js';
import { Ask } from './approve.js';
import { useDetail, withWhom } from './talks-data.js';

function Place({ id, agents }) {
  const detail = useDetail(id);
  return html`<a href=${toConversation(id)}>${detail?.conversation.title || withWhom(detail, agents) || shortId(id)}</a>`;
}

/** @param {{poll: object}} props what `useWaiting` gives */
export function Approvals({ poll }) {
  const { data, error, refresh } = poll;
  const agents = useAgents();
  const now = useNow();
  // What was read for the badge may be some seconds old.
  useEffect(readWaiting, []);
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
