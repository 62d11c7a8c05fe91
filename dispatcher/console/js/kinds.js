/** The kinds of definitions: where they are, what they are for, and what a new one begins with. */

/** @typedef {{kind: string, path: string, title: string, one: string, about: string, versioned: boolean, start: object}} Kind */

/** @type {Kind[]} */
export const KINDS = [
  { kind: 'agent', path: 'agents', title: 'Agents', one: 'agent', versioned: false,
    about: 'Identities with knowledge of their own: a persona within projects.',
    start: { id: '', name: '', project_ids: [''], persona_ref: { persona_id: '' } } },
  { kind: 'persona', path: 'personas', title: 'Personas', one: 'persona', versioned: true,
    about: 'Who the model is: prompt, model, tools and limits. Shared, and versioned.',
    start: { id: '', name: '', library_id: '', system_prompt: '', model_profile_id: '', tool_ids: [] } },
  { kind: 'tool', path: 'tools', title: 'Tools', one: 'tool', versioned: false,
    about: 'What a model can call, bound to a task, a workflow or another agent.',
    start: { id: '', name: '', description: '', library_id: '', input_schema: { type: 'object', properties: {} }, target_type: 'task', target_id: '' } },
  { kind: 'task', path: 'tasks', title: 'Tasks', one: 'task', versioned: true,
    about: 'Ordered steps, each of which runs an action.',
    start: { id: '', name: '', library_id: '', steps: [{ ref: 'first', action_def_id: '' }] } },
  { kind: 'action_def', path: 'action-defs', title: 'Actions', one: 'action', versioned: true,
    about: 'Single operations: a model call, a request, a command, a search.',
    start: { id: '', name: '', library_id: '', kind: 'mock', operation: 'return', config: { output: {} } } },
  { kind: 'prompt_spec', path: 'prompt-specs', title: 'Prompts', one: 'prompt', versioned: true,
    about: 'Templates with what they take and what they make.',
    start: { id: '', name: '', library_id: '', template: '' } },
  { kind: 'model_profile', path: 'model-profiles', title: 'Models', one: 'model profile', versioned: false,
    about: 'Which model, with which parameters, at what price. Keys are never here.',
    start: { id: '', name: '', provider: '', model_id: '', parameters: { max_tokens: 4096 } } },
  { kind: 'library', path: 'libraries', title: 'Libraries', one: 'library', versioned: false,
    about: 'Containers of what is shared.',
    start: { id: '', name: '' } },
  { kind: 'project', path: 'projects', title: 'Projects', one: 'project', versioned: false,
    about: 'What agents work in and can see.',
    start: { id: '', name: '' } },
];

/** @param {string} name @returns {Kind} */
export const kindOf = (name) => KINDS.find(({ kind }) => kind === name) ?? KINDS[0];

/** Where the definitions of a page come from: agents are listed with those that only have sessions. */
export const viewsOf = (items) => items.map((item) => ('agent_id' in item ? item.definition : item)).filter(Boolean);
