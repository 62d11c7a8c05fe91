/** The timeline of one session, newest first: steps, and between them what happened to it. */
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { clock, full, number, shortId } from '../format.js';
import { useKeys } from '../keys.js';
import { useStore } from '../store.js';
import { Icon } from '../ui/icons.js';
import { Button, Command, Empty, ProblemBox, Skeleton } from '../ui/parts.js';
import { openSteps, Step } from './step.js';

/** The start of the timeline is out of sight above this place of the window. */
const TOP_PX = 40;

const LINK_WORDS = { connecting: 'connecting', live: 'live', lost: 'reconnecting', ended: 'ended' };

/** One line for an event that is not a step. */
function eventWords({ type, data }) {
  const d = data ?? {};
  if (type === 'created') return ['created', `created${d.moniker ? ` as ${d.moniker}` : ''}`, ''];
  if (type === 'status') {
    const by = d.by ? ` by ${d.by}` : '';
    return [d.status, `${d.status}${by}`, [d.reason_given, d.error ?? d.reason].filter(Boolean).join(' · ')];
  }
  if (type === 'provider_call') {
    const failed = d.outcome?.ok === false;
    const used = d.usage ? `${number(d.usage.input_tokens)} tokens in, ${number(d.usage.output_tokens)} out` : '';
    const cost = d.cost ? `cost ${d.cost}` : '';
    return [failed ? 'error' : 'action', `asked ${d.provider} ${d.model}`, [used, cost, failed ? 'no answer' : ''].filter(Boolean).join(' · ')];
  }
  const bad = d.outcome && d.outcome !== 'ok';
  return [bad ? 'error' : 'action', `${d.type} ${bad ? d.outcome : 'applied'}`, d.error ?? (d.action_id ? `action ${shortId(d.action_id)}` : '')];
}

function EventLine({ event }) {
  const [kind, what, detail] = eventWords(event);
  return html`
    <li class="event" data-kind=${kind} data-offset=${event.offset}>
      <span class="rail" aria-hidden="true"></span>
      <p><strong>${what}</strong>${detail && html` <span>${detail}</span>`}</p>
      <time datetime=${event.at} title=${full(event.at)}>${clock(event.at)}</time>
    </li>`;
}

/** Whether the reader has scrolled into the past. */
function useScrolled() {
  const [scrolled, setScrolled] = useState(false);
  useEffect(() => {
    const watch = () => setScrolled((document.querySelector('.timeline')?.getBoundingClientRect().top ?? TOP_PX) < TOP_PX);
    watch();
    addEventListener('scroll', watch, { passive: true });
    return () => removeEventListener('scroll', watch);
  }, []);
  return scrolled;
}

function Older({ first, older }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const load = async () => {
    setBusy(true);
    setError(null);
    try { await older(); } catch (failure) { setError(failure); }
    setBusy(false);
  };
  if (first <= 1) return null;
  return html`<div class="more">
    ${error && html`<${ProblemBox} error=${error} />`}
    <${Button} busy=${busy} onClick=${load} id="older">Show older<//> <span class="faint">${number(first - 1)} before this</span></div>`;
}

/** Whether the timeline takes new events in now: not while someone reads older or opened steps. */
export function useFollowing() {
  const scrolled = useScrolled();
  const [wanted, setWanted] = useState(true);
  const opened = useStore(openSteps);
  return { following: wanted && !scrolled && opened === 0, wanted, setWanted };
}

/** @param {{id: string, timeline: object, follow: object, status: string}} props */
export function Timeline({ id, timeline, follow, status }) {
  const { events, held, gap, loaded, link, error, older, release } = timeline;
  const { wanted, setWanted } = follow;
  const section = useRef(null);
  const rows = useMemo(() => {
    let before = null;
    const paired = events.map((event) => {
      if (event.type !== 'step') return { event };
      const row = { event, before: before?.iteration === event.step.iteration - 1 ? before : null };
      before = event.step;
      return row;
    });
    return paired.reverse();
  }, [events]);
  useKeys({ f: () => setWanted(!wanted) });
  const jump = () => { section.current.scrollIntoView(); release(); };
  return html`
    <section ref=${section} class="timeline" aria-label="Timeline">
      <header>
        <h2>Timeline</h2>
        <span class="link-state" data-link=${link}><i></i>${LINK_WORDS[link]}</span>
        <span class="push"></span>
        ${link !== 'ended' && html`<button type="button" class="button quiet" id="follow" aria-pressed=${String(wanted)} title="Follow (f)" onClick=${() => setWanted(!wanted)}>
          <${Icon} name="follow" /><span>${wanted ? 'Following' : 'Follow'}</span></button>`}
      </header>
      ${error && html`<${ProblemBox} error=${error} />`}
      ${held > 0 && html`<button type="button" class="waiting" onClick=${jump}>${number(held)}${gap ? '+' : ''} new</button>`}
      ${!loaded && !error ? html`<${Skeleton} rows=${5} kind="step" />`
    : !rows.length && !error ? html`<${Empty} title="Nothing has happened yet">
        <p>${status === 'starting' ? 'The create action is accepted; the first step appears here by itself.' : 'The first step appears here by itself.'} To follow it in a terminal:</p>
        <${Command} text=${`stepfleet tail ${id}`} /><//>`
      : html`<ol>${rows.map(({ event, before }) => (event.type === 'step'
        ? html`<${Step} key=${event.offset} step=${event.step} offset=${event.offset} before=${before} />`
        : html`<${EventLine} key=${event.offset} event=${event} />`))}</ol>`}
      ${rows.length > 0 && html`<${Older} first=${events[0].offset} older=${older} />`}
    </section>`;
}
