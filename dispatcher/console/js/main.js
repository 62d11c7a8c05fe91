/** Starts the console: token, frame, and the view that the address names. */
import { html, render, useEffect, useRef, useState } from './lib.js';
import { online, request } from './api.js';
import { logOut, shareWithTabs, takeFromAddress, token } from './auth.js';
import { useKeys } from './keys.js';
import { usePoll } from './poll.js';
import { go, lastList, lastTalks, reread, route } from './router.js';
import { useStore } from './store.js';
import { nextTheme, theme } from './theme-choice.js';
import { useWaiting, waiting } from './waiting.js';
import { Icon, Mark } from './ui/icons.js';
import { Toasts } from './ui/toasts.js';
import { Approvals } from './views/approvals.js';
import { ConversationPage } from './views/conversation.js';
import { Conversations } from './views/conversations.js';
import { DefinitionPage } from './views/definition.js';
import { Definitions } from './views/definitions.js';
import { Fleet } from './views/fleet.js';
import { Help } from './views/help.js';
import { Login } from './views/login.js';
import { SessionPage } from './views/session.js';
import { Sessions } from './views/sessions.js';

const HEALTH_MS = 5000;
/** Of the views that show no one thing; those name it themselves. */
const TITLES = { sessions: 'Sessions', conversations: 'Conversations', approvals: 'Approvals', definitions: 'Definitions', fleet: 'Fleet' };
const THEME_WORDS = { auto: 'as the system', light: 'light', dark: 'dark' };

/** Health in two words, linked to the fleet. */
function HealthChip({ health, error }) {
  const up = useStore(online);
  const lost = !up || (error && error.problem?.code === 'unreachable');
  const [kind, text] = lost ? ['lost', 'no answer'] : !health ? ['wait', '…'] : health.status === 'ok' ? ['ok', 'healthy'] : ['bad', health.status];
  return html`<a class="health" href="#/fleet" data-health=${kind} title="Health of the fleet"><i></i><span>${text}</span></a>`;
}

function TopBar({ view, health, onHelp }) {
  const chosen = useStore(theme);
  const list = useStore(lastList);
  const talks = useStore(lastTalks);
  const asks = useStore(waiting);
  const nav = useRef(null);
  // On a phone the bar is scrolled: where one is must be in sight.
  useEffect(() => { nav.current.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' }); }, [view]);
  const current = (...views) => (views.includes(view) ? 'page' : undefined);
  return html`
    <header class="top">
      <a class="brand" href=${list} aria-label="Stepfleet, sessions"><${Mark} /><span>Stepfleet</span></a>
      <nav aria-label="Views" ref=${nav}>
        <a href=${list} aria-current=${current('sessions', 'session')}>Sessions</a>
        <a href=${talks} aria-current=${current('conversations', 'conversation')}>Conversations</a>
        ${(asks > 0 || view === 'approvals') && html`<a href="#/approvals" aria-current=${current('approvals')}>Approvals<b class="badge" data-none=${asks ? undefined : ''}>${asks}</b></a>`}
        <a href="#/definitions" aria-current=${current('definitions', 'definition')}>Definitions</a>
        <a href="#/fleet" aria-current=${current('fleet')}>Fleet</a>
      </nav>
      <${HealthChip} health=${health.data} error=${health.error} />
      <div class="tools">
        <button type="button" class="button quiet icon-only" id="theme" onClick=${nextTheme}
          title=${`Theme: ${THEME_WORDS[chosen]}`} aria-label=${`Theme: ${THEME_WORDS[chosen]}. Change it`}>
          <${Icon} name=${{ auto: 'auto', light: 'sun', dark: 'moon' }[chosen]} /></button>
        <button type="button" class="button quiet icon-only" title="Help and shortcuts (?)" aria-label="Help and shortcuts" onClick=${onHelp}>
          <${Icon} name="help" /></button>
        <button type="button" class="button quiet icon-only" title="Log out" aria-label="Log out" onClick=${() => logOut()}>
          <${Icon} name="leave" /></button>
      </div>
    </header>`;
}

function Shell() {
  const { view, kind, id, query } = useStore(route);
  const [help, setHelp] = useState(false);
  const health = usePoll((signal) => request('/health', { signal, accept: [503] }), HEALTH_MS, []);
  const asks = useWaiting();
  useKeys({
    '?': () => setHelp(true),
    1: () => go(lastList.get()),
    2: () => go('#/fleet'),
    3: () => go('#/definitions'),
    4: () => go(lastTalks.get()),
    5: () => go('#/approvals'),
    t: nextTheme,
  });
  useEffect(() => {
    if (TITLES[view]) document.title = `${TITLES[view]} · Stepfleet`;
  }, [view]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to content</a>
    <${TopBar} view=${view} health=${health} onHelp=${() => setHelp(true)} />
    <main id="main" tabindex="-1">
      ${view === 'fleet' ? html`<${Fleet} health=${health} />`
    : view === 'session' ? html`<${SessionPage} key=${id} id=${id} />`
    : view === 'conversations' ? html`<${Conversations} query=${query} />`
    : view === 'conversation' ? html`<${ConversationPage} key=${id} id=${id} />`
    : view === 'approvals' ? html`<${Approvals} poll=${asks} />`
    : view === 'definitions' ? html`<${Definitions} kind=${kind} />`
    : view === 'definition' ? html`<${DefinitionPage} key=${`${kind}/${id}`} kind=${kind} id=${id} />`
      : html`<${Sessions} query=${query} />`}
    </main>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

function App() {
  const given = useStore(token);
  return html`${given ? html`<${Shell} key=${given} />` : html`<${Login} />`}<${Toasts} />`;
}

takeFromAddress();
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#token=')) { takeFromAddress(); reread(); }
});
shareWithTabs();
reread();
render(html`<${App} />`, document.getElementById('app'));
