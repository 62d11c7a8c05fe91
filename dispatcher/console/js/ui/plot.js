/** Latency of the loaded steps, drawn by uPlot with the colours of the theme. */
import { html, useEffect, useLayoutEffect, useRef } from '../lib.js';
import { duration } from '../format.js';
import { theme } from '../theme-choice.js';
import { useStore } from '../store.js';
import UPlot from '../../vendor/uplot.js';

const HEIGHT = 132;
/** Distances of ticks: whole steps, and whole milliseconds that read well as seconds and minutes. */
const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6];
const MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5];

/** The colour a custom property stands for now; canvas does not know `light-dark()`. */
function colour(name) {
  const probe = document.createElement('i');
  probe.className = 'probe';
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function optionsFor(width, onPoint) {
  const line = colour('--accent');
  const faint = colour('--ink-3');
  const grid = { stroke: colour('--line'), width: 1 };
  const font = '11px Inter, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 6, 0, 0],
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.12)] } },
    cursor: { y: false, points: { size: 7, fill: line }, drag: { x: false, y: false } },
    axes: [
      { stroke: faint, font, grid: { show: false }, ticks: { show: false }, size: 24, gap: 4, incrs: COUNTS },
      { stroke: faint, font, grid, ticks: { show: false }, size: 52, gap: 6, space: 34, incrs: MS, values: (_, ticks) => ticks.map((ms) => duration(ms)) },
    ],
    series: [{}, { stroke: line, width: 1.5, fill: colour('--accent-wash'), points: { show: (u) => u.data[0].length < 40, size: 4, fill: line } }],
    hooks: { setCursor: [(u) => onPoint(u.cursor.idx ?? null)] },
  };
}

/** The steps as uPlot takes them. One alone gets an empty neighbour: its axis would go to 100. */
function dataOf(steps) {
  const [x, y] = [steps.map((step) => step.iteration), steps.map((step) => step.latency_ms)];
  return steps.length === 1 ? [[x[0], x[0] + 1], [y[0], null]] : [x, y];
}

/** @param {{steps: {iteration: number, latency_ms: number}[]}} props in ascending order */
export function LatencyPlot({ steps }) {
  const box = useRef(null);
  const note = useRef(null);
  const plot = useRef(null);
  const chosen = useStore(theme);
  const shown = useRef(steps);
  shown.current = steps;
  const told = useRef(() => {});

  useEffect(() => {
    const rest = () => {
      const all = shown.current.map((step) => step.latency_ms).sort((a, b) => a - b);
      const at = (q) => duration(all[Math.min(all.length - 1, Math.floor(q * all.length))]);
      note.current.textContent = all.length ? `p50 ${at(0.5)} · p95 ${at(0.95)} · max ${at(1)}` : '';
    };
    const point = (i) => {
      const step = i === null ? null : shown.current[i];
      if (step) note.current.textContent = `step ${step.iteration}: ${duration(step.latency_ms)}`;
      else rest();
    };
    told.current = () => { if (plot.current?.cursor.idx == null || plot.current.cursor.left < 0) rest(); };
    const draw = () => {
      plot.current?.destroy();
      plot.current = new UPlot(optionsFor(box.current.clientWidth, point), [[], []], box.current);
      plot.current.setData(dataOf(shown.current));
      rest();
    };
    draw();
    const size = new ResizeObserver(() => {
      const width = box.current?.clientWidth;
      if (width && plot.current && width !== plot.current.width) plot.current.setSize({ width, height: HEIGHT });
    });
    size.observe(box.current);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', draw);
    return () => {
      size.disconnect();
      system.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [chosen]);

  useLayoutEffect(() => {
    if (!plot.current) return;
    plot.current.setData(dataOf(steps));
    told.current();
  }, [steps]);

  return html`
    <section class="card plot">
      <h2>Latency <span class="faint" ref=${note}></span></h2>
      <div ref=${box} class="plot-box" data-empty=${steps.length ? undefined : ''} role="img" aria-label="Latency of the loaded steps"></div>
    </section>`;
}
