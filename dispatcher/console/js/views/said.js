/** The items of a transcript: what people said, turns of agents with all their parts, and what happened. */
import { html, useState } from '../lib.js';
import { clock, cost, duration, full, tokens } from '../format.js';
import { hueOf, nameOf } from '../names.js';
import { useNow } from '../store.js';
import { phaseWords, stateOf } from '../transcript.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Markdown } from '../ui/markdown.js';
import { Button, Copy } from '../ui/parts.js';
import { Ask, isBudget } from './approve.js';
import { Call } from './call.js';

const EVENTS = {
  conversation_started: 'The conversation began', conversation_ended: 'The conversation was completed',
  participant_joined: 'joined', participant_left: 'left', 'context_assembly.failed': 'The context could not be put together',
  'memory_extraction.failed': 'Memories could not be extracted',
};

const Time = ({ at }) => html`<time datetime=${at} title=${full(at)}>${clock(at).slice(0, 5)}</time>`;

export const Face = ({ id, name }) => html`<span class="face" data-hue=${hueOf(id)} aria-hidden="true">${(name || '?').slice(0, 1).toUpperCase()}</span>`;

/** Content that is no text: shown as it is. */
const Extra = ({ message }) => html`
  ${message.content && html`<${Json} value=${message.content} />`}${message.data && html`<${Json} value=${message.data} />`}`;

export function Said({ item, agents }) {
  const { message, steered, sending } = item;
  // An agent without turns says what its steps say; one that asks another is told by its own name.
  const agent = message.sender_type === 'agent' ? nameOf(agents, message.agent_id) : null;
  return html`
    <article class="said-item" data-message=${message.message_id} data-sender=${message.sender_type} data-sending=${sending ? '' : undefined}>
      <div class="bubble"><${Markdown} text=${message.text ?? ''} /><${Extra} message=${message} /></div>
      <footer>${sending ? 'sending…' : html`${steered && html`<span class="as-guidance"><${Icon} name="steer" />guidance</span>`}
        ${message.to?.length > 0 && html`<span>to ${message.to.map((id) => nameOf(agents, id)).join(', ')}</span>`}
        <span>${agent ?? message.name ?? message.user_id ?? ''}</span><${Time} at=${item.at} />`}</footer>
    </article>`;
}

function Thoughts({ text, live }) {
  const [open, setOpen] = useState(false);
  return html`
    <div class="thoughts" data-live=${live ? '' : undefined}>
      <button type="button" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}><${Icon} name="thought" />${live ? 'Thinking' : 'Thoughts'}<${Icon} name="chevron" /></button>
      ${(open || live) && html`<p>${live && !open ? text.slice(-220) : text}</p>`}
    </div>`;
}

function Draft({ draft }) {
  const parts = draft.parts.filter(Boolean);
  const thoughts = parts.filter(({ kind }) => kind === 'reasoning').map(({ text }) => text).join('');
  const said = parts.filter(({ kind }) => kind === 'text').map(({ text }) => text).join('');
  const calls = parts.filter(({ kind }) => kind === 'tool_call');
  return html`
    <div class="draft" data-draft=${draft.id}>
      ${draft.again && html`<p class="hint again">The reply broke off; the model is asked once more.</p>`}
      ${thoughts && html`<${Thoughts} text=${thoughts} live=${!said && !calls.length} />`}
      ${draft.late && html`<p class="hint">… you came in the middle; the whole follows.</p>`}
      ${said && html`<${Markdown} text=${said} />`}
      ${calls.map((call, i) => html`<div key=${i} class="call" data-state="running"><div class="call-head"><span class="call-mark"></span>
        <code class="call-name">${call.name ?? 'a tool'}</code><span class="call-brief">${call.text}</span><span class="call-state">is being written</span></div></div>`)}
      <span class="caret" aria-hidden="true"></span>
    </div>`;
}

function Part({ part, block, asks, active, who, onAnswered, onReply }) {
  switch (part.kind) {
    case 'message': return html`
      <div class="told" data-message=${part.message.message_id}>
        ${part.thoughts && html`<${Thoughts} text=${part.thoughts} />`}
        <${Markdown} text=${part.message.text ?? ''} /><${Extra} message=${part.message} />
        <div class="told-tools">
          <${Copy} text=${part.message.text ?? ''} label="Copy this message" />
          ${onReply && html`<button type="button" class="copy" title="Reply to this message" aria-label="Reply to this message" onClick=${() => onReply(part.message, block)}><${Icon} name="reply" /></button>`}
        </div>
      </div>`;
    case 'call': return html`<${Call} part=${part} ask=${asks.get(part.operation)} active=${active} who=${who} onAnswered=${onAnswered} />`;
    case 'thoughts': return html`<${Thoughts} text=${part.text} />`;
    case 'draft': return html`<${Draft} draft=${part.draft} />`;
    case 'note': return html`<p class="turn-note"><${Icon} name="steer" /><span><b>${part.note.from === 'guidance' ? 'Guidance' : 'Note'}${part.note.by ? ` of ${part.note.by}` : ''}</b> ${part.note.text}</span></p>`;
    default: return html`<p class="turn-event">${EVENTS[part.name] ?? part.name.replaceAll(/[._]/g, ' ')}</p>`;
  }
}

