/** The registry: the kinds, and the definitions of one of them. */
import { html, useEffect, useState } from '../lib.js';
import { request } from '../api.js';
import { ago, full, isUlid, number, shortId } from '../format.js';
import { useKeys } from '../keys.js';
import { KINDS, kindOf, viewsOf } from '../kinds.js';
import { usePoll } from '../poll.js';
import { go, toDefinition, toDefinitions } from '../router.js';
import { useNow } from '../store.js';
import { Button, Command, Empty, ProblemBox, Skeleton } from '../ui/parts.js';
import { DefineDialog } from './define.js';

const PAGE = 100;
const MOST = 1000;
const POLL_MS = 5000;

const Kinds = ({ chosen }) => html`
  <nav class="kinds" aria-label="Kinds of definitions">
    ${KINDS.map(({ kind, title }) => html`
      <a key=${kind} href=${toDefinitions(kind)} aria-current=${kind === chosen ? 'page' : undefined}>${title}</a>`)}
  </nav>`;

function Row({ view, now }) {
  const { definition } = view;
  const owner = definition.library_id ?? definition.project_id ?? (definition.project_ids ?? []).join(', ');
  return html`
    <tr data-definition=${view.id}>
      <td class="c-name"><div><a class="row-link" href=${toDefinition(view.kind, view.id)} title=${view.id}>${isUlid(view.id) ? shortId(view.id) : view.id}</a></div></td>
      <td class="c-cause" title=${definition.name}>${definition.name}</td>
      <td class="c-moniker" title=${owner}>${owner || '–'}</td>
      <td class="c-iteration" title="Version">${number(view.version)}</td>
      <td class="c-time" title=${`Changed ${full(view.updated_at)}`}>${ago(view.updated_at, now)}</td>
    </tr>`;
}

function Table({ views }) {
  const now = useNow();
  return html`
    <table class="list definitions-list">
      <thead><tr>
        <th class="c-name" scope="col">Id</th><th class="c-cause" scope="col">Name</th><th class="c-moniker" scope="col">Belongs to</th>
        <th class="c-iteration" scope="col">Version</th><th class="c-time" scope="col">Changed</th>
      </tr></thead>
      <tbody>${views.map((view) => html`<${Row} key=${view.id} view=${view} now=${now} />`)}</tbody>
    </table>`;
}

/** @param {{kind: string|null}} props */
export function Definitions({ kind: name }) {
  const kind = kindOf(name);
  const [limit, setLimit] = useState(PAGE);
  const [creating, setCreating] = useState(false);
  useEffect(() => { setLimit(PAGE); setCreating(false); }, [kind]);
  const { data, error, loading, refresh } = usePoll(
    (signal) => request(`/api/${kind.path}`, { signal, query: { limit } }).then((page) => ({ ...page, of: kind.kind })), POLL_MS, [kind, limit]);
  useKeys({ n: () => setCreating(true) });
  // While another kind is read, the rows of the one before would be wrong here.
  const views = data?.of === kind.kind ? viewsOf(data.items) : null;
  const open = (written) => { setCreating(false); go(toDefinition(written.kind, written.id)); };
  return html`
    <div class="page definitions">
      <div class="page-head">
        <h1>Definitions</h1>
        <span class="faint count" aria-live="polite">${views && `${number(views.length)}${data.next_cursor ? '+' : ''}`}</span>
        <${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)} id="new-definition">New ${kind.one}<//>
      </div>
      <${Kinds} chosen=${kind.kind} />
      <p class="hint about-kind">${kind.about}</p>
      ${error && html`<${ProblemBox} error=${error} retry=${refresh} floating=${Boolean(views)} />`}
      ${!views ? !error && html`<${Skeleton} rows=${6} />`
    : !views.length ? html`<${Empty} title=${`No ${kind.title.toLowerCase()} yet`}>
          <p>Write one here, or apply files from a terminal:</p><${Command} text="stepfleet apply -f examples/definitions --dry-run" /><//>`
      : html`<${Table} views=${views} />`}
      <div class="more">${views && data.next_cursor && limit < MOST
    && html`<${Button} busy=${loading} onClick=${() => setLimit(Math.min(MOST, limit + PAGE))}>Show ${PAGE} more<//>`}</div>
      ${creating && html`<${DefineDialog} kind=${kind} onClose=${() => setCreating(false)} onDone=${open} />`}
    </div>`;
}
