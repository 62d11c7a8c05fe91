/** What to do next, where there is nothing yet: agents, and a model. */
import { html } from '../lib.js';
import { request } from '../api.js';
import { usePoll } from '../poll.js';
import { toDefinitions } from '../router.js';
import { Command } from '../ui/parts.js';

const POLL_MS = 60_000;
const SCRIPTED = 'scripted';
/** How a fleet without a model tells so; with a script of somebody's, the file is named instead. */
const BUILT_IN = 'scripted (built-in';

/** Told when the fleet was started without a model: replies are scripted then. */
export function ModelHint() {
  const { data } = usePoll((signal) => request('/health', { signal, accept: [503] }), POLL_MS, []);
  // Elsewhere the workers ask the models, and this gateway does not know which.
  if (data?.mode !== 'embedded' || !data.provider.startsWith(SCRIPTED)) return null;
  if (!data.provider.startsWith(BUILT_IN)) {
    return html`<div class="model-hint"><p><b>Replies are scripted.</b> The fleet was started with a script; start it without one to talk to a model.</p></div>`;
  }
  return html`<div class="model-hint"><p><b>No model is connected.</b> Replies are scripted, unless the <a href=${toDefinitions('model_profile')}>model profile</a> of an agent names another provider.
      Start the fleet with a key, or with the address of a model server on your machine:</p>
    <${Command} text="ANTHROPIC_API_KEY=… stepfleet up" />
    <${Command} text="OPENAI_BASE_URL=http://127.0.0.1:11434/v1 STEPFLEET_MODEL=openai/llama3.2 stepfleet up" /></div>`;
}

/** Told when there is nobody to talk to. */
export const NoAgents = () => html`
  <p>There is no agent yet. Write one under <a href=${toDefinitions('agent')}>Definitions</a>, or apply those of the examples from a terminal:</p>
  <${Command} text="stepfleet apply -f examples/definitions" />`;
