/** One session: how it stands, what it did, and the controls. */
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../lib.js';
import { request } from '../api.js';
import { curl } from '../curl.js';
import { causeText, clock, full, isFinal, number, withClock } from '../format.js';
import { useKeys } from '../keys.js';
import { usePoll } from '../poll.js';
import { go, lastList, toSession } from '../router.js';
import { useNow } from '../store.js';
import { Icon } from '../ui/icons.js';
import { Json } from '../ui/json.js';
import { Button, Copy, Empty, Id, ProblemBox, Skeleton, Status } from '../ui/parts.js';
import { LatencyPlot } from '../ui/plot.js';
import { Controls } from './control.js';
import { Timeline, useFollowing } from './timeline.js';
import { useTimeline } from './timeline-data.js';

const POLL_MS = 2500;
const RESULT_CUT = 1200;

function Head({ detail, onSent }) {
  const now = useNow();
  const { session } = detail;
  return html`
    <div class="session-head">
      <div class="who">
        <a class="back" href=${lastList.get()} aria-label="Back to the sessions" title="Back (Backspace)"><${Icon} name="back" /></a>
        <h1 title=${session.agent_id}>${session.agent_id}</h1>
        <${Status} status=${session.status} />
        <span class="cause" id="cause">${causeText(session, now)}</span>
      </div>
      <div class="what">
        <span><b>${session.moniker}</b></span>
        <span>step <b>${session.iteration === null ? '–' : `#${number(session.iteration)}`}</b></span>
        <${Id} id=${session.session_id} label="session id" whole />
        <${Copy} text=${curl(`/api/sessions/${encodeURIComponent(session.session_id)}/events`, { stream: true })} label="Copy a curl command that follows this session" icon="terminal" />
      </div>
      <${Controls} detail=${detail} onSent=${onSent} />
    </div>`;
}

function Why({ why }) {
  const now = useNow();
  if (!why) return html`<section class="card"><h2>Why</h2><${Skeleton} rows=${2} /></section>`;
  return html`
    <section class="card why"><h2>Why</h2>
      <p class="why-summary">${withClock(why.summary)}</p>
      <ol>${why.chain.map((link, i) => html`<li key=${i}>
        ${link.session_id ? html`<a href=${toSession(link.session_id)} title=${link.session_id}><b>${link.what}</b></a>` : html`<b>${link.what}</b>`} ${withClock(link.detail)}
        ${link.until && Date.parse(link.until) > now && html` <span class="faint">until ${clock(link.until)}</span>`}</li>`)}</ol>
      ${why.remedy && html`<p class="remedy">${why.remedy}</p>`}
    </section>`;
}

function Facts({ detail }) {
  const { session, spec, pending_actions: pending } = detail;
  const rows = [
    ['Next token', html`<code>${session.next_step_token}</code>`],
    ['Waiting actions', number(pending)],
    ['Created', full(session.created_at)],
    ['Shard', session.shard],
    ['Interval', spec.loop_interval_ms ? `${number(spec.loop_interval_ms)} ms` : 'none'],
    ['When done', spec.stop_on_done ? 'ends' : 'goes on'],
    ...(spec.max_steps ? [['At most', `${number(spec.max_steps)} steps`]] : []),
    ...(spec.max_runtime_ms ? [['At most', `${number(spec.max_runtime_ms / 1000)} s`]] : []),
    ['Agent', html`<a href=${`#/sessions?agent_id=${encodeURIComponent(session.agent_id)}`}>its other sessions</a>`],
  ];
  return html`<section class="card facts"><h2>Facts</h2>
    <dl>${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${spec.task && html`<h3>Task</h3><p class="task">${spec.task}</p>`}
    ${Object.keys(spec.config ?? {}).length > 0 && html`<h3>Config</h3><${Json} value=${spec.config} />`}
  </section>`;
}

function State({ state }) {
  return html`<section class="card state"><h2>State <${Copy} text=${JSON.stringify(state, null, 2)} label="Copy the state as JSON" /></h2><${Json} value=${state} /></section>`;
}

/** What a finished session came to. */
function Result({ result }) {
  const [whole, setWhole] = useState(false);
  if (result === null || result === undefined) return null;
  const said = typeof result === 'string' ? result : null;
  const long = said && said.length > RESULT_CUT && !whole;
  return html`<section class="card result"><h2>Result <${Copy} text=${said ?? JSON.stringify(result, null, 2)} label="Copy the result" /></h2>
    ${said === null ? html`<${Json} value=${result} />` : html`<p>${long ? `${said.slice(0, RESULT_CUT)}…` : said}</p>`}
    ${long && html`<button type="button" class="link" onClick=${() => setWhole(true)}>Show all</button>`}</section>`;
}

/** The detail with what the stream knows better than the last poll. */
function freshest(detail, steps) {
  const last = steps.at(-1);
  if (!detail || !last || last.iteration <= (detail.session.iteration ?? -1)) return detail;
  return {
    ...detail,
    state: last.state,
    session: { ...detail.session, iteration: last.iteration, step_token: last.step_token, next_step_token: last.next_step_token, updated_at: last.created_at },
  };
}

const base = (id) => `/api/sessions/${encodeURIComponent(id)}`;

export function SessionPage({ id }) {
  const detail = usePoll((signal) => request(base(id), { signal }), POLL_MS, [id]);
  const why = usePoll((signal) => request(`${base(id)}/why`, { signal }), POLL_MS, [id]);
  const soon = useRef(0);
  /** Reads the head again, once for a burst of events. */
  const refresh = useCallback(() => {
    clearTimeout(soon.current);
    soon.current = setTimeout(() => { detail.refresh(); why.refresh(); }, 60);
  }, [id]);
  useEffect(() => () => clearTimeout(soon.current), []);
  const follow = useFollowing();
  const timeline = useTimeline(id, follow.following, refresh);
  const steps = useMemo(() => timeline.events.filter(({ type }) => type === 'step').map(({ step }) => step), [timeline.events]);
  useKeys({ Backspace: () => go(lastList.get()) });
  const fresh = freshest(detail.data, steps);
  const name = fresh ? `${fresh.session.agent_id} · ${fresh.session.status} · Stepfleet` : 'Session · Stepfleet';
  useEffect(() => { document.title = name; }, [name]);

  if (!fresh) {
    if (!detail.error) return html`<div class="page session"><${Skeleton} rows=${2} /><${Skeleton} rows=${5} kind="step" /></div>`;
    const gone = detail.error.problem?.code === 'session_not_found';
    return html`<div class="page session">${gone
      ? html`<${Empty} title="There is no such session"><p>${detail.error.problem.detail}</p><${Button} onClick=${() => go(lastList.get())}>Back to the sessions<//><//>`
      : html`<${ProblemBox} error=${detail.error} retry=${detail.refresh} />`}</div>`;
  }
  return html`
    <div class="page session" data-session=${id} data-ended=${isFinal(fresh.session.status) ? '' : undefined}>
      <${Head} detail=${fresh} onSent=${refresh} />
      ${detail.error && html`<${ProblemBox} error=${detail.error} retry=${detail.refresh} floating />`}
      <div class="session-body">
        <div class="session-main">
          ${isFinal(fresh.session.status) && html`<${Result} result=${fresh.result} />`}
          <${Timeline} id=${id} timeline=${timeline} follow=${follow} status=${fresh.session.status} />
        </div>
        <aside class="session-side" aria-label="About this session">
          <${Why} why=${why.data} />
          <${LatencyPlot} steps=${steps} />
          <${State} state=${fresh.state} />
          <${Facts} detail=${fresh} />
        </aside>
      </div>
    </div>`;
}
