// Finds the references in documents: each string `((name))` refers to the credential `name`.

// TextEncoder and TextDecoder, which packages may need: import this first.
import './text-encoding.js';
import { note } from 'keywright:generator/notes@0.2.0';

// Returns the name of the credential that a string refers to, or undefined if it is not a reference. EDIT THIS FUNCTION.
function referencedName(text) {
  const [, name] = /^\(\((.*)\)\)$/s.exec(text) ?? [];
  // A failure for the caller, with status 400. For a failure of the author or the operator, which a server only logs, throw
  // { tag: 'other', val: text } or { tag: 'misconfigured', val: text }, without a part of the document.
  if (name === '') throw { tag: 'invalid-document', val: 'the reference (()) has no name' };
  return name;
}

// Returns the references in the value at a JSON Pointer.
function references(pointer, value) {
  if (typeof value === 'string') {
    const name = referencedName(value);
    return name === undefined ? [] : [{ pointer, name }];
  }
  if (value === null || typeof value !== 'object') return [];
  const escape = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');
  return Object.entries(value).flatMap(([name, field]) => references(`${pointer}/${escape(name)}`, field));
}

// Prints an exception as notes, for the author, and throws it again.
const noting = (call) => (...given) => {
  try {
    return call(...given);
  } catch (error) {
    if (error instanceof Error) `${error}\n${error.stack}`.split('\n').forEach((line) => line && note(line));
    throw error;
  }
};

// The operator's settings in the configuration of the plugin: none. A server refuses a configuration with other settings.
const settingsSchema = { type: 'object', additionalProperties: false };

export const settingsDescriptor = {
  describeSettings: noting(() => JSON.stringify(settingsSchema)),
};

export const resolver = {
  findReferences: noting((document, settings) => references('', JSON.parse(document))),
};
