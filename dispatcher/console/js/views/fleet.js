/** The fleet: health, shards, workers, and the numbers that tell whether it keeps up. */
import { html, useState } from '../lib.js';
import { request } from '../api.js';
import { duration, number } from '../format.js';
import { parseMetrics, quantile, sum } from '../metrics.js';
import { usePoll } from '../poll.js';
import { toast } from '../ui/toasts.js';
import { DeadLetters } from './dead.js';
import { Button, Dialog, Empty, Id, ProblemBox, Skeleton } from '../ui/parts.js';

const POLL_MS = 3000;

/** Lists come bare or as a page. */
const itemsOf = (answer) => (Array.isArray(answer) ? answer : answer?.items ?? []);

/** A quantile in words. @param {{seconds: number, atMost: boolean}|null} found */
const took = (found) => {
  if (!found) return '–';
  const { seconds, atMost } = found;
  return `${atMost ? '≤ ' : ''}${seconds < 0.01 ? `${Number((seconds * 1000).toPrecision(2))} ms` : duration(seconds * 1000)}`;
};

const Figure = ({ name, value, note, bad }) => html`<div class=${`number ${bad ? 'bad' : ''}`}><dt>${name}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;

function Health({ health }) {
  const { data } = health;
  if (!data) return html`<${Skeleton} rows=${3} />`;
  return html`
    <section class="card health-card" data-health=${data.status}>
      <h2>Health <span class="state-word" data-ok=${String(data.status === 'ok')}>${data.status}</span></h2>
      <ul>${data.components.map(({ name, ok, detail }) => html`<li key=${name} data-ok=${String(ok)}><i aria-hidden="true"></i><b>${name}</b><span>${detail}</span><em>${ok ? 'ok' : 'failing'}</em></li>`)}</ul>
      <dl class="pairs"><div><dt>Provider</dt><dd>${data.provider}</dd></div><div><dt>Version</dt><dd>${data.version}, ${data.mode}</dd></div></dl>
    </section>`;
}

/** The numbers that tell whether the fleet keeps up. */
function Pulse({ health }) {
  const { data } = health;
  if (!data) return health.error ? null : html`<${Skeleton} rows=${2} />`;
  return html`<dl class="numbers">
    <${Figure} name="Live sessions" value=${number(data.live_sessions)} note="that have not ended" />
    <${Figure} name="Waiting actions" value=${number(data.pending_actions)} note="accepted, not applied" />
    <${Figure} name="Queue lag" value=${duration(data.queue_lag_ms)} note="oldest action that could go on" bad=${data.queue_lag_ms > 2000} />
    <${Figure} name="Journal lag" value=${number(data.journal_lag_rows)} note="rows not archived yet" />
    <${Figure} name="Shards owned" value=${`${number(data.shards_owned)} of ${number(data.shards)}`} note="with a live owner" bad=${data.shards_owned < data.shards} />
  </dl>`;
}

function Measures() {
  const { data, error } = usePoll((signal) => request('/metrics', { signal, text: true }).then(parseMetrics), POLL_MS, []);
  if (error && !data) return html`<${ProblemBox} error=${error} />`;
  if (!data) return html`<${Skeleton} rows=${2} />`;
  const broken = sum(data, 'stepfleet_invariant_broken_total');
  return html`<section class="card"><h2>Since the start</h2><dl class="numbers flat">
    <${Figure} name="Steps" value=${number(sum(data, 'stepfleet_steps_total'))} />
    <${Figure} name="Actions accepted" value=${number(sum(data, 'stepfleet_actions_accepted_total'))} />
    <${Figure} name="Actions refused" value=${number(sum(data, 'stepfleet_actions_refused_total') ?? 0)} />
    <${Figure} name="Accept, p99" value=${took(quantile(data, 'stepfleet_accept_seconds', 0.99))} />
    <${Figure} name="Commit, p50" value=${took(quantile(data, 'stepfleet_commit_seconds', 0.5))} />
    <${Figure} name="Commit, p99" value=${took(quantile(data, 'stepfleet_commit_seconds', 0.99))} />
    <${Figure} name="Rows archived" value=${number(sum(data, 'stepfleet_archived_rows_total'))} />
    <${Figure} name="Broken invariants" value=${number(broken ?? 0)} bad=${broken > 0} />
  </dl></section>`;
}

/** How much of the scale a count fills: 0 to 4, by powers, so that one busy shard hides none. */
export const heat = (n) => (n <= 0 ? 0 : n < 10 ? 1 : n < 100 ? 2 : n < 1000 ? 3 : 4);

function Strip({ title, shards, of, chosen, onChoose }) {
  return html`<div class="strip"><h3>${title} <span class="faint">${number(shards.reduce((all, shard) => all + of(shard), 0))}</span></h3>
    <div class="cells" data-many=${shards.length > 64 ? '' : undefined}>${shards.map((shard) => html`
      <button key=${shard.shard} type="button" data-heat=${heat(of(shard))} data-orphan=${shard.owner ? undefined : ''} aria-pressed=${String(chosen === shard.shard)}
        title=${`shard ${shard.shard}: ${number(of(shard))}`} aria-label=${`Shard ${shard.shard}, ${title} ${of(shard)}`} onClick=${() => onChoose(shard.shard)}></button>`)}</div></div>`;
}

function Shards() {
  const { data, error, refresh } = usePoll((signal) => request('/api/shards', { signal }).then(itemsOf), POLL_MS, []);
  const [chosen, setChosen] = useState(0);
  if (!data) return error ? html`<section class="card"><h2>Shards</h2><${ProblemBox} error=${error} retry=${refresh} /></section>` : html`<${Skeleton} rows=${3} />`;
  const one = data.find(({ shard }) => shard === chosen) ?? data[0];
  const orphans = data.filter(({ owner }) => !owner).length;
  return html`<section class="card shards"><h2>Shards <span class="faint">${number(data.length)}</span>
      ${orphans > 0 && html`<span class="state-word" data-ok="false">${orphans} without an owner</span>`}</h2>
    <${Strip} title="Waiting actions" shards=${data} of=${(s) => s.backlog} chosen=${chosen} onChoose=${setChosen} />
    <${Strip} title="Journal rows" shards=${data} of=${(s) => s.journal_rows} chosen=${chosen} onChoose=${setChosen} />
    <p class="legend" aria-hidden="true"><i data-heat="0"></i>0<i data-heat="1"></i>1+<i data-heat="2"></i>10+<i data-heat="3"></i>100+<i data-heat="4"></i>1,000+<i data-heat="0" data-orphan=""></i>no owner</p>
    ${one && html`<dl class="pairs shard-one"><div><dt>Shard</dt><dd>${one.shard}</dd></div><div><dt>Owner</dt><dd>${one.owner ? html`<${Id} id=${one.owner} label="owner" />` : 'none'}</dd></div>
      <div><dt>Epoch</dt><dd>${number(one.epoch)}</dd></div><div><dt>Lease</dt><dd>${one.owner ? `${duration(one.lease_ms_left)} left` : '–'}</dd></div>
      <div><dt>Waiting</dt><dd>${number(one.backlog)}</dd></div><div><dt>Journal</dt><dd>${number(one.journal_rows)}</dd></div></dl>`}
  </section>`;
}

function DrainDialog({ worker, onClose, onDone }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const send = async () => {
    setBusy(true);
    try {
      await request(`/api/workers/${encodeURIComponent(worker.worker_id)}/drain`, { method: 'POST', body: {} });
      toast('ok', 'Drain accepted');
      onDone();
    } catch (failure) { setError(failure); setBusy(false); }
  };
  return html`<${Dialog} title="Drain this worker?" onClose=${onClose} actions=${html`<span class="push"></span><${Button} onClick=${onClose}>Cancel<//>
      <${Button} kind="danger" class="confirm" busy=${busy} onClick=${send}>Drain<//>`}>
    ${worker.roles.includes('runner')
      ? html`<p>It finishes its steps and hands its ${number(worker.shards.length)} shards to the other workers. If there is no other worker, sessions wait until one starts.</p>`
      : html`<p>It finishes what it does as ${worker.roles.join(', ')}, and ends. If no other worker does that, it waits until one starts.</p>`}
    ${error && html`<${ProblemBox} error=${error} />`}<//>`;
}

