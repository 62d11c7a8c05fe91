/** Addresses of the views: `#/sessions?status=running`, `#/sessions/<id>`, `#/fleet`. */
import { createStore } from './store.js';

/** @typedef {{view: 'sessions'|'session'|'fleet', id: string|null, query: URLSearchParams}} Route */

/** @returns {Route} */
function parse() {
  const [path, query = ''] = location.hash.replace(/^#/, '').split('?');
  const [, view = '', id = ''] = path.split('/');
  const given = new URLSearchParams(query);
  if (view === 'fleet') return { view: 'fleet', id: null, query: given };
  if (view === 'sessions' && id) {
    let name = id;
    try { name = decodeURIComponent(id); } catch { /* the server will say that it is no id */ }
    return { view: 'session', id: name, query: given };
  }
  return { view: 'sessions', id: null, query: given };
}

export const route = createStore(parse());
addEventListener('hashchange', () => {
  const next = parse();
  const moved = next.view !== route.get().view || next.id !== route.get().id;
  route.set(next);
  if (moved) scrollTo(0, 0);
});

export const toSession = (id) => `#/sessions/${encodeURIComponent(id)}`;

/** Address of the list as it was last filtered, for the way back. */
export const lastList = createStore('#/sessions');

/** Goes to a view. */
export const go = (hash) => { location.hash = hash; };

/** Replaces the query of the list; typing in a filter makes no history entries. */
export function setQuery(query) {
  const tail = query.toString();
  const hash = tail ? `#/sessions?${tail}` : '#/sessions';
  history.replaceState(null, '', hash);
  lastList.set(hash);
  route.set(parse());
}

/** Reads the address again after it was changed without an event. */
export const reread = () => route.set(parse());
