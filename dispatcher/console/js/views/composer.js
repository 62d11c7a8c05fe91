/** Where a message is written: to whom, and what becomes of it at an agent that works. */
import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { nameOf } from '../names.js';
import { local, remember, remembered } from '../store.js';
import { Icon } from '../ui/icons.js';
import { Choice, ProblemBox } from '../ui/parts.js';

const HEIGHT_MAX = 220;
const KEY = 'stepfleet.draft.';

/** What becomes of a message at an agent with active turns; docs/streams.md says the same. */
const BUSY = [
  ['enqueue', 'Beside', 'A turn of its own, beside those that are active.'],
  ['steer', 'Steer', 'Guidance for the active turns, seen at their next step.'],
  ['interrupt', 'Interrupt', 'The same, and the running call of the model is cancelled; what it said is kept.'],
  ['reject', 'Only if free', 'Refused while an agent is at work; nothing is written.'],
];

const OUTCOMES = { delivered: 'has no turns and takes it as an input', steered: 'takes it as guidance at the next step', interrupted: 'was interrupted and takes it as guidance', refused: 'does not take it' };

/** What did not simply start a turn, agent by agent. */
function tellOutcome({ responders }, agents) {
  if (!responders.length) return 'No agent answers in this conversation: nobody is a responder.';
  const odd = responders.filter(({ outcome }) => outcome !== 'turn');
  return odd.map((one) => (one.detail ? `${nameOf(agents, one.agent_id)}: ${one.detail}` : `${nameOf(agents, one.agent_id)} ${OUTCOMES[one.outcome] ?? one.outcome}`)).join(' · ');
}

/** Grows with its text. */
function useHeight(text) {
  const area = useRef(null);
  useLayoutEffect(() => {
    const el = area.current;
    el.style.height = 'auto';
    el.style.height = `${Math.min(HEIGHT_MAX, el.scrollHeight + 2)}px`;
  }, [text]);
  return area;
}

function To({ seats, to, setTo, agents }) {
  if (seats.length < 2) return null;
  const toggle = (id) => setTo(to.includes(id) ? to.filter((one) => one !== id) : [...to, id]);
  return html`
    <div class="to" role="group" aria-label="To">
      <span class="hint">To</span>
      <button type="button" class="chip plain" aria-pressed=${String(!to.length)} onClick=${() => setTo([])}>everyone</button>
      ${seats.map(({ agent_id: id }) => html`
        <button key=${id} type="button" class="chip plain" aria-pressed=${String(to.includes(id))} onClick=${() => toggle(id)}>${nameOf(agents, id)}</button>`)}
    </div>`;
}

/**
 * @param {{id: string, seats: object[], agents: object[], atWork: Set<string>, closed: string|null,
 *   target: {busy?: string, to?: string[], reply?: object}, setTarget: Function, onSay: Function}} props
 *   `atWork`: agents with active turns; `target`: what a button of the transcript chose
 */
export function Composer({ id, seats, agents, atWork, closed, target, setTarget, onSay }) {
  const [text, setText] = useState(() => remembered(local, KEY + id) ?? '');
  const [error, setError] = useState(null);
  const [told, setTold] = useState('');
  const area = useHeight(text);
  const { to = [], reply = null } = target;
  const reached = (to.length ? to : seats.map(({ agent_id: agent }) => agent)).filter((agent) => atWork.has(agent));
  const busy = reached.length ? target.busy ?? 'enqueue' : 'enqueue';
  useEffect(() => { if (!matchMedia('(pointer: coarse)').matches) area.current?.focus(); }, []);
  useEffect(() => { if (target.busy || target.reply) area.current?.focus(); }, [target]);
  useEffect(() => {
    const timer = setTimeout(() => remember(local, KEY + id, text || null), 300);
    return () => clearTimeout(timer);
  }, [text]);

  const send = async () => {
    const said = text.trim();
    if (!said || closed) return;
    const body = {
      text: said,
      ...(to.length ? { to } : {}),
      ...(reply ? { reply_to_message_id: reply.message_id } : {}),
      ...(reached.length && target.busy ? { busy } : {}),
    };
    setText('');
    remember(local, KEY + id, null);
    setError(null);
    setTold('');
    try {
      setTold(tellOutcome(await onSay(body), agents));
      setTarget({ to });
    } catch (failure) {
      setError(failure);
      setText((now) => now || said);
    }
  };
  const keys = (event) => {
    if (event.key === 'Escape') { setTarget({ to }); return; }
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  if (closed) return html`<div class="composer closed"><p class="hint">${closed}</p></div>`;
  return html`
    <div class="composer">
      ${error && html`<${ProblemBox} error=${error} />`}
      ${told && html`<p class="outcome" role="status">${told}</p>`}
      ${reply && html`<p class="replying"><${Icon} name="reply" /><span>Reply to ${nameOf(agents, reply.agent_id)}: ${(reply.text ?? '').slice(0, 120)}</span>
        <button type="button" class="copy" aria-label="Do not reply to it" onClick=${() => setTarget({ ...target, reply: null })}><${Icon} name="close" /></button></p>`}
      <div class="composer-box">
        <textarea id="say" ref=${area} rows="1" aria-label="Message" value=${text} placeholder=${busy === 'steer' || busy === 'interrupt' ? 'Guidance for the running turn' : 'Message'}
          onInput=${(event) => setText(event.target.value)} onKeyDown=${keys}></textarea>
        <button type="button" id="send" class="send" disabled=${!text.trim()} onClick=${send} title="Send (Enter)" aria-label="Send"><${Icon} name="send" /></button>
      </div>
      <div class="composer-foot">
        <${To} seats=${seats} to=${to} setTo=${(next) => setTarget({ ...target, to: next })} agents=${agents} />
        ${reached.length > 0 ? html`
          <div class="busy"><${Choice} label="While they work" value=${busy} onChange=${(next) => setTarget({ ...target, busy: next })} options=${BUSY.map(([key, words]) => [key, words])} />
            <span class="hint">${BUSY.find(([key]) => key === busy)[2]}</span></div>`
    : html`<span class="hint keys-hint"><kbd>Enter</kbd> sends, <kbd>Shift</kbd> <kbd>Enter</kbd> a new line</span>`}
      </div>
    </div>`;
}
