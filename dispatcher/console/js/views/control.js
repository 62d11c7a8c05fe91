/** What an operator can do to one session: buttons, keys and dialogs. */
import { html, useState } from '../lib.js';
import { act, actionBody } from '../api.js';
import { curl } from '../curl.js';
import { isFinal, shortId } from '../format.js';
import { useKeys } from '../keys.js';
import { monikerOf, takesInput } from '../monikers.js';
import { JsonEditor, readJson } from '../ui/json.js';
import { Button, Choice, Copy, Dialog, Field, ProblemBox } from '../ui/parts.js';
import { toast } from '../ui/toasts.js';
import { CreateDialog } from './create.js';

/** Sends one action and tells how it went; keeps the dialog open when it was refused. */
function useAct(onSent) {
  const [busy, setBusy] = useState(null);
  const [error, setError] = useState(null);
  const send = async (body, said) => {
    setBusy(body.type);
    setError(null);
    try {
      await act(body);
      toast('ok', said);
      onSent();
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setBusy(null);
    }
  };
  return { send, busy, error, clear: () => setError(null) };
}

const curlOf = (body) => curl('/api/actions', { method: 'POST', body });

function Send({ body, words, kind = 'primary', wrong, busy, onSend, onClose }) {
  return html`<${Copy} text=${curlOf(body)} label="Copy as curl" icon="terminal" words="curl" /><span class="push"></span>
    <${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind=${kind} class="confirm" busy=${busy} disabled=${wrong} onClick=${onSend}>${words}<//>`;
}

