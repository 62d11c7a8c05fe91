/** The rows of the list. Every column has a fixed place, so live values move nothing. */
import { html } from '../lib.js';
import { ago, causeText, full, isUlid, number, shortId } from '../format.js';
import { toSession } from '../router.js';
import { useNow } from '../store.js';
import { Copy, Status } from '../ui/parts.js';

function Row({ session, on, onPick, now }) {
  const { session_id: id, agent_id: agent, moniker, status, iteration } = session;
  const cause = causeText(session, now);
  return html`
    <tr data-session=${id} class=${on ? 'picked' : ''}>
      <td class="c-pick"><input type="checkbox" checked=${on} aria-label=${`Select ${agent} ${id}`}
        onChange=${(event) => onPick([id], event.target.checked)} /></td>
      <td class="c-status"><${Status} status=${status} /></td>
      <td class="c-name"><div><a class="row-link" href=${toSession(id)} title=${`${agent} ${id}`}>${isUlid(agent) ? shortId(agent) : agent}</a>
        <code title=${id}>${shortId(id)}</code><${Copy} text=${id} label="Copy session id" /></div></td>
      <td class="c-moniker">${moniker}</td>
      <td class="c-iteration" title="Iteration of the last step">${iteration === null ? '–' : `#${number(iteration)}`}</td>
      <td class="c-cause" data-moniker=${moniker} title=${cause}>${cause}</td>
      <td class="c-time" title=${`Changed ${full(session.updated_at)}`}>${ago(session.updated_at, now)}</td>
      <td class="c-age" title=${`Created ${full(session.created_at)}`}>${ago(session.created_at, now)}</td>
    </tr>`;
}

/** @param {{rows: object[], picked: Set<string>, onPick: (ids: string[], on: boolean) => void}} props */
export function SessionTable({ rows, picked, onPick }) {
  const now = useNow();
  const all = rows.every(({ session_id: id }) => picked.has(id));
  const some = !all && rows.some(({ session_id: id }) => picked.has(id));
  return html`
    <table class="list">
      <thead><tr>
        <th class="c-pick"><input type="checkbox" aria-label="Select all that are shown" checked=${all} indeterminate=${some}
          onChange=${(event) => onPick(rows.map(({ session_id: id }) => id), event.target.checked)} /></th>
        <th class="c-status" scope="col">Status</th><th class="c-name" scope="col">Session</th><th class="c-moniker" scope="col">Moniker</th>
        <th class="c-iteration" scope="col">Step</th><th class="c-cause" scope="col">Doing</th>
        <th class="c-time" scope="col">Changed</th><th class="c-age" scope="col">Age</th>
      </tr></thead>
      <tbody>
        ${rows.map((session) => html`<${Row} key=${session.session_id} session=${session} on=${picked.has(session.session_id)} onPick=${onPick} now=${now} />`)}
      </tbody>
    </table>`;
}
