/** Names of agents, as their definitions have them. */
import { request } from './api.js';
import { createStore, useStore } from './store.js';
import { useEffect } from './lib.js';
import { isUlid, shortId } from './format.js';

/** @type {{get(): {id: string, name: string, defined: boolean}[]|null, set: Function, subscribe: Function}} */
const agents = createStore(null);
const PAGE = 1000;

/** Reads the agents again. */
export async function readAgents() {
  const page = await request('/api/agents', { query: { limit: PAGE } });
  agents.set(page.items.map(({ agent_id: id, definition }) => ({
    id, name: definition?.definition.name ?? id, description: definition?.definition.description ?? '', defined: Boolean(definition),
  })));
}

/** The agents, read once for all views; null until then. */
export function useAgents() {
  const list = useStore(agents);
  useEffect(() => { if (!agents.get()) readAgents().catch(() => {}); }, []);
  return list;
}

/** How an agent is called. @param {object[]|null} list @param {string|null} id */
export function nameOf(list, id) {
  if (!id) return 'agent';
  const found = list?.find((one) => one.id === id);
  return found?.name ?? (isUlid(id) ? shortId(id) : id);
}

/** A colour for each agent, always the same: a number from 0 to 5. */
export function hueOf(id) {
  let sum = 0;
  for (const char of id ?? '') sum = (sum * 31 + char.charCodeAt(0)) % 997;
  return sum % 6;
}
