/** Reading again and again: quiet while the page is hidden, old data stays while it fails. */
import { useCallback, useEffect, useRef, useState } from './lib.js';

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} read
 * @param {number} everyMs
 * @param {unknown[]} inputs a change reads at once; the old data stays until then
 * @returns {{data: T|null, error: Error|null, loading: boolean, refresh: () => void}}
 */
export function usePoll(read, everyMs, inputs) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const reader = useRef(read);
  reader.current = read;
  const kick = useRef(() => {});

  useEffect(() => {
    let stopped = false;
    let timer = 0;
    let flight = null;
    const run = async () => {
      clearTimeout(timer);
      flight?.abort();
      const mine = new AbortController();
      flight = mine;
      try {
        const data = await reader.current(mine.signal);
        if (!stopped && flight === mine) setState({ data, error: null, loading: false });
      } catch (error) {
        if (stopped || flight !== mine) return;
        setState((old) => ({ data: old.data, error, loading: false }));
      }
      if (!stopped && flight === mine && !document.hidden) timer = setTimeout(run, everyMs);
    };
    const wake = () => { if (!document.hidden) run(); };
    kick.current = run;
    setState((old) => ({ ...old, error: null, loading: true }));
    run();
    document.addEventListener('visibilitychange', wake);
    return () => {
      stopped = true;
      clearTimeout(timer);
      flight?.abort();
      document.removeEventListener('visibilitychange', wake);
    };
  }, [everyMs, ...inputs]);

  return { ...state, refresh: useCallback(() => kick.current(), []) };
}
