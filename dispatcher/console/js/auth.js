/**
 * The token: taken from the link (`#token=…`), kept for this tab, and shared with tabs of the same
 * origin that ask for it, so that a session opened in a new tab needs no second login.
 */
import { createStore, perTab, remember, remembered } from './store.js';

const KEY = 'stepfleet.token';

/** @type {{get(): string|null, set(token: string|null): void, subscribe(f: Function): Function}} */
export const token = createStore(remembered(perTab, KEY));
token.subscribe((value) => remember(perTab, KEY, value));

/** Set when the server refused the token; shown on the login form. */
export const refused = createStore(null);

/** Takes the token out of the address, before anything else reads the address. */
export function takeFromAddress() {
  const found = /^#token=([^&]+)(?:&(.*))?$/.exec(location.hash);
  if (!found) return;
  let given = found[1];
  try {
    given = decodeURIComponent(given);
  } catch {
    // Not percent-encoded: take it as it stands.
  }
  history.replaceState(null, '', `${location.pathname}${location.search}#/${found[2] ?? ''}`);
  refused.set(null);
  token.set(given);
}

/** Asks the other tabs of this origin for their token, and answers when they ask. */
export function shareWithTabs() {
  if (typeof BroadcastChannel === 'undefined') return;
  const channel = new BroadcastChannel('stepfleet.token');
  channel.onmessage = ({ data }) => {
    if (data === 'ask' && token.get()) channel.postMessage({ token: token.get() });
    else if (typeof data?.token === 'string' && !token.get() && !refused.get()) token.set(data.token);
  };
  if (!token.get()) channel.postMessage('ask');
}

/** Forgets the token of this tab. @param {string|null} why */
export function logOut(why = null) {
  refused.set(why);
  token.set(null);
}
