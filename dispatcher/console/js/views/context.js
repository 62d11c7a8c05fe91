/** What the model was given at the start of a turn: its instructions, blocks, messages and tools. */
import { html, useEffect, useState } from '../lib.js';
import { request } from '../api.js';
import { number } from '../format.js';
import { Json } from '../ui/json.js';
import { ProblemBox } from '../ui/parts.js';

const textOf = (part) => (typeof part === 'string' ? part : part?.text ?? '');

/** A message of the request in words, whatever its parts are. */
const wordsOf = (message) => {
  const content = message.content ?? message.parts ?? message.text ?? '';
  return Array.isArray(content) ? content.map((part) => textOf(part) || `[${part.type ?? 'part'}]`).join(' ') : textOf(content);
};

function Request({ body }) {
  const { messages = [], tools = [] } = body.request ?? {};
  return html`
    <p class="faint">${number(messages.length)} messages, ${number(tools.length)} tools</p>
    <ol class="context-messages">${messages.map((message, i) => html`
      <li key=${i} data-role=${message.role}><details><summary><b>${message.role}</b> ${wordsOf(message).slice(0, 90)}</summary><pre>${wordsOf(message)}</pre></details></li>`)}</ol>
    ${tools.length > 0 && html`<p class="tool-names">${tools.map((tool, i) => html`<code key=${i} title=${tool.description}>${tool.name}</code>`)}</p>`}
    <details><summary>All of it</summary><${Json} value=${body} /></details>`;
}

/** @param {{id: string, at: string|undefined}} props `at`: the run that made it; absent while it is made */
export function Context({ id, at }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (!at) return undefined;
    let gone = false;
    request(`/api/turns/${encodeURIComponent(id)}/context`).then((answer) => { if (!gone) setFound(answer); }, (failure) => { if (!gone) setError(failure); });
    return () => { gone = true; };
  }, [id, at]);
  return html`<section class="card context"><h2>Context</h2>
    ${error ? html`<${ProblemBox} error=${error} />` : !at ? html`<p class="faint">It is being put together.</p>` : found?.context && html`<${Request} body=${found.context} />`}</section>`;
}
