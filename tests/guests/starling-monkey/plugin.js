// Secrets from StarlingMonkey's own randomness, without the host's. They are the same in every call.

export const descriptor = {
  describe: () => ({
    credentialType: "starling-monkey",
    pluginVersion: "0.1.0",
    summary: "Secrets by Math.random() and crypto.getRandomValues()",
    parametersSchema: '{"type": "object", "additionalProperties": false}',
    valueSchema: '{"type": "string", "writeOnly": true}',
    entropyBitsMin: 128,
  }),
};

export const generator = {
  generate: () => JSON.stringify([Math.random(), ...crypto.getRandomValues(new Uint8Array(16))].join()),
};
