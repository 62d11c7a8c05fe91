/** The filters of the list. They live in the address, so a view can be bookmarked and shared. */
import { html, useEffect, useRef, useState } from '../lib.js';
import { STATUSES } from '../format.js';
import { MONIKERS } from '../monikers.js';
import { setQuery } from '../router.js';
import { Icon } from '../ui/icons.js';

const TYPING_MS = 250;

/**
 * @param {URLSearchParams} query
 * @returns {{status: string[], agent_id?: string, moniker?: string, q?: string}}
 */
export function filterOf(query) {
  const one = (key) => query.get(key) || undefined;
  return {
    status: (query.get('status') ?? '').split(',').filter((status) => STATUSES.includes(status)),
    agent_id: one('agent_id'),
    moniker: one('moniker'),
    q: one('q'),
  };
}

/** A text field that changes the address when typing rests. */
function TextFilter({ id, name, label, placeholder, query, icon }) {
  const given = query.get(name) ?? '';
  const [text, setText] = useState(given);
  const timer = useRef(0);
  useEffect(() => setText(given), [given]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value) => {
    const next = new URLSearchParams(location.hash.split('?')[1] ?? '');
    if (value.trim()) next.set(name, value.trim());
    else next.delete(name);
    setQuery(next);
  };
  const input = (event) => {
    const { value } = event.target;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(value), TYPING_MS);
  };
  const keys = (event) => {
    if (event.key === 'Enter') { clearTimeout(timer.current); apply(text); }
    if (event.key === 'Escape') { clearTimeout(timer.current); setText(''); apply(''); event.target.blur(); }
  };
  return html`
    <div class=${`filter-text ${icon ? 'with-icon' : ''}`}>
      ${icon && html`<${Icon} name=${icon} />`}
      <input id=${id} type="search" aria-label=${label} placeholder=${placeholder} value=${text} spellcheck="false"
        autocomplete="off" autocapitalize="off" onInput=${input} onKeyDown=${keys} />
    </div>`;
}

export function Filters({ query }) {
  const { status, moniker } = filterOf(query);
  const change = (name, value) => {
    const next = new URLSearchParams(query);
    if (value) next.set(name, value);
    else next.delete(name);
    setQuery(next);
  };
  const toggle = (one) => change('status', (status.includes(one) ? status.filter((s) => s !== one) : [...status, one]).join(','));
  const names = MONIKERS.map(({ name }) => name);
  if (moniker && !names.includes(moniker)) names.push(moniker);
  return html`
    <div class="filters" role="search">
      <${TextFilter} id="search" name="q" label="Search by beginning of id or agent" placeholder="Search id or agent" query=${query} icon="search" />
      <div class="chips" role="group" aria-label="Status">
        ${STATUSES.map((one) => html`
          <button key=${one} type="button" class="chip" data-status=${one} aria-pressed=${String(status.includes(one))} onClick=${() => toggle(one)}>${one}</button>`)}
      </div>
      <select aria-label="Moniker" value=${moniker ?? ''} class=${moniker ? 'set' : ''} onChange=${(event) => change('moniker', event.target.value)}>
        <option value="">All monikers</option>
        ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      <${TextFilter} id="agent" name="agent_id" label="Agent, exactly" placeholder="Agent" query=${query} />
      ${query.toString() && html`<button type="button" class="link" onClick=${() => setQuery(new URLSearchParams())}>Clear</button>`}
    </div>`;
}
