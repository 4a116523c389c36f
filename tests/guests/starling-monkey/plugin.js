// Secrets by the randomness of StarlingMonkey, built without any of the host's: they are the same in each call.

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
