/** Keyboard shortcuts: one listener, views register what they answer to. */
import { useEffect, useRef } from './lib.js';

/** @type {Set<{current: Record<string, (event: KeyboardEvent) => void>}>} */
const maps = new Set();

const typing = (target) => target instanceof HTMLElement
  && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  && !(target instanceof HTMLInputElement && ['checkbox', 'radio', 'button'].includes(target.type));

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (typing(event.target) || document.querySelector('dialog[open]')) return;
  for (const map of [...maps].reverse()) {
    const handler = map.current[event.key];
    if (handler) {
      event.preventDefault();
      handler(event);
      return;
    }
  }
});

/** Answers to keys while the component is shown. @param {Record<string, (event: KeyboardEvent) => void>} map */
export function useKeys(map) {
  const current = useRef(map);
  current.current = map;
  useEffect(() => {
    maps.add(current);
    return () => maps.delete(current);
  }, []);
}
