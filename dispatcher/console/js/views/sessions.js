/** The list of sessions: live, filtered by the address, with a selection to act upon. */
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { request } from '../api.js';
import { useKeys } from '../keys.js';
import { usePoll } from '../poll.js';
import { lastList, setQuery } from '../router.js';
import { number } from '../format.js';
import { Button, Command, Empty, ProblemBox, Skeleton } from '../ui/parts.js';
import { BulkBar } from './bulk.js';
import { CreateDialog } from './create.js';
import { Filters, filterOf } from './filters.js';
import { SessionTable } from './session-table.js';

const PAGE = 100;
const MOST = 1000;
const POLL_MS = 2000;
/** Below this scroll position new sessions wait behind a button, so that no row moves. */
const HOLD_PX = 160;

/**
 * Keeps rows where they are while someone is reading or selecting: sessions that are newer than
 * all known rows wait.
 */
function useSteadyRows(items, hold, list) {
  const known = useRef({ list, ids: new Set() });
  if (known.current.list !== list) known.current = { list, ids: new Set() };
  if (!items) return { rows: null, waiting: 0 };
  const { ids } = known.current;
  const first = hold ? Math.max(0, items.findIndex(({ session_id: id }) => ids.has(id))) : 0;
  const rows = items.slice(first);
  rows.forEach(({ session_id: id }) => ids.add(id));
  return { rows, waiting: first };
}

function Nothing({ filtered, onClear, onCreate }) {
  if (filtered) {
    return html`<${Empty} title="No session matches">
      <p>Nothing has this status, agent or name at the moment. The list keeps looking.</p>
      <${Button} onClick=${onClear}>Clear the filter<//><//>`;
  }
  return html`<${Empty} title="No sessions yet">
    <p>A session is one running agent: it works step by step, and every step is kept.</p>
    <p><${Button} kind="primary" icon="plus" onClick=${onCreate}>New session<//></p>
    <p>or from a terminal:</p>
    <${Command} text="stepfleet create tell_a_joke --agent my-first-agent" />
  <//>`;
}

/** Movement by keys through the links of the rows. */
function moveFocus(by) {
  const links = [...document.querySelectorAll('.sessions a.row-link')];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + by))].focus();
}

export function Sessions({ query }) {
  const filter = useMemo(() => filterOf(query), [query.toString()]);
  const [limit, setLimit] = useState(PAGE);
  const [start, setStart] = useState(null);
  const [picked, setPicked] = useState(new Set());
  const [scrolled, setScrolled] = useState(false);
  const [creating, setCreating] = useState(false);
  const [released, setReleased] = useState(false);
  const tail = query.toString();

  useEffect(() => { lastList.set(tail ? `#/sessions?${tail}` : '#/sessions'); setLimit(PAGE); setStart(null); setPicked(new Set()); }, [tail]);
  useEffect(() => {
    const watch = () => setScrolled(scrollY > HOLD_PX);
    addEventListener('scroll', watch, { passive: true });
    return () => removeEventListener('scroll', watch);
  }, []);

  const { data, error, loading, refresh } = usePoll(
    (signal) => request('/api/sessions', { signal, query: { ...filter, limit, cursor: start } }), POLL_MS, [tail, limit, start]);
  const hold = !released && (scrolled || picked.size > 0);
  const { rows, waiting } = useSteadyRows(data?.items, hold, `${tail} ${start}`);
  useEffect(() => { if (released) setReleased(false); }, [released]);

  const toggle = (ids, on) => setPicked((old) => {
    const next = new Set(old);
    ids.forEach((id) => (on ? next.add(id) : next.delete(id)));
    return next;
  });
  useKeys({
    '/': () => document.getElementById('search')?.focus(),
    n: () => setCreating(true),
    j: () => moveFocus(1),
    k: () => moveFocus(-1),
    x: () => {
      const id = document.activeElement?.closest('[data-session]')?.dataset.session;
      if (id) toggle([id], !picked.has(id));
    },
  });

  const filtered = tail !== '';
  return html`
    <div class="page sessions">
      <div class="page-head">
        <h1>Sessions</h1>
        <span class="faint count" aria-live="polite">${rows && `${number(rows.length)}${data.next_cursor ? '+' : ''}${filtered ? ' match' : ''}`}</span>
        <${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)} id="new-session">New session<//>
      </div>
      <${Filters} query=${query} />
      ${error && html`<${ProblemBox} error=${error} retry=${refresh} floating=${Boolean(rows)} />`}
      ${waiting > 0 && html`<button type="button" class="waiting" onClick=${() => { setReleased(true); scrollTo(0, 0); }}>
        ${number(waiting)} new ${waiting === 1 ? 'session' : 'sessions'}</button>`}
      ${!rows ? loading && html`<${Skeleton} rows=${9} />`
    : !rows.length ? html`<${Nothing} filtered=${filtered} onClear=${() => setQuery(new URLSearchParams())} onCreate=${() => setCreating(true)} />`
      : html`<${SessionTable} rows=${rows} picked=${picked} onPick=${toggle} />`}
      <div class="more">
        ${start && html`<${Button} onClick=${() => setStart(null)}>Back to the newest<//>`}
        ${data?.next_cursor && (limit < MOST
    ? html`<${Button} busy=${loading} onClick=${() => setLimit(Math.min(MOST, limit + PAGE))}>Show ${PAGE} more<//>`
    : html`<${Button} onClick=${() => { setStart(data.next_cursor); scrollTo(0, 0); }}>Next ${number(MOST)}<//>`)}
      </div>
      ${picked.size > 0 && html`<${BulkBar} picked=${picked} filter=${filter} rows=${rows ?? []}
        onDone=${() => { setPicked(new Set()); refresh(); }} onClear=${() => setPicked(new Set())} />`}
      ${creating && html`<${CreateDialog} onClose=${() => setCreating(false)} />`}
    </div>`;
}
