/** The form for the token, for those who did not come by the link. */
import { html, useState } from '../lib.js';
import { refused, token } from '../auth.js';
import { useStore } from '../store.js';
import { Mark } from '../ui/icons.js';
import { Command } from '../ui/parts.js';

export function Login() {
  const why = useStore(refused);
  const [text, setText] = useState('');
  const [shown, setShown] = useState(false);
  const enter = (event) => {
    event.preventDefault();
    const given = text.trim().replace(/^Bearer\s+/i, '');
    if (!given) return;
    refused.set(null);
    token.set(given);
  };
  return html`
    <main class="login" id="main">
      <form onSubmit=${enter}>
        <div class="login-mark"><${Mark} /></div>
        <h1>Stepfleet</h1>
        <p>Enter a token to see your fleet.</p>
        ${why && html`<p class="field-error" role="alert">${why}</p>`}
        <label for="token">Token</label>
        <div class="with-button">
          <input id="token" type=${shown ? 'text' : 'password'} value=${text} autocomplete="off" spellcheck="false"
            autocapitalize="off" autofocus onInput=${(event) => setText(event.target.value)} />
          <button type="button" class="button quiet" aria-pressed=${String(shown)} onClick=${() => setShown(!shown)}>${shown ? 'Hide' : 'Show'}</button>
        </div>
        <button type="submit" class="button primary" disabled=${!text.trim()}><span>Open the console</span></button>
        <div class="login-help">
          <p><code>stepfleet up</code> prints a link that logs you in, and keeps its token in the data directory:</p>
          <${Command} text="cat stepfleet-data/token" />
          <p>The token stays in this tab and is never put in an address.</p>
        </div>
      </form>
    </main>`;
}
