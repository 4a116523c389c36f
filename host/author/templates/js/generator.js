// Generates values of the type `sample-token`: random bytes in hexadecimal.

// TextEncoder and TextDecoder, which packages may need: import this first.
import './text-encoding.js';
import { note } from 'keywright:generator/notes@0.2.0';
import { getRandomBytes } from 'wasi:random/random@0.2.0';

// Generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.
// Use only getRandomBytes for randomness: Math.random() returns the same numbers in every call of a plugin.
function makeValue(parameters, settings) {
  const { length_max: lengthMax = 64 } = settings;
  if (parameters.length > lengthMax) throw invalid('length', `must be at most ${lengthMax}`);
  const bytes = getRandomBytes(parameters.length);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin.
const parametersSchema = {
  type: 'object',
  properties: {
    length: { description: 'Number of random bytes.', type: 'integer', minimum: 16, maximum: 64, default: 32 },
  },
  additionalProperties: false,
};

// The generated value. Mark secret parts as `writeOnly`.
const valueSchema = { type: 'string', pattern: '^([0-9a-f]{2}){16,64}$', writeOnly: true };

// The operator's settings, such as `settings = { length_max = 48 }` in the configuration of the plugin. A server refuses a
// configuration with other settings.
const settingsSchema = {
  type: 'object',
  properties: {
    length_max: { description: 'Maximum of the parameter length.', type: 'integer', minimum: 16 },
  },
  additionalProperties: false,
};

// A failure for the caller, with status 400: a parameter breaks a rule. For a field of a value in `accept` and `recover`, use the
// tag `invalid-value` in the same way. For a failure of the author or the operator, which a server only logs, throw
// { tag: 'other', val: text } or { tag: 'misconfigured', val: text }, without secrets.
const invalid = (member, rule) => ({ tag: 'invalid-parameters', val: { member, rule } });

// Prints an exception as notes, which `keywright plugin run` and `keywright plugin test` show, and throws it again.
const noting = (call) => (...given) => {
  try {
    return call(...given);
  } catch (error) {
    if (error instanceof Error) `${error}\n${error.stack}`.split('\n').forEach((line) => line && note(line));
    throw error;
  }
};

export const descriptor = {
  describe: noting(() => ({
    credentialType: 'sample-token',
    pluginVersion: '0.1.0',
    summary: 'Random tokens',
    parametersSchema: JSON.stringify(parametersSchema),
    valueSchema: JSON.stringify(valueSchema),
    // For the default parameters: 32 bytes.
    entropyBitsMin: 256,
  })),
};

export const settingsDescriptor = {
  describeSettings: noting(() => JSON.stringify(settingsSchema)),
};

export const generator = {
  generate: noting(({ parameters, settings }) => JSON.stringify(makeValue(JSON.parse(parameters), JSON.parse(settings)))),
};