function Workers() {
  const { data, error, refresh } = usePoll((signal) => request('/api/workers', { signal }).then(itemsOf), POLL_MS, []);
  const [draining, setDraining] = useState(null);
  if (!data) return error ? html`<section class="card"><h2>Workers</h2><${ProblemBox} error=${error} retry=${refresh} /></section>` : html`<${Skeleton} rows=${2} />`;
  return html`<section class="card workers"><h2>Workers <span class="faint">${number(data.length)}</span></h2>
    ${!data.length ? html`<${Empty} title="No worker"><p>Sessions are accepted, and run when a worker starts.</p><//>` : html`<ul>
      ${data.map((worker) => html`<li key=${worker.worker_id}><div><b>${worker.host}</b> <${Id} id=${worker.worker_id} label="worker id" />
          ${worker.draining && html`<span class="state-word" data-ok="false">draining</span>`}</div>
        <p><span>${worker.roles.join(', ')}</span><span>${number(worker.shards.length)} shards</span><span>seen ${duration(worker.heartbeat_age_ms)} ago</span><span>${worker.version}</span></p>
        <${Button} disabled=${worker.draining} onClick=${() => setDraining(worker)}>Drain<//></li>`)}</ul>`}
    ${draining && html`<${DrainDialog} worker=${draining} onClose=${() => setDraining(null)} onDone=${() => { setDraining(null); refresh(); }} />`}
  </section>`;
}

export const Fleet = ({ health }) => html`
  <div class="page fleet"><div class="page-head"><h1>Fleet</h1></div>
    ${health.error && html`<${ProblemBox} error=${health.error} retry=${health.refresh} floating=${Boolean(health.data)} />`}
    <${Pulse} health=${health} />
    <div class="fleet-grid"><div class="stack"><${Health} health=${health} /><${Measures} /></div><div class="stack"><${Shards} /><${Workers} /><${DeadLetters} /></div></div>
  </div>`;
