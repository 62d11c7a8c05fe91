/** Where in a text of JSON a path is, as problems name it: `steps[0].ref`. */

/** Reads the text once and remembers the place of every value. @returns {Map<string, [number, number]>} */
function places(text) {
  const found = new Map();
  let at = 0;
  const space = () => { while (/\s/.test(text[at] ?? '')) at += 1; };
  const string = () => {
    const start = at;
    at += 1;
    while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at += 1;
    return text.slice(start, at);
  };
  const members = (path, end, name) => {
    at += 1;
    space();
    for (let index = 0; at < text.length && text[at] !== end; index += 1) {
      value(name(path, index));
      space();
      if (text[at] === ',') at += 1;
      space();
    }
    at += 1;
  };
  const value = (path) => {
    space();
    const start = at;
    if (text[at] === '{') {
      members(path, '}', (parent) => {
        const key = JSON.parse(string());
        space();
        at += 1;
        return parent ? `${parent}.${key}` : key;
      });
    } else if (text[at] === '[') members(path, ']', (parent, index) => `${parent}[${index}]`);
    else if (text[at] === '"') string();
    else while (at < text.length && !/[\s,\]}]/.test(text[at])) at += 1;
    found.set(path, [start, at]);
  };
  value('');
  return found;
}

/**
 * The value at a path, or what holds the nearest part of it that is there.
 * @param {string} text well-formed JSON
 * @returns {{start: number, end: number, line: number}}
 */
export function placeOf(text, path) {
  const found = places(text);
  let near = path;
  while (near && !found.has(near)) near = near.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[]+)$/, '');
  const [start, end] = found.get(near) ?? [0, text.length];
  return { start, end, line: text.slice(0, start).split('\n').length };
}
