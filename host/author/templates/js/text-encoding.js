// TextEncoder and TextDecoder for UTF-8 (https://encoding.spec.whatwg.org), which QuickJS lacks and many packages need.

const REPLACEMENT = 0xfffd;

globalThis.TextEncoder ??= class TextEncoder {
  get encoding() {
    return 'utf-8';
  }

  encode(text = '') {
    const bytes = [];
    for (const character of String(text)) bytes.push(...encoded(character));
    return Uint8Array.from(bytes);
  }

  encodeInto(text, target) {
    let read = 0;
    let written = 0;
    for (const character of String(text)) {
      const bytes = encoded(character);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      read += character.length;
      written += bytes.length;
    }
    return { read, written };
  }
};

// Returns the bytes of a character. A surrogate without its pair is replaced.
function encoded(character) {
  let code = character.codePointAt(0);
  if (code >= 0xd800 && code <= 0xdfff) code = REPLACEMENT;
  const rest = (shift) => 0x80 | ((code >> shift) & 0x3f);
  if (code < 0x80) return [code];
  if (code < 0x800) return [0xc0 | (code >> 6), rest(0)];
  if (code < 0x10000) return [0xe0 | (code >> 12), rest(6), rest(0)];
  return [0xf0 | (code >> 18), rest(12), rest(6), rest(0)];
}

globalThis.TextDecoder ??= class TextDecoder {
  #code = 0;
  // The number of bytes that are missing from the current character, and the bounds of the next one.
  #missing = 0;
  #lower = 0x80;
  #upper = 0xbf;
  #isAtStart = true;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(unicode-1-1-utf-8|unicode11utf8|unicode20utf8|utf-?8|x-unicode20utf8)\s*$/i.test(label)) {
      throw new RangeError(`unsupported encoding ${label}: only utf-8 is supported`);
    }
    Object.assign(this, { encoding: 'utf-8', fatal: Boolean(fatal), ignoreBOM: Boolean(ignoreBOM) });
  }

  decode(input = new Uint8Array(), { stream = false } = {}) {
    const bytes = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    let text = '';
    const add = (code) => {
      if (code === undefined) {
        if (this.fatal) {
          this.#reset();
          throw new TypeError('the bytes are not UTF-8');
        }
        code = REPLACEMENT;
      }
      if (!this.#isAtStart || this.ignoreBOM || code !== 0xfeff) text += String.fromCodePoint(code);
      this.#isAtStart = false;
    };
    for (const byte of bytes) this.#take(byte, add);
    if (!stream) {
      if (this.#missing > 0) add(undefined);
      this.#reset();
    }
    return text;
  }

  // Adds the characters that end with this byte, or undefined for a malformed sequence.
  #take(byte, add) {
    if (this.#missing > 0) {
      const isExpected = byte >= this.#lower && byte <= this.#upper;
      [this.#lower, this.#upper] = [0x80, 0xbf];
      if (isExpected) {
        this.#code = (this.#code << 6) | (byte & 0x3f);
        this.#missing -= 1;
        if (this.#missing === 0) add(this.#code);
        return;
      }
      this.#missing = 0;
      add(undefined);
    }
    if (byte < 0x80) add(byte);
    else if (byte >= 0xc2 && byte <= 0xdf) this.#begin(byte & 0x1f, 1);
    else if (byte >= 0xe0 && byte <= 0xef) {
      this.#begin(byte & 0xf, 2);
      if (byte === 0xe0) this.#lower = 0xa0;
      if (byte === 0xed) this.#upper = 0x9f;
    } else if (byte >= 0xf0 && byte <= 0xf4) {
      this.#begin(byte & 0x7, 3);
      if (byte === 0xf0) this.#lower = 0x90;
      if (byte === 0xf4) this.#upper = 0x8f;
    } else add(undefined);
  }

  #begin(code, missing) {
    this.#code = code;
    this.#missing = missing;
  }

  #reset() {
    this.#missing = 0;
    [this.#lower, this.#upper] = [0x80, 0xbf];
    this.#isAtStart = true;
  }
};
