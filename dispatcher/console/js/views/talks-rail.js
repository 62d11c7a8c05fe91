/** The newest conversations beside the one that is read. */
import { html, useState } from '../lib.js';
import { ago, shortId } from '../format.js';
import { useAgents } from '../names.js';
import { toConversation } from '../router.js';
import { useNow } from '../store.js';
import { Icon } from '../ui/icons.js';
import { TalkDialog } from './talk-new.js';
import { doing, statusOf, useTalks, withWhom } from './talks-data.js';

const MOST = 40;
/** Newest activity first; the API orders by when they began. */
const byActivity = (a, b) => Date.parse(b.row.updated_at) - Date.parse(a.row.updated_at);

/** @param {{chosen: string}} props */
export function TalksRail({ chosen }) {
  const now = useNow();
  const agents = useAgents();
  const { rows } = useTalks({}, MOST);
  const [creating, setCreating] = useState(false);
  return html`
    <nav class="rail-talks" aria-label="Conversations">
      <header><h2>Conversations</h2><button type="button" class="button quiet icon-only" title="New conversation" aria-label="New conversation" onClick=${() => setCreating(true)}><${Icon} name="plus" /></button></header>
      <ul>${rows?.slice().sort(byActivity).map(({ row, detail }) => {
    const now1 = doing(detail, agents);
    const asks = detail?.active_turns.some(({ phase }) => phase === 'waiting_approval');
    return html`<li key=${row.conversation_id}><a href=${toConversation(row.conversation_id)} aria-current=${row.conversation_id === chosen ? 'page' : undefined}
          data-status=${statusOf({ row, detail })} data-asks=${asks ? '' : undefined}>
        <span class="rail-title">${row.title || withWhom(detail, agents) || shortId(row.conversation_id)}</span><span class="rail-time">${ago(row.updated_at, now)}</span>
        <span class="rail-what">${now1 ? html`<i></i>${now1}` : withWhom(detail, agents) || ' '}</span></a></li>`;
  })}</ul>
      ${creating && html`<${TalkDialog} onClose=${() => setCreating(false)} />`}
    </nav>`;
}
