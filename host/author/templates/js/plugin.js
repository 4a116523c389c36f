// Makes values of the type `sample-token`: random bytes, in hexadecimal digits.

import { getRandomBytes } from 'wasi:random/random@0.2.0';

// Makes a value. EDIT THIS FUNCTION, and then what is said of it below.
// Draw what is random by getRandomBytes alone: Math.random() gives the same numbers in every call of a plugin.
function makeValue(parameters) {
  const bytes = getRandomBytes(parameters.length);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// What a caller may ask for. Before makeValue is called, the host has checked it, and filled in the defaults.
const parametersSchema = {
  type: 'object',
  properties: {
    length: { description: 'How many random bytes.', type: 'integer', minimum: 16, maximum: 64, default: 32 },
  },
  additionalProperties: false,
};

// What a value looks like. What is secret is `writeOnly`.
const valueSchema = { type: 'string', pattern: '^([0-9a-f]{2}){16,64}$', writeOnly: true };

export const descriptor = {
  describe: () => ({
    credentialType: 'sample-token',
    pluginVersion: '0.1.0',
    summary: 'Random tokens',
    parametersSchema: JSON.stringify(parametersSchema),
    valueSchema: JSON.stringify(valueSchema),
    // With the default parameters: 32 bytes.
    entropyBitsMin: 256,
  }),
};

export const generator = {
  generate: ({ parameters }) => JSON.stringify(makeValue(JSON.parse(parameters))),
};
