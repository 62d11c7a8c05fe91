/** The built-in monikers: what they do, and a config and guidance to start from. */

/**
 * @type {{name: string, about: string, task?: boolean, config?: object, state?: object,
 *   guidance: object, input?: boolean}[]}
 */
export const MONIKERS = [
  { name: 'tell_a_joke', about: 'A joke every three seconds, until it is stopped. Guidance changes the subject.', state: { subject: 'cats' }, guidance: { subject: 'owls' }, input: true },
  { name: 'run_step', about: 'Your task, one model step at a time, until the model says it is done.', task: true, guidance: { hint: '' }, input: true },
  { name: 'summarize', about: 'Collects the key points of state.text, or of state.subject, and writes a summary of them.', state: { subject: 'how tides work' }, guidance: { subject: '' }, input: true },
  { name: 'research', about: 'Asks questions about state.subject, answers one a step, and closes with a report.', state: { subject: 'how honey bees decide where to live' }, guidance: { subject: '' }, input: true },
  { name: 'digest', about: 'Reads documents one a step and ends with a digest of them all. Needs no model.', config: { paths: ['/usr/share/doc/bash'], sentences: 3 }, guidance: {} },
  { name: 'http', about: 'Your own step function: each frame is posted to a URL, and the answer is the next frame.', config: { url: 'http://127.0.0.1:9000/step' }, guidance: {}, input: true },
  { name: 'count', about: 'Counts. Good for trying things out.', config: { until: 1000 }, guidance: { set: 0 } },
  { name: 'echo', about: 'Answers every input with its text and waits in between.', guidance: {}, input: true },
  { name: 'bench', about: 'Synthetic load, for measurements.', config: { steps: 50 }, guidance: {} },
];

/** @param {string} name */
export const monikerOf = (name) => MONIKERS.find((moniker) => moniker.name === name);

/** Unknown monikers get the benefit of the doubt: the server decides. */
export const takesInput = (name) => monikerOf(name)?.input ?? !monikerOf(name);
