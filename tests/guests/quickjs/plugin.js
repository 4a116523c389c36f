// Secrets from Math.random(). QuickJS seeds it when the component is built, so they are the same in every call.

export const descriptor = {
  describe: () => ({
    credentialType: "quickjs",
    pluginVersion: "0.1.0",
    summary: "Secrets by Math.random()",
    parametersSchema: '{"type": "object", "additionalProperties": false}',
    valueSchema: '{"type": "string", "writeOnly": true}',
    entropyBitsMin: 52,
  }),
};

export const generator = { generate: () => JSON.stringify(Math.random().toString(36)) };
