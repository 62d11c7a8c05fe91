/** Shows Markdown as elements, made one by one: what a model writes can be no markup of the page. */
import { h, html, useMemo } from '../lib.js';
import { blocks, spans } from '../markdown.js';
import { Copy } from './parts.js';

const Line = ({ text }) => spans(text).map((span, i) => {
  if (span.type === 'code') return html`<code key=${i}>${span.text}</code>`;
  if (span.type === 'strong') return html`<strong key=${i}><${Line} text=${span.text} /></strong>`;
  if (span.type === 'em') return html`<em key=${i}>${span.text}</em>`;
  if (span.type === 'link') return html`<a key=${i} href=${span.href} target="_blank" rel="noreferrer noopener">${span.text}</a>`;
  return span.text;
});

const Code = ({ lang, text }) => html`
  <div class="md-code"><header><span>${lang || 'text'}</span><${Copy} text=${text} label="Copy the code" /></header><pre tabindex="0">${text}</pre></div>`;

const Table = ({ head, rows }) => html`
  <div class="md-table"><table><thead><tr>${head.map((cell, i) => html`<th key=${i}><${Line} text=${cell} /></th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${i}>${row.map((cell, j) => html`<td key=${j}><${Line} text=${cell} /></td>`)}</tr>`)}</tbody></table></div>`;

function Block({ block, tight }) {
  switch (block.type) {
    case 'code': return html`<${Code} ...${block} />`;
    case 'heading': return h(`h${Math.min(6, block.level + 2)}`, null, html`<${Line} text=${block.text} />`);
    case 'rule': return html`<hr />`;
    case 'table': return html`<${Table} ...${block} />`;
    case 'quote': return html`<blockquote><${Blocks} list=${block.blocks} /></blockquote>`;
    case 'list': return h(block.ordered ? 'ol' : 'ul', block.ordered ? { start: block.start } : null,
      block.items.map((item, i) => html`<li key=${i}><${Blocks} list=${item} tight /></li>`));
    default: return tight ? html`<${Line} text=${block.text} />` : html`<p><${Line} text=${block.text} /></p>`;
  }
}

const Blocks = ({ list, tight }) => list.map((block, i) => html`<${Block} key=${i} block=${block} tight=${tight} />`);

/** @param {{text: string}} props */
export function Markdown({ text }) {
  const list = useMemo(() => blocks(text), [text]);
  return html`<div class="md"><${Blocks} list=${list} /></div>`;
}
