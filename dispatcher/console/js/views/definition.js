/** One definition: its content, its versions, and what changed between two of them. */
import { html, useEffect, useMemo, useState } from '../lib.js';
import { request } from '../api.js';
import { curl } from '../curl.js';
import { diff } from '../diff.js';
import { ago, full, number } from '../format.js';
import { useKeys } from '../keys.js';
import { kindOf } from '../kinds.js';
import { usePoll } from '../poll.js';
import { go, toDefinitions } from '../router.js';
import { useNow } from '../store.js';
import { Changes } from '../ui/changes.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Button, Choice, Copy, Empty, Id, ProblemBox, Skeleton } from '../ui/parts.js';
import { DefineDialog } from './define.js';
import { TalkDialog } from './talk-new.js';

const POLL_MS = 5000;
const VERSIONS = 200;

/** The content of a version; null while it is read. @returns {[object|null, Error|null]} */
function useVersion(address, newest, version) {
  const [found, setFound] = useState({ version: 0, view: null, error: null });
  useEffect(() => {
    if (!version || version === newest.version) return undefined;
    const controller = new AbortController();
    request(`${address}/versions/${version}`, { signal: controller.signal })
      .then((view) => setFound({ version, view, error: null }))
      .catch((error) => { if (error.name !== 'AbortError') setFound({ version, view: null, error }); });
    return () => controller.abort();
  }, [address, newest.version, version]);
  if (version === newest.version) return [newest, null];
  return found.version === version ? [found.view, found.error] : [null, null];
}

function Versions({ versions, shown, against, onShow, onAgainst }) {
  const now = useNow();
  return html`<section class="card versions"><h2>Versions <span class="faint">${number(versions.length)}</span></h2>
    <ol>${versions.map((one) => html`
      <li key=${one.version} data-version=${one.version}>
        <button type="button" class="link" aria-pressed=${String(one.version === shown)} onClick=${() => onShow(one.version)}>version ${one.version}</button>
        <span class="faint" title=${full(one.created_at)}>${ago(one.created_at, now)}</span>
        ${versions.length > 1 && html`<button type="button" class="link" aria-pressed=${String(one.version === against)} disabled=${one.version === shown}
          onClick=${() => onAgainst(one.version)}>compare</button>`}
      </li>`)}</ol></section>`;
}

function Content({ kind, address, newest, versions }) {
  const [chosen, setChosen] = useState(null);
  const [against, setAgainst] = useState(null);
  const [tab, setTab] = useState('content');
  const shown = chosen ?? newest.version;
  const before = against && against !== shown ? against : versions.find(({ version }) => version < shown)?.version ?? 0;
  const [view, error] = useVersion(address, newest, shown);
  const [other, otherError] = useVersion(address, newest, tab === 'changes' ? before : 0);
  const changes = useMemo(() => (view && other ? diff(other.definition, view.definition) : null), [view, other]);
  const compare = (version) => { setAgainst(version); setTab('changes'); };
  return html`
    <div class="session-body">
      <div class="session-main">
        <section class="card content">
          <div class="details-head">
            <${Choice} label="What to show" value=${tab} onChange=${setTab} options=${[['content', `Version ${shown}`], ['changes', before ? `Changes since ${before}` : 'Changes']]} />
            ${view && html`<${Copy} text=${JSON.stringify(view.definition, null, 2)} label="Copy as JSON" />`}
          </div>
          ${(error ?? otherError) && html`<${ProblemBox} error=${error ?? otherError} />`}
          ${tab === 'content' && (view ? html`<${Json} value=${view.definition} />` : !error && html`<${Skeleton} rows=${3} />`)}
          ${tab === 'changes' && (!before ? html`<p class="faint">${kind.versioned ? 'There is no version before this one.' : 'It is updated in place: what was before is not kept.'}</p>`
    : changes ? html`<${Changes} changes=${changes} none="The two are equal." />` : !otherError && html`<p class="faint">Reading version ${before}…</p>`)}
        </section>
      </div>
      <aside class="session-side" aria-label="About this definition">
        <${Versions} versions=${versions} shown=${shown} against=${tab === 'changes' ? before : null} onShow=${setChosen} onAgainst=${compare} />
        <section class="card facts"><h2>Facts</h2><dl>
          <div><dt>Created</dt><dd>${full(newest.created_at)}</dd></div>
          <div><dt>Changed</dt><dd>${full(newest.updated_at)}</dd></div>
          <div><dt>Content hash</dt><dd><${Id} id=${view?.content_hash ?? newest.content_hash} label="content hash" /></dd></div>
          ${kind.kind === 'agent' && html`<div><dt>Sessions</dt><dd><a href=${`#/sessions?agent_id=${encodeURIComponent(newest.id)}`}>those of this agent</a></dd></div>`}
        </dl></section>
      </aside>
    </div>`;
}

/** @param {{kind: string, id: string}} props */
export function DefinitionPage({ kind: name, id }) {
  const kind = kindOf(name);
  const address = `/api/${kind.path}/${encodeURIComponent(id)}`;
  const [editing, setEditing] = useState(false);
  const [talking, setTalking] = useState(false);
  const newest = usePoll((signal) => request(address, { signal }), POLL_MS, [address]);
  const versions = usePoll((signal) => request(`${address}/versions`, { signal, query: { limit: VERSIONS } }), POLL_MS, [address]);
  const back = () => go(toDefinitions(kind.kind));
  useKeys({ Backspace: back, e: () => setEditing(true) });
  const view = newest.data;
  const title = `${view?.definition.name ?? id} · Stepfleet`;
  useEffect(() => { document.title = title; }, [title]);
  if (!view) {
    const gone = newest.error?.problem?.code === 'definition_not_found';
    return html`<div class="page definition">${!newest.error ? html`<${Skeleton} rows=${5} />`
      : gone ? html`<${Empty} title=${`There is no such ${kind.one}`}><p>${newest.error.problem.detail}</p><${Button} onClick=${back}>Back to the list<//><//>`
        : html`<${ProblemBox} error=${newest.error} retry=${newest.refresh} />`}</div>`;
  }
  const done = () => { setEditing(false); newest.refresh(); versions.refresh(); };
  return html`
    <div class="page definition" data-definition=${id}>
      <div class="page-head">
        <a class="back" href=${toDefinitions(kind.kind)} aria-label="Back to the list" title="Back (Backspace)"><${Icon} name="back" /></a>
        <h1 title=${id}>${view.definition.name}</h1>
        <span class="faint">${kind.one}, version ${number(view.version)}</span>
        <${Id} id=${id} label="id" whole />
        <${Copy} text=${curl(address)} label="Copy a curl command that reads it" icon="terminal" />
        ${kind.kind === 'agent' && html`<${Button} id="talk" onClick=${() => setTalking(true)}>Talk<//>`}
        <${Button} kind="primary" id="edit-definition" onClick=${() => setEditing(true)}>Edit<//>
      </div>
      ${(newest.error ?? versions.error) && html`<${ProblemBox} error=${newest.error ?? versions.error} retry=${done} floating />`}
      <${Content} key=${address} kind=${kind} address=${address} newest=${view} versions=${versions.data?.items ?? []} />
      ${talking && html`<${TalkDialog} agent=${id} onClose=${() => setTalking(false)} />`}
      ${editing && html`<${DefineDialog} kind=${kind} like=${view.definition} onClose=${() => setEditing(false)} onDone=${done} />`}
    </div>`;
}
