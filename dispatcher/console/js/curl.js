/** Requests as commands to copy. The token is named, not shown. */

const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** @param {string} path @param {{method?: string, body?: unknown, stream?: boolean}} options */
export function curl(path, { method = 'GET', body, stream = false } = {}) {
  const parts = [stream ? 'curl -N' : 'curl -sS'];
  if (method !== 'GET') parts[0] += ` -X ${method}`;
  parts.push('-H "Authorization: Bearer $STEPFLEET_TOKEN"');
  if (body !== undefined) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d ${quote(JSON.stringify(body))}`);
  }
  parts.push(quote(location.origin + path));
  return parts.join(' \\\n  ');
}