/** How long it took, or takes; what it used. */
function Meter({ block, state }) {
  const now = useNow();
  const { turn } = block;
  const from = Date.parse(turn?.created_at ?? block.startedAt ?? '');
  const to = state === 'active' ? now : Date.parse(turn?.completed_at ?? block.endedAt ?? '');
  const { input_tokens: input = 0, output_tokens: output = 0, cost: sum = 0 } = turn?.usage ?? {};
  return html`
    ${to >= from && html`<span>${duration(to - from)}</span>`}
    ${input + output > 0 && html`<span title=${`${input} tokens read, ${output} written`}>${tokens(input + output)} tokens</span>`}
    ${sum > 0 && html`<span title="Cost by the prices of the model profile">${cost(sum)}</span>`}`;
}

const STATE_WORDS = { failed: 'failed', cancelled: 'cancelled' };

/** @param {object} props `chosen`: it is in the inspector; `beside`: how many others are active */
export function TurnItem({ block, agents, asks, chosen, beside, onInspect, onCancel, onSteer, onReply, onAnswered }) {
  const state = stateOf(block);
  const active = state === 'active';
  const who = nameOf(agents, block.agent);
  const writes = block.parts.some(({ kind }) => kind === 'draft');
  return html`
    <article class="turn-item" data-turn=${block.id} data-state=${state} data-beside=${active && beside > 0 ? '' : undefined} aria-busy=${active ? 'true' : undefined}>
      <${Face} id=${block.agent} name=${who} />
      <header>
        <strong>${who}</strong>
        ${active && html`<span class="phase" data-phase=${block.turn?.phase}><i></i>${writes ? 'writes' : phaseWords(block.turn)}</span>`}
        ${STATE_WORDS[state] && html`<span class="turn-state">${STATE_WORDS[state]}</span>`}
        <button type="button" class="meter" aria-pressed=${String(chosen)} title="Look into this turn" onClick=${() => onInspect(block.id)}><${Meter} block=${block} state=${state} /><${Icon} name="panel" /></button>
        ${active && onCancel && html`<span class="turn-tools">
          <${Button} kind="quiet" icon="steer" class="steer" onClick=${() => onSteer(block)} title="Give guidance to this turn">Steer<//>
          <${Button} kind="quiet" icon="destroy" class="cancel" onClick=${() => onCancel(block)} title="Cancel this turn">Cancel<//></span>`}
      </header>
      <div class="parts">
        ${block.parts.map((part) => html`<${Part} key=${part.key} part=${part} block=${block} asks=${asks} active=${active} who=${who} onAnswered=${onAnswered} onReply=${onReply} />`)}
        ${active && [...asks.values()].filter((ask) => ask.turn_id === block.id && isBudget(ask)).map((ask) => html`
          <div key=${ask.operation_id} class="call" data-state="asks"><${Ask} operation=${ask} who=${who} onDone=${onAnswered} /></div>`)}
        ${active && !block.parts.length && html`<p class="dots" aria-label="at work"><i></i><i></i><i></i></p>`}
        ${(state === 'failed' || state === 'cancelled') && html`<${Broken} block=${block} state=${state} />`}
      </div>
    </article>`;
}

function Broken({ block, state }) {
  const error = block.error ?? block.turn?.error;
  if (state === 'cancelled') return html`<p class="turn-event">The turn was cancelled. What was said stays.</p>`;
  return html`<div class="call-error"><${Icon} name="warn" /><div><p>${error?.message ?? 'The turn failed.'}</p>
    <p class="faint">${error?.code ?? ''}${error?.provider ? ` · ${error.provider}` : ''}</p></div></div>`;
}

/** Whom an event is about; empty if about nobody. */
const whom = (who, agents) => (who ? `${who.type === 'agent' ? nameOf(agents, who.agent_id) : who.user_id} ` : '');

export const LineItem = ({ item, agents }) => html`
  <p class="line-item" data-event=${item.name}><span>${whom(item.data?.participant, agents)}${EVENTS[item.name] ?? item.name.replaceAll(/[._]/g, ' ')}${item.data?.by ? ` · ${item.data.by}` : ''}</span> <${Time} at=${item.at} /></p>`;

export const SummaryItem = ({ item }) => html`
  <details class="summary-item"><summary>What is above is out of the model’s context; a summary stands for it</summary><${Markdown} text=${item.summary.text ?? ''} /></details>`;