function InterruptDialog({ session, onClose, onSent }) {
  const hint = monikerOf(session.moniker)?.guidance ?? {};
  const [text, setText] = useState(Object.keys(hint).length ? JSON.stringify(hint, null, 2) : '');
  const [mode, setMode] = useState('next');
  const { send, busy, error } = useAct(onSent);
  // Words that are not JSON are guidance, too: they go as {"text": …}.
  const json = readJson(text, { object: true });
  const plain = json.error && !/^\s*[[{"]/.test(text);
  const guidance = plain ? { text: text.trim() } : json.value;
  const wrong = !plain && json.error;
  const body = actionBody('interrupt', { session_id: session.session_id }, { guidance, ...(mode === 'now' ? { mode: 'now' } : {}) });
  const submit = async () => { if (await send(body, 'Guidance accepted')) onClose(); };
  return html`
    <${Dialog} title="Interrupt" onClose=${onClose} actions=${html`<${Send} body=${body} words="Give guidance"
      wrong=${Boolean(wrong) || guidance === undefined} busy=${busy} onSend=${submit} onClose=${onClose} />`}>
      <p>The guidance is seen by exactly one step. ${session.status === 'paused' ? 'The session is paused: it waits until the first step after the resume.' : ''}</p>
      <${Field} id="guidance" label="Guidance" hint=${plain ? 'Sent as {"text": "…"}.' : 'A JSON object, or plain words.'} error=${wrong}>
        <${JsonEditor} id="guidance" rows=${5} value=${text} error=${wrong} onInput=${setText} /><//>
      <${Choice} label="When" value=${mode} onChange=${setMode} options=${[['next', 'With the next step'], ['now', 'Now']]} />
      <p class="hint">${mode === 'now' ? 'Cancels the model call that is running and repeats the step with the guidance.' : 'The running step is finished first.'}</p>
      ${error && html`<${ProblemBox} error=${error} />`}
    <//>`;
}

function InputDialog({ session, onClose, onSent }) {
  const [text, setText] = useState('');
  const { send, busy, error } = useAct(onSent);
  const looksJson = /^\s*\{/.test(text);
  const json = looksJson ? readJson(text, { object: true }) : { value: { text } };
  const body = actionBody('input', { session_id: session.session_id }, json.value ?? {});
  const submit = async () => { if (await send(body, 'Input accepted')) onClose(); };
  const keys = (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && text.trim() && !json.error) submit(); };
  return html`
    <${Dialog} title="Send input" onClose=${onClose} actions=${html`<${Send} body=${body} words="Send"
      wrong=${!text.trim() || Boolean(json.error)} busy=${busy} onSend=${submit} onClose=${onClose} />`}>
      <${Field} id="input-text" label="Input" hint="Plain text, or a JSON object for the whole payload." error=${json.error}>
        <textarea id="input-text" rows="5" value=${text} onKeyDown=${keys} onInput=${(event) => setText(event.target.value)}></textarea><//>
      ${error && html`<${ProblemBox} error=${error} />`}
    <//>`;
}

function DestroyDialog({ session, onClose, onSent }) {
  const [reason, setReason] = useState('');
  const { send, busy, error } = useAct(onSent);
  const body = actionBody('destroy', { session_id: session.session_id }, reason.trim() ? { reason: reason.trim() } : {});
  const submit = async () => { if (await send(body, 'Destroy accepted')) onClose(); };
  return html`
    <${Dialog} title="Destroy this session?" onClose=${onClose} actions=${html`<${Send} body=${body} words="Destroy" kind="danger"
      busy=${busy} onSend=${submit} onClose=${onClose} />`}>
      <p><strong>${session.agent_id}</strong> <code>${shortId(session.session_id)}</code> ends within a few seconds and cannot be resumed. Its history stays.</p>
      <${Field} id="reason" label="Reason" hint="Optional; shown to others."><input id="reason" maxlength="200" value=${reason}
        onInput=${(event) => setReason(event.target.value)} /><//>
      ${error && html`<${ProblemBox} error=${error} />`}
    <//>`;
}

/** @param {{detail: object, onSent: () => void}} props */
export function Controls({ detail, onSent }) {
  const { session } = detail;
  const [open, setOpen] = useState(null);
  const { send, busy, error, clear } = useAct(onSent);
  const final = isFinal(session.status);
  const ending = session.status === 'stopping';
  const resumable = session.status === 'paused' || session.status === 'error';
  const target = { session_id: session.session_id };
  const toggle = () => {
    if (final || ending) return;
    clear();
    if (resumable) send(actionBody('resume', target, {}), 'Resume accepted');
    else send(actionBody('pause', target, {}), 'Pause accepted');
  };
  const canInput = !final && !ending && takesInput(session.moniker);
  useKeys({
    p: toggle,
    i: () => { if (!final && !ending) setOpen('interrupt'); },
    u: () => { if (canInput) setOpen('input'); },
  });
  const close = () => setOpen(null);
  const dialog = { session, onClose: close, onSent };
  return html`
    <div class="controls" role="toolbar" aria-label="Control">
      ${final ? html`<${Button} icon="play" onClick=${() => setOpen('again')}>Run again<//>` : html`
        <${Button} kind=${resumable ? 'primary' : ''} icon=${resumable ? 'play' : 'pause'} id="toggle" busy=${busy === 'pause' || busy === 'resume'}
          disabled=${ending} onClick=${toggle} title=${`${resumable ? 'Resume' : 'Pause'} (p)`}>${resumable ? 'Resume' : 'Pause'}<//>
        <${Button} icon="bolt" id="interrupt" disabled=${ending} onClick=${() => setOpen('interrupt')} title="Interrupt with guidance (i)">Interrupt<//>
        ${canInput && html`<${Button} icon="input" id="input" onClick=${() => setOpen('input')} title="Send input (u)">Input<//>`}
        <${Button} kind="danger-quiet" icon="destroy" id="destroy" disabled=${ending} onClick=${() => setOpen('destroy')}>Destroy<//>`}
    </div>
    ${error && html`<${ProblemBox} error=${error} retry=${clear} />`}
    ${open === 'interrupt' && html`<${InterruptDialog} ...${dialog} />`}
    ${open === 'input' && html`<${InputDialog} ...${dialog} />`}
    ${open === 'destroy' && html`<${DestroyDialog} ...${dialog} />`}
    ${open === 'again' && html`<${CreateDialog} like=${detail} onClose=${close} />`}`;
}
