/** Prometheus text, read as far as the fleet view needs it. */

/** @returns {Map<string, {labels: Record<string, string>, value: number}[]>} samples by metric name */
export function parseMetrics(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const sample = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!sample) continue;
    const labels = {};
    for (const [, key, value] of (sample[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
    const list = found.get(sample[1]) ?? [];
    list.push({ labels, value: Number(sample[3]) });
    found.set(sample[1], list);
  }
  return found;
}

/** Sum over all labels; null when the metric is absent. */
export function sum(metrics, name) {
  const samples = metrics.get(name);
  return samples ? samples.reduce((all, { value }) => all + value, 0) : null;
}

/**
 * A quantile in seconds, from a summary, or from the buckets of a histogram, which only tell what
 * it is at most.
 * @returns {{seconds: number, atMost: boolean}|null}
 */
export function quantile(metrics, name, q) {
  const summary = metrics.get(name)?.find(({ labels }) => Number(labels.quantile) === q);
  if (summary) return Number.isFinite(summary.value) ? { seconds: summary.value, atMost: false } : null;
  const buckets = (metrics.get(`${name}_bucket`) ?? [])
    .map(({ labels, value }) => ({ bound: labels.le === '+Inf' ? Infinity : Number(labels.le), value }))
    .sort((a, b) => a.bound - b.bound);
  const total = buckets.at(-1)?.value ?? 0;
  if (!total) return null;
  const hit = buckets.find(({ value }) => value >= q * total);
  return hit && Number.isFinite(hit.bound) ? { seconds: hit.bound, atMost: true } : null;
}
