/** The transcript of one conversation: its end in sight while it grows, its past when scrolled to. */
import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { stateOf } from '../transcript.js';
import { Icon } from '../ui/icons.js';
import { Button, ProblemBox } from '../ui/parts.js';
import { LineItem, Said, SummaryItem, TurnItem } from './said.js';

/** The end is in sight if less than this is below the window. */
const END_PX = 60;
/** Older records are read when less than this is above it. */
const TOP_PX = 500;

/** Scrolling: follows the end unless the reader has gone up, and stays where it is while the past is put above. */
function useScroll(items, load) {
  const box = useRef(null);
  const follows = useRef(true);
  const last = useRef(0);
  const before = useRef(null);
  const [away, setAway] = useState(false);
  const reader = useRef(load);
  reader.current = load;
  const first = items[0]?.key;

  // Looked at before each change of the place: the browser tells of a scroll a frame later, and what
  // grows in between would take a reader who has just gone up back to the end.
  const look = () => {
    const el = box.current;
    if (!el) return; // The page was left: observers may tell once more.
    const below = el.scrollHeight - el.scrollTop - el.clientHeight;
    if (el.scrollTop < last.current && below > 1) follows.current = false;
    else if (el.scrollTop > last.current && below < END_PX) follows.current = true;
    last.current = el.scrollTop;
  };
  const goToEnd = () => {
    if (!box.current) return;
    box.current.scrollTop = box.current.scrollHeight;
    last.current = box.current.scrollTop;
  };

  useEffect(() => {
    const el = box.current;
    const watch = () => {
      look();
      setAway(!follows.current);
      if (el.scrollTop < TOP_PX && el.scrollHeight > el.clientHeight) reader.current();
    };
    const size = new ResizeObserver(() => {
      look();
      if (follows.current) goToEnd();
    });
    el.addEventListener('scroll', watch, { passive: true });
    size.observe(el);
    size.observe(el.firstElementChild);
    return () => { el.removeEventListener('scroll', watch); size.disconnect(); };
  }, []);

  useLayoutEffect(() => {
    const el = box.current;
    const was = before.current;
    look();
    // Browsers that hold the place by themselves have moved it already.
    if (was && was.first !== first && !follows.current && el.scrollTop === was.top) el.scrollTop += el.scrollHeight - was.height;
    else if (follows.current) goToEnd();
    last.current = el.scrollTop;
    before.current = { first, top: el.scrollTop, height: el.scrollHeight };
  }, [items]);

  const toEnd = () => { follows.current = true; goToEnd(); setAway(false); };
  return { box, away, toEnd };
}

function Older({ talk, busy, error, onLoad }) {
  if (!talk.olderLeft) return null;
  return html`<div class="more">${error && html`<${ProblemBox} error=${error} />`}
    <${Button} kind="quiet" busy=${busy} onClick=${onLoad} id="older">Show older<//></div>`;
}

/**
 * @param {{talk: object, agents: object[], chosen: string|null, actions: object, children: unknown}} props
 *   `children`: what is shown while nothing was said
 */
export function Transcript({ talk, agents, chosen, actions, children }) {
  const { items } = talk;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const load = async () => {
    if (busy || !talk.olderLeft) return;
    setBusy(true);
    setError(null);
    try { await talk.older(); } catch (failure) { setError(failure); }
    setBusy(false);
  };
  const { box, away, toEnd } = useScroll(items, load);
  const asks = new Map(talk.asks.map((one) => [one.operation_id.replace(/\.ask$/, ''), one]));
  const active = items.filter((item) => item.kind === 'turn' && stateOf(item) === 'active');
  const empty = !items.some(({ kind }) => kind === 'said' || kind === 'turn');
  useEffect(() => { if (talk.sent) toEnd(); }, [talk.sent]);
  return html`
    <div class="transcript-frame">
      <div class="transcript" ref=${box} role="log" aria-label="Transcript" tabindex="0">
        <div class="transcript-in">
          ${!empty && html`<${Older} talk=${talk} busy=${busy} error=${error} onLoad=${load} />`}
          ${empty && children}
          ${items.map((item) => {
    switch (item.kind) {
      case 'said': return html`<${Said} key=${item.key} item=${item} agents=${agents} />`;
      case 'turn': return html`<${TurnItem} key=${item.key} block=${item} agents=${agents} asks=${asks} chosen=${chosen === item.id}
        beside=${active.length - 1} ...${actions} />`;
      case 'summary': return html`<${SummaryItem} key=${item.key} item=${item} />`;
      default: return !empty && html`<${LineItem} key=${item.key} item=${item} agents=${agents} />`;
    }
  })}
        </div>
      </div>
      ${away && html`<button type="button" class="to-end" onClick=${toEnd} aria-label="To the end"><${Icon} name="follow" /></button>`}
    </div>`;
}
