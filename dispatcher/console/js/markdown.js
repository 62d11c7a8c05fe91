/** The part of Markdown that models write, as a tree. Nothing of it is ever HTML. */

/**
 * @typedef {{type: string, text?: string, level?: number, lang?: string, items?: Block[][], ordered?: boolean,
 *   start?: number, head?: string[], rows?: string[][], blocks?: Block[]}} Block
 */

const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,6}[.)])\s+(.*)$/;
const ROW = /^\s*\|/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
/** How deep lists and quotes go; below it everything is text. */
const DEPTH_MAX = 6;

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());

function takeFence(lines, at) {
  const [, mark, lang] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !lines[end].trimStart().startsWith(mark)) end += 1;
  return [{ type: 'code', lang, text: lines.slice(at + 1, end).join('\n') }, end + 1];
}

function takeTable(lines, at) {
  let end = at + 2;
  while (end < lines.length && ROW.test(lines[end])) end += 1;
  return [{ type: 'table', head: cells(lines[at]), rows: lines.slice(at + 2, end).map(cells) }, end];
}

function takeQuote(lines, at, depth) {
  let end = at;
  while (end < lines.length && lines[end].startsWith('>')) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(/^> ?/, ''));
  return [{ type: 'quote', blocks: blocksOf(inside, depth + 1) }, end];
}

/** A list with what is indented below its items. */
function takeList(lines, at, depth) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  const start = ordered ? parseInt(ITEM.exec(lines[at])[2], 10) : undefined;
  const indent = ITEM.exec(lines[at])[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    const inItem = /^\s/.test(lines[end]) && lines[end].search(/\S/) > indent;
    if (found && found[1].length <= indent && /\d/.test(found[2]) === ordered) items.push([found[3]]);
    else if (items.length && (inItem || (lines[end].trim() === '' && /^\s+\S/.test(lines[end + 1] ?? '')))) items.at(-1).push(lines[end].slice(Math.min(indent + 2, Math.max(0, lines[end].search(/\S/)))));
    else if (lines[end].trim() === '' && ITEM.test(lines[end + 1] ?? '')) { end += 1; continue; } else break;
    end += 1;
  }
  return [{ type: 'list', ordered, start, items: items.map((item) => blocksOf(item, depth + 1)) }, end];
}

/** @param {string[]} lines @returns {Block[]} */
function blocksOf(lines, depth) {
  const out = [];
  let at = 0;
  let text = [];
  const flush = () => { if (text.length) out.push({ type: 'text', text: text.join('\n') }); text = []; };
  const take = ([block, next]) => { flush(); out.push(block); at = next; };
  while (at < lines.length) {
    const line = lines[at];
    const deep = depth >= DEPTH_MAX;
    if (line.trim() === '') { flush(); at += 1; } else if (FENCE.test(line)) take(takeFence(lines, at));
    else if (HEADING.test(line)) take([{ type: 'heading', level: HEADING.exec(line)[1].length, text: HEADING.exec(line)[2] }, at + 1]);
    else if (RULE.test(line)) take([{ type: 'rule' }, at + 1]);
    else if (ROW.test(line) && DIVIDER.test(lines[at + 1] ?? '')) take(takeTable(lines, at));
    else if (!deep && line.startsWith('>')) take(takeQuote(lines, at, depth));
    else if (!deep && ITEM.test(line)) take(takeList(lines, at, depth));
    else { text.push(line); at += 1; }
  }
  flush();
  return out;
}

/** @param {string} text @returns {Block[]} */
export const blocks = (text) => blocksOf(text.split(/\r?\n/), 0);

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*?[^\s*])\*(?![\w*])|(?<!\w)_(?=\S)([^_\n]*?\S)_(?!\w)|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/g;

/**
 * What is within a line: texts, and marked texts. Links lead to the web and nowhere else.
 * @returns {{type: 'text'|'code'|'strong'|'em'|'link', text: string, href?: string}[]}
 */
export function spans(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, , code, strong, star, low, label, href, bare] = found;
    if (found.index > at) out.push({ type: 'text', text: text.slice(at, found.index) });
    if (code !== undefined) out.push({ type: 'code', text: code });
    else if (strong !== undefined) out.push({ type: 'strong', text: strong });
    else if (star ?? low) out.push({ type: 'em', text: star ?? low });
    else out.push({ type: 'link', text: label ?? bare, href: href ?? bare });
    at = found.index + whole.length;
  }
  if (at < text.length) out.push({ type: 'text', text: text.slice(at) });
  return out;
}
