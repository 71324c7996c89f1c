// @ts-check
/** Reading numbers and text out of bytes. Every read past the end is an error, so that damaged data cannot loop. */

const CUT_SHORT = "the profile's data is cut short";
const ASCII_ONLY = new TextDecoder("latin1");
const UTF8 = new TextDecoder();

export class ByteReader {
  /**
   * @param {Uint8Array} bytes
   * @param {number} [from]
   * @param {number} [to]
   */
  constructor(bytes, from = 0, to = bytes.length) {
    this.bytes = bytes;
    this.at = from;
    this.to = to;
  }

  /** An unsigned LEB128 number; exact to 2^53. */
  varint() {
    if (this.at >= this.to) throw new Error(CUT_SHORT);
    const first = this.bytes[this.at++];
    return first < 128 ? first : this.longer(first & 127);
  }

  /** @param {number} value what the first byte held */
  longer(value) {
    let scale = 128;
    for (let i = 1; i < 10; i++) {
      if (this.at >= this.to) throw new Error(CUT_SHORT);
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new Error("the profile's data is damaged: a number is too long");
  }

  /** A count of things that take at least one byte each, so it can never exceed what is left. */
  count() {
    const count = this.varint();
    if (count > this.to - this.at) throw new Error(CUT_SHORT);
    return count;
  }

  /** Where the next bytes begin, as many as their length says; they are passed over. */
  piece() {
    const length = this.count();
    const from = this.at;
    this.at += length;
    return new ByteReader(this.bytes, from, this.at);
  }

  /**
   * That many numbers, which are all there are; most take one byte. The reader itself stays where it is.
   * @param {Int32Array | Float64Array} into
   * @param {number} count
   */
  unpack(into, count) {
    const { bytes, to } = this;
    const rest = new ByteReader(bytes, this.at, to);
    let at = this.at;
    for (let i = 0; i < count; i++) {
      if (at >= to) throw new Error(CUT_SHORT);
      let value = bytes[at++];
      if (value > 127) {
        rest.at = at;
        value = rest.longer(value & 127);
        at = rest.at;
      }
      into[i] = value;
    }
    if (at !== to) throw new Error("the profile's data is damaged: there are more numbers than meant");
  }

  /** All has been read. */
  get done() {
    return this.at === this.to;
  }
}

/** A string table in the making: bytes that grow, cut into names at the end. */
export class NameBytes {
  /**
   * @param {number} count how many names there will be
   * @param {number} most bytes of all names together
   */
  constructor(count, most) {
    this.most = most;
    this.bytes = new Uint8Array(1 << 16);
    this.ends = new Int32Array(count);
    this.length = 0;
    this.last = 0;
  }

  /**
   * One more name: the first bytes of the one before, then these.
   * @param {number} index
   * @param {number} shared
   * @param {Uint8Array} rest
   */
  add(index, shared, rest) {
    const from = this.last;
    const at = this.length;
    if (shared > at - from) throw new Error("the profile's data is damaged: a name begins with too much");
    this.grow(at + shared + rest.length);
    this.bytes.copyWithin(at, from, from + shared);
    this.bytes.set(rest, at + shared);
    this.last = at;
    this.length = at + shared + rest.length;
    this.ends[index] = this.length;
  }

  /** @param {number} needed */
  grow(needed) {
    if (needed > this.most) throw new Error("the profile's data is damaged: its names are too long");
    if (needed <= this.bytes.length) return;
    const bytes = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
  }

  /** Names of plain ASCII are cut from one long text; decoding each by itself takes ten times as long. */
  strings() {
    const all = this.bytes.subarray(0, this.length);
    const text = ASCII_ONLY.decode(all);
    const plain = UTF8.decode(all) === text;
    /** @type {string[]} */
    const names = new Array(this.ends.length);
    let from = 0;
    for (let i = 0; i < names.length; i++) {
      const to = this.ends[i];
      names[i] = plain || isAscii(all, from, to) ? text.slice(from, to) : UTF8.decode(all.subarray(from, to));
      from = to;
    }
    return names;
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
function isAscii(bytes, from, to) {
  for (let i = from; i < to; i++) if (bytes[i] > 127) return false;
  return true;
}
