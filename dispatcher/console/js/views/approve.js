/** What an agent asks people for: the question, the exact arguments, and yes or no. Used within a turn and in the inbox. */
import { html, useState } from '../lib.js';
import { actor, request } from '../api.js';
import { until } from '../format.js';
import { useNow } from '../store.js';
import { readWaiting } from '../waiting.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Button, ProblemBox } from '../ui/parts.js';
import { toast } from '../ui/toasts.js';

/** Whether the turns go on over a budget is asked. @param {object} operation */
export const isBudget = (operation) => operation.request.target_type === 'budget';
/** The answer may be more than a yes: it is the work itself. */
const isQuestion = (operation) => operation.request.kind === 'human';

/** JSON, or else a text. */
const meant = (text) => {
  try { return JSON.parse(text) ?? text; } catch { return text; }
};

/** The answer counts for the arguments that were shown: their hash goes with it. */
const answerOf = (operation, reason, answer) => ({
  arguments_hash: operation.approval.arguments_hash,
  ...(answer.trim() ? { answer: meant(answer.trim()) } : {}),
  ...(reason.trim() ? { reason: reason.trim() } : {}),
  ...(actor.get() ? { actor: actor.get() } : {}),
});

/** Deny asks for a reason first: the agent is told it. */
function Answers({ operation, onDone }) {
  const [reason, setReason] = useState(null);
  const [answer, setAnswer] = useState('');
  const [busy, setBusy] = useState(null);
  const [error, setError] = useState(null);
  const send = async (verdict) => {
    setBusy(verdict);
    setError(null);
    try {
      await request(`/api/operations/${encodeURIComponent(operation.operation_id)}/${verdict}`, { method: 'POST', body: answerOf(operation, reason ?? '', verdict === 'approve' ? answer : '') });
      toast('ok', verdict === 'approve' ? `${operation.tool} approved` : `${operation.tool} denied`);
    } catch (failure) {
      setError(failure);
    }
    setBusy(null);
    readWaiting();
    onDone();
  };
  const keys = (event) => {
    if (event.key === 'Enter' && !event.isComposing) send('deny');
    if (event.key === 'Escape') setReason(null);
  };
  return html`
    ${error && html`<${ProblemBox} error=${error} />`}
    ${isQuestion(operation) && reason === null && html`<textarea class="answer" rows="3" aria-label="Your answer" placeholder="Your answer, with a yes: a text, or JSON (optional)"
      value=${answer} onInput=${(event) => setAnswer(event.target.value)}></textarea>`}
    <div class="answers">
      ${reason === null ? html`
        <${Button} kind="primary" class="approve" icon="check" busy=${busy === 'approve'} onClick=${() => send('approve')}>Approve<//>
        <${Button} class="deny" icon="close" onClick=${() => setReason('')}>Deny…<//>`
    : html`
        <input class="reason" aria-label="Reason" placeholder="Reason, told to the agent (optional)" maxlength="500" value=${reason}
          ref=${(input) => { if (input && reason === '') input.focus(); }} onKeyDown=${keys} onInput=${(event) => setReason(event.target.value)} />
        <${Button} kind="danger" class="deny-now" busy=${busy === 'deny'} onClick=${() => send('deny')}>Deny<//>
        <${Button} kind="quiet" onClick=${() => setReason(null)}>Back<//>`}
    </div>`;
}

const Wish = ({ operation, who }) => (isBudget(operation) ? html`<strong>${who}</strong> has met a bound, and asks to go on:`
  : isQuestion(operation) ? html`<strong>${who}</strong> asks you, by <code>${operation.tool}</code>:`
    : html`<strong>${who}</strong> asks to call <code>${operation.tool}</code> with exactly this:`);

/** @param {{operation: object, who: string, onDone: () => void}} props */
export function Ask({ operation, who, onDone }) {
  const now = useNow();
  const left = operation.until && until(operation.until, now);
  const fallback = operation.approval.default_approve ? 'approved' : 'denied';
  return html`
    <div class="ask" data-operation=${operation.operation_id}>
      <p><${Icon} name="shield" /><span><${Wish} operation=${operation} who=${who} /></span></p>
      ${operation.question && html`<p class="ask-question">${operation.question}</p>`}
      <div class="ask-arguments"><${Json} value=${operation.request.input ?? {}} all /></div>
      <${Answers} operation=${operation} onDone=${onDone} />
      <p class="hint">${left ? `Without an answer it is ${fallback} in ${left}.` : operation.until ? `Its time is over: it is ${fallback} now.` : ''}
        ${operation.effect_class === 'at_most_once' && !isBudget(operation) && !isQuestion(operation) ? ' It is run at most once.' : ''}</p>
    </div>`;
}
