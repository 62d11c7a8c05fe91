/** One conversation: the others beside it, the transcript, where one writes, and the inspector. */
import { html, useEffect, useMemo, useState } from '../lib.js';
import { request } from '../api.js';
import { curl } from '../curl.js';
import { brief } from '../format.js';
import { useKeys } from '../keys.js';
import { nameOf, useAgents } from '../names.js';
import { go, lastTalks } from '../router.js';
import { local, remember, remembered } from '../store.js';
import { phaseWords, stateOf } from '../transcript.js';
import { Icon } from '../ui/icons.js';
import { Button, Copy, Empty, ProblemBox, Skeleton, Status } from '../ui/parts.js';
import { Composer } from './composer.js';
import { pathOf, useConversation } from './conversation-data.js';
import { Inspector } from './inspector.js';
import { attempt, CompleteDialog, RenameDialog } from './talk-change.js';
import { JoinDialog } from './talk-new.js';
import { ModelHint } from './talk-empty.js';
import { TalksRail } from './talks-rail.js';
import { Transcript } from './transcript.js';

const LINK_WORDS = { connecting: 'connecting', live: 'live', lost: 'reconnecting', ended: 'ended' };
const SIDE = 'stepfleet.inspector';

function Head({ id, talk, agents, side, onSide, onOpen }) {
  const { detail, status, link } = talk;
  const names = detail.participants.filter(({ type, left_at: left }) => type === 'agent' && !left).map(({ agent_id: agent }) => nameOf(agents, agent));
  const open = status === 'active' || status === 'waiting';
  return html`
    <header class="talk-head">
      <a class="back" href=${lastTalks.get()} aria-label="Back to the conversations" title="Back (Backspace)"><${Icon} name="back" /></a>
      <div class="talk-name"><h1 title=${id}>${detail.conversation.title || names.join(', ') || id}</h1>
        <p class="faint"><span class="link-state" data-link=${link}><i></i>${LINK_WORDS[link]}</span><span class="talk-with">${names.length ? `with ${names.join(', ')}` : 'no agents'}</span></p></div>
      <${Status} status=${status} />
      <div class="talk-tools">
        ${open && html`<${Button} kind="quiet" onClick=${() => onOpen('rename')}>Rename<//><${Button} kind="quiet" id="complete" onClick=${() => onOpen('complete')}>Complete<//>`}
        <${Copy} text=${curl(`${pathOf(id)}/events`, { stream: true })} label="Copy a curl command that follows this conversation" icon="terminal" />
      </div>
      <button type="button" class="button quiet icon-only" id="inspect" aria-pressed=${String(side)} title="Inspector (i)" aria-label="Inspector" onClick=${onSide}><${Icon} name="panel" /></button>
    </header>`;
}

/** What is going on, if several turns are at once: each with its way to it. */
function AtOnce({ active, items, agents }) {
  if (active.length < 2) return null;
  const asked = ({ input }) => items.find((item) => item.kind === 'said' && item.key === input)?.message.text ?? '';
  const to = (id) => document.querySelector(`[data-turn="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'center' });
  return html`<div class="at-once" role="status"><strong>${active.length} turns at once</strong>${active.map((item) => html`
    <button key=${item.id} type="button" class="chip plain" data-phase=${item.turn?.phase} onClick=${() => to(item.id)} title=${phaseWords(item.turn)}><b>${nameOf(agents, item.agent)}</b> ${brief(asked(item), 30)}</button>`)}</div>`;
}

const closedWords = (status) => ({
  completed: 'This conversation is completed: nothing more can be said in it.',
  failed: 'This conversation has failed: nothing more can be said in it.',
}[status] ?? null);

function Inside({ id, talk, agents }) {
  const [side, setSide] = useState(() => remembered(local, SIDE) !== 'closed' && innerWidth >= 1180);
  const [tab, setTab] = useState('all');
  const [chosen, setChosen] = useState(null);
  const [open, setOpen] = useState(null);
  const [target, setTarget] = useState({});
  const { detail, items } = talk;
  const closed = closedWords(talk.status);
  const seats = detail.participants.filter(({ type, role, left_at: left }) => type === 'agent' && role === 'responder' && !left);
  const active = useMemo(() => items.filter((item) => item.kind === 'turn' && stateOf(item) === 'active'), [items]);
  const atWork = new Set(active.map(({ agent }) => agent));
  const showSide = (on) => { setSide(on); remember(local, SIDE, on ? null : 'closed'); };
  const inspect = (turn) => { setChosen(turn); setTab('turn'); showSide(true); };
  const actions = {
    onInspect: inspect,
    onAnswered: talk.readAsks,
    onReply: closed ? null : (message) => setTarget({ ...target, reply: message }),
    onSteer: (block) => setTarget({ busy: 'steer', to: seats.length > 1 ? [block.agent] : [] }),
    onCancel: (block) => attempt(() => request(`/api/turns/${encodeURIComponent(block.id)}/cancel`, { method: 'POST' }), 'The turn is being cancelled'),
  };
  const remove = (one) => attempt(() => request(`${pathOf(id)}/participants/${encodeURIComponent(one.participant_id)}`, { method: 'DELETE' }).then(talk.readDetail), `${nameOf(agents, one.agent_id)} takes no more messages`);
  useKeys({
    i: () => showSide(!side),
    c: () => document.getElementById('say')?.focus(),
    Backspace: () => go(lastTalks.get()),
  });
  const close = () => setOpen(null);
  return html`
    <div class="talk" data-side=${side ? '' : undefined}>
      <section class="talk-main">
        <${Head} id=${id} talk=${talk} agents=${agents} side=${side} onSide=${() => showSide(!side)} onOpen=${setOpen} />
        <${Transcript} talk=${talk} agents=${agents} chosen=${side && tab === 'turn' ? chosen : null} actions=${actions}>
          <${Empty} title=${seats.length ? `Say something to ${seats.map(({ agent_id: agent }) => nameOf(agents, agent)).join(' and ')}` : 'Nobody answers here yet'}>
            <p>${seats.length ? 'The answer appears as it is said; tools, questions and costs with it. Nothing is lost if you close this page.' : 'Add an agent: it gets a session in this conversation and answers what is said.'}</p>
            ${!seats.length && html`<${Button} kind="primary" icon="plus" onClick=${() => setOpen('join')}>Add an agent<//>`}
            <${ModelHint} /><//>
        <//>
        <${AtOnce} active=${active} items=${items} agents=${agents} />
        <${Composer} id=${id} seats=${seats} agents=${agents} atWork=${atWork} closed=${closed} target=${target} setTarget=${setTarget} onSay=${talk.say} />
      </section>
      ${side && html`<${Inspector} talk=${talk} agents=${agents} tab=${tab} setTab=${setTab} chosen=${chosen} onInspect=${inspect}
        onRemove=${closed ? null : remove} onAdd=${closed ? null : () => setOpen('join')} onClose=${() => showSide(false)} />`}
      ${open === 'rename' && html`<${RenameDialog} id=${id} title=${detail.conversation.title} onClose=${close} onDone=${talk.readDetail} />`}
      ${open === 'complete' && html`<${CompleteDialog} id=${id} onClose=${close} onDone=${talk.readDetail} />`}
      ${open === 'join' && html`<${JoinDialog} id=${id} taken=${seats.map(({ agent_id: agent }) => agent)} onClose=${close} onDone=${talk.readDetail} />`}
    </div>`;
}

export function ConversationPage({ id }) {
  const talk = useConversation(id);
  const agents = useAgents();
  const title = talk.detail?.conversation.title || talk.detail?.conversation.conversation_id;
  const asks = talk.asks.length ? `(${talk.asks.length}) ` : '';
  useEffect(() => { document.title = `${asks}${title ?? 'Conversation'} · Stepfleet`; }, [asks, title]);
  const gone = talk.error?.problem?.code === 'conversation_not_found';
  return html`
    <div class="talk-page" data-conversation=${id} data-link=${talk.link}>
      <${TalksRail} chosen=${id} />
      ${talk.detail && talk.loaded ? html`<${Inside} id=${id} talk=${talk} agents=${agents} />`
    : html`<div class="page">${!talk.error ? html`<${Skeleton} rows=${2} /><${Skeleton} rows=${3} kind="step" />`
      : gone ? html`<${Empty} title="There is no such conversation"><p>${talk.error.message}</p><${Button} onClick=${() => go(lastTalks.get())}>Back to the conversations<//><//>`
        : html`<${ProblemBox} error=${talk.error} />`}</div>`}
    </div>`;
}
