// Generates passphrases of random words. All words are equally likely.

import { getRandomBytes } from "wasi:random/random@0.2.0";
import { words } from "./words.js";

const parametersSchema = {
  type: "object",
  properties: {
    words: { description: "Number of words.", type: "integer", minimum: 5, maximum: 32, default: 8 },
    separator: { description: "Separator between words.", type: "string", pattern: "^[ -~]{0,8}$", default: "-" },
  },
  additionalProperties: false,
};

export const descriptor = {
  describe() {
    return {
      credentialType: "diceware",
      pluginVersion: "0.1.0",
      summary: "Passphrases from a list of 1,296 words",
      parametersSchema: JSON.stringify(parametersSchema),
      valueSchema: JSON.stringify({ type: "string", minLength: 1, writeOnly: true }),
      issuerParameter: undefined,
      entropyBitsMin: Math.floor(parametersSchema.properties.words.default * Math.log2(words.length)),
    };
  },
};

export const generator = {
  generate({ parameters }) {
    const { words: count, separator } = JSON.parse(parameters);
    const passphrase = Array.from({ length: count }, () => words[below(words.length)]);
    return JSON.stringify(passphrase.join(separator));
  },
};

// Returns a random number below a bound of at most 65,536. Discards numbers above the last multiple of the bound, so that
// all results are equally likely. Math.random() would return the same numbers in every call.
function below(bound) {
  const even = 65536 - (65536 % bound);
  for (;;) {
    const [high, low] = getRandomBytes(2);
    const drawn = high * 256 + low;
    if (drawn < even) return drawn % bound;
  }
}
