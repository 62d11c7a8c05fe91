/** The theme: the system's, or the one chosen with the button in the top bar. */
import { createStore, local, remember, remembered } from './store.js';

const KEY = 'stepfleet.theme';
const ORDER = ['auto', 'light', 'dark'];

/** @type {{get(): 'auto'|'light'|'dark', set(value: string): void, subscribe(f: Function): Function}} */
export const theme = createStore(ORDER.includes(remembered(local, KEY)) ? remembered(local, KEY) : 'auto');

theme.subscribe((value) => {
  remember(local, KEY, value === 'auto' ? null : value);
  if (value === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
});

/** Auto, light, dark, and around again. */
export const nextTheme = () => theme.set(ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length]);
