/** Addresses of the views: `#/sessions?status=running`, `#/sessions/<id>`, `#/conversations/<id>`, `#/approvals`, `#/definitions/<kind>/<id>`, `#/fleet`. */
import { createStore } from './store.js';

/** @typedef {{view: 'sessions'|'session'|'conversations'|'conversation'|'approvals'|'definitions'|'definition'|'fleet', kind: string|null, id: string|null, query: URLSearchParams}} Route */

const decoded = (text) => {
  try { return decodeURIComponent(text); } catch { return text; /* the server will say that it is no id */ }
};

/** @returns {Route} */
function parse() {
  const [path, query = ''] = location.hash.replace(/^#/, '').split('?');
  const [, view = '', first = '', second = ''] = path.split('/');
  const given = new URLSearchParams(query);
  const route = (name, kind = null, id = null) => ({ view: name, kind, id, query: given });
  if (view === 'fleet') return route('fleet');
  if (view === 'approvals') return route('approvals');
  if (view === 'conversations' && first) return route('conversation', null, decoded(first));
  if (view === 'conversations') return route('conversations');
  if (view === 'definitions' && second) return route('definition', decoded(first), decoded(second));
  if (view === 'definitions') return route('definitions', decoded(first));
  if (view === 'sessions' && first) return route('session', null, decoded(first));
  return route('sessions');
}

export const route = createStore(parse());
addEventListener('hashchange', () => {
  const next = parse();
  const moved = next.view !== route.get().view || next.kind !== route.get().kind || next.id !== route.get().id;
  route.set(next);
  if (moved) scrollTo(0, 0);
});

export const toSession = (id) => `#/sessions/${encodeURIComponent(id)}`;

export const toConversation = (id) => `#/conversations/${encodeURIComponent(id)}`;

export const toDefinitions = (kind) => `#/definitions/${encodeURIComponent(kind)}`;
export const toDefinition = (kind, id) => `${toDefinitions(kind)}/${encodeURIComponent(id)}`;

/** Addresses of the lists as they were last filtered, for the way back. */
export const lastList = createStore('#/sessions');
export const lastTalks = createStore('#/conversations');

/** Goes to a view. */
export const go = (hash) => { location.hash = hash; };

/** Replaces the query of a list; typing in a filter makes no history entries. */
function replaceQuery(query, base, last) {
  const tail = query.toString();
  const hash = tail ? `${base}?${tail}` : base;
  history.replaceState(null, '', hash);
  last.set(hash);
  route.set(parse());
}

export const setQuery = (query) => replaceQuery(query, '#/sessions', lastList);
export const setTalksQuery = (query) => replaceQuery(query, '#/conversations', lastTalks);

/** Reads the address again after it was changed without an event. */
export const reread = () => route.set(parse());
