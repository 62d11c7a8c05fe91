/** Icons, drawn on a 16 × 16 grid with the current colour. */
import { html } from '../lib.js';

const PATHS = {
  play: 'M5 3.5v9l7-4.5z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  bolt: 'M9 1.8 3.8 9H8l-1 5.2L12.2 7H8z',
  input: 'M13 3v4.5a2 2 0 0 1-2 2H3.5M6.5 6.3l-3.2 3.2 3.2 3.2',
  destroy: 'M4.5 4.5h7v7h-7z',
  plus: 'M8 3v10M3 8h10',
  copy: 'M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z',
  check: 'm3 8.5 3.2 3.2L13 4.8',
  close: 'm4 4 8 8M12 4l-8 8',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.4 10.4 14 14',
  chevron: 'm6 3.5 4.5 4.5L6 12.5',
  back: 'M10 3.5 5.5 8l4.5 4.5',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M3 13l1.1-1.1M11.9 4.1 13 3',
  moon: 'M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6Z',
  auto: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  help: 'M5.8 6.2a2.2 2.2 0 1 1 3.3 1.9c-.8.4-1.1.9-1.1 1.6M8 12.2v.1',
  leave: 'M6.5 3H3v10h3.5M6.5 8h7M10.8 5.2 13.5 8l-2.7 2.8',
  terminal: 'm3 4.5 3.5 3.5L3 11.5M8 12h5',
  warn: 'M8 2.2 14.3 13H1.7zM8 6.5v3M8 11.2v.1',
  send: 'M8 13V3M3.8 7.2 8 3l4.2 4.2',
  panel: 'M2.5 3.5h11v9h-11zM9.8 3.5v9',
  reply: 'M6.5 4 3 7.5 6.5 11M3.2 7.5H10a3 3 0 0 1 3 3V12',
  tool: 'M9.8 5.6a3 3 0 0 1 3.9-3.1l-1.9 1.9.3 1.4 1.4.3 1.9-1.9a3 3 0 0 1-4 3.7l-5.2 5.2a1.4 1.4 0 0 1-2-2z',
  shield: 'M8 2 13 4v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4z',
  steer: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12ZM10.6 5.4 9 9 5.4 10.6 7 7z',
  thought: 'M5.5 12.5v-2A4.5 4.5 0 1 1 10.6 10.4v2.1zM6 14.2h4',
  user: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8ZM3 13.5c.6-2.3 2.6-3.5 5-3.5s4.4 1.2 5 3.5',
  follow: 'M8 13V3M4.2 6.8 8 3l3.8 3.8',
};

/** @param {{name: keyof typeof PATHS}} props */
export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" fill="none"
    stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
    <path d=${PATHS[name]} fill=${name === 'play' ? 'currentColor' : 'none'} /></svg>`;

/** The mark of the product: steps. */
export const Mark = () => html`
  <svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
    <rect width="24" height="24" rx="6" /><path d="M5 17h4v-4h4V9h4V5" /><circle cx="19" cy="5" r="1.6" /></svg>`;
