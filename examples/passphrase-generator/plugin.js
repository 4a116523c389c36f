// Makes passphrases of words that are chosen at random, each as likely as any other.

import { getRandomBytes } from "wasi:random/random@0.2.0";
import { words } from "./words.js";

const parametersSchema = {
  type: "object",
  properties: {
    words: { description: "How many words.", type: "integer", minimum: 5, maximum: 32, default: 8 },
    separator: { description: "What stands between two words.", type: "string", pattern: "^[ -~]{0,8}$", default: "-" },
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

// A number below a bound of at most 65,536. What is left over when 65,536 is divided evenly is drawn anew, so that
// no number is likelier than another. Math.random() would be the same in each call: the host lends no other randomness.
function below(bound) {
  const even = 65536 - (65536 % bound);
  for (;;) {
    const [high, low] = getRandomBytes(2);
    const drawn = high * 256 + low;
    if (drawn < even) return drawn % bound;
  }
}
