/** Small observable values, and the hooks that read them. */
import { useEffect, useState } from './lib.js';

/**
 * @template T
 * @param {T} initial
 */
export function createStore(initial) {
  let value = initial;
  const listeners = new Set();
  return {
    get: () => value,
    /** @param {T} next */
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(next);
    },
    /** @param {(value: T) => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Reads a store and renders again when it changes. */
export function useStore(store) {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    setValue(() => store.get());
    return store.subscribe((next) => setValue(() => next));
  }, [store]);
  return value;
}

/** Reads from web storage, which may be blocked. */
export function remembered(storage, key) {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

/** Writes to web storage, or removes the key when the value is null. */
export function remember(storage, key, value) {
  try {
    if (value === null) storage().removeItem(key);
    else storage().setItem(key, value);
  } catch {
    // Nothing is lost but the memory of this choice.
  }
}

export const local = () => window.localStorage;
export const perTab = () => window.sessionStorage;

const clock = createStore(Date.now());
setInterval(() => { if (!document.hidden) clock.set(Date.now()); }, 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) clock.set(Date.now()); });

/** The time in milliseconds, renewed every second while the page is visible. */
export const useNow = () => useStore(clock);
