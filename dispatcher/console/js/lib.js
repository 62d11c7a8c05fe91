/** The view library in one place: Preact with tagged templates instead of a compiler. */
import { Component, Fragment, h, render } from '../vendor/preact.js';
import htm from '../vendor/htm.js';

export { Component, Fragment, h, render };
export {
  useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from '../vendor/preact-hooks.js';

/** Renders a tagged template to Preact nodes. */
export const html = htm.bind(h);
