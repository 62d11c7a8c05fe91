/** What to do next, where there is nothing yet: agents, and a model. */
import { html } from '../lib.js';
import { request } from '../api.js';
import { usePoll } from '../poll.js';
import { toDefinitions } from '../router.js';
import { Command } from '../ui/parts.js';

const POLL_MS = 60_000;

/** Told when every model profile is scripted: replies come from a file then. */
export function ModelHint() {
  const { data } = usePoll((signal) => request('/api/model-profiles', { signal, query: { limit: 100 } }), POLL_MS, []);
  if (!data || data.items.some(({ definition }) => definition.provider !== 'scripted')) return null;
  return html`<div class="model-hint"><p><b>Replies are scripted.</b> ${data.items.length ? 'No model profile names a provider.' : 'There is no model profile yet.'}${' '}
      Start the fleet with a key, and set <code>provider</code> and <code>model_id</code> of a <a href=${toDefinitions('model_profile')}>model profile</a>:</p>
    <${Command} text="ANTHROPIC_API_KEY=… stepfleet up" /></div>`;
}

/** Told when there is nobody to talk to. */
export const NoAgents = () => html`
  <p>There is no agent yet. Write one under <a href=${toDefinitions('agent')}>Definitions</a>, or apply those of the examples from a terminal:</p>
  <${Command} text="stepfleet apply -f examples/definitions" />`;
