/** Small parts used by every view. */
import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { shortId } from '../format.js';
import { toast } from './toasts.js';
import { Icon } from './icons.js';

/** @param {{status: string}} props */
export const Status = ({ status }) => html`<span class="status" data-status=${status}>${status}</span>`;

/**
 * @param {{icon?: string, kind?: 'primary'|'danger'|'quiet', busy?: boolean, onClick?: Function}} props
 */
export const Button = ({ icon, kind, busy, children, class: extra = '', ...rest }) => html`
  <button type="button" class=${`button ${kind ?? ''} ${extra}`} aria-busy=${busy ? 'true' : undefined} ...${rest}
    disabled=${busy || rest.disabled}>
    ${icon && html`<${Icon} name=${icon} />`}${children && html`<span>${children}</span>`}
  </button>`;

/** Copies text; falls back to a selection where the clipboard API is not available (plain http). */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'offscreen';
    // A modal dialog makes the rest of the page inert, so the field goes inside it.
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** A button that copies, and says so. @param {{text: string, label: string, icon?: string, words?: string}} props */
export function Copy({ text, label, icon = 'copy', words }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(false), 1400);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    if (await copyText(text)) setDone(true);
    else toast('error', 'The browser did not let the console copy. Select the text and copy it.');
  };
  return html`
    <button type="button" class=${`copy ${words ? 'button quiet' : ''} ${done ? 'done' : ''}`} onClick=${copy}
      title=${label} aria-label=${words ? undefined : label}>
      <${Icon} name=${done ? 'check' : icon} />${words && html`<span>${words}</span>`}
    </button>`;
}

/** An id, shortened where space is short, whole in the title and on the clipboard. */
export const Id = ({ id, label, whole = false }) => html`
  <span class="id"><code title=${id}>${whole ? id : shortId(id)}</code><${Copy} text=${id} label=${`Copy ${label}`} /></span>`;

/** A command to copy. */
export const Command = ({ text, label = 'Copy the command' }) => html`
  <div class="command"><pre tabindex="0">${text}</pre><${Copy} text=${text} label=${label} /></div>`;

/**
 * Shows a problem document: what happened, field by field, and what to do. `floating`: over the
 * page, so that what is still shown stays where it is.
 */
export function ProblemBox({ error, retry, floating }) {
  const problem = error?.problem ?? { title: 'The console could not show this', detail: String(error?.message ?? error), code: 'console' };
  return html`
    <div class=${`problem ${floating ? 'floating' : ''}`} role="alert">
      <${Icon} name="warn" />
      <div>
        <strong>${problem.title}</strong>
        ${problem.errors?.length
          ? html`<ul>${problem.errors.map(({ field, message }) => html`<li><code>${field}</code> ${message}</li>`)}</ul>`
          : html`<p>${problem.detail}</p>`}
        <p class="faint">${problem.code}${problem.action_id ? ` · action ${problem.action_id}` : ''}</p>
      </div>
      ${retry && html`<${Button} kind="quiet" onClick=${retry}>Try again<//>`}
    </div>`;
}

/** What to do when there is nothing to show. */
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** Grey bars in the place of what is loading. */
export const Skeleton = ({ rows = 6, kind = 'row' }) => html`
  <div class="skeletons" role="status" aria-label="Loading">
    ${Array.from({ length: rows }, (_, i) => html`<div key=${i} class=${`skeleton ${kind}`}></div>`)}
  </div>`;

/** A labelled form field; errors of the server appear under it. */
export const Field = ({ label, hint, error, children, id }) => html`
  <div class=${`field ${error ? 'wrong' : ''}`}>
    <label for=${id}>${label}</label>${children}
    ${error ? html`<p class="field-error" role="alert">${error}</p>` : hint && html`<p class="hint">${hint}</p>`}
  </div>`;

/** A choice of few, as joined buttons. @param {{value: string, options: [string, string][], onChange: Function, label: string}} props */
export const Choice = ({ value, options, onChange, label }) => html`
  <div class="choice" role="group" aria-label=${label}>
    ${options.map(([key, text]) => html`
      <button key=${key} type="button" aria-pressed=${String(key === value)} onClick=${() => onChange(key)}>${text}</button>`)}
  </div>`;

/** A modal dialog; Escape and a click beside it close it. */
export function Dialog({ title, onClose, children, actions, wide = false }) {
  const ref = useRef(null);
  // Before it is painted: a key pressed on sight of it must not go to the page behind.
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    // The first field, not the close button; on a touch screen that would open the keyboard.
    const first = matchMedia('(pointer: coarse)').matches ? ref.current.querySelector('h2')
      : ref.current.querySelector('.dialog-body :is(input, textarea, select), footer .primary') ?? ref.current.querySelector('h2');
    first.focus();
    return () => before?.focus?.({ preventScroll: true });
  }, []);
  const beside = useRef(false);
  return html`
    <dialog ref=${ref} class=${wide ? 'wide' : ''} aria-label=${title}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onMouseDown=${(event) => { beside.current = event.target === ref.current; }}
      onClick=${(event) => { if (beside.current && event.target === ref.current) onClose(); }}>
      <div class="dialog-in">
        <div class="dialog-head"><h2 tabindex="-1">${title}</h2>
          <button type="button" class="button quiet icon-only" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></div>
        <div class="dialog-body">${children}</div>
        ${actions && html`<footer>${actions}</footer>`}
      </div>
    </dialog>`;
}
