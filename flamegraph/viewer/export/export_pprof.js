// @ts-check
/** pprof: profile.proto's messages, gzipped. Field numbers are those of the published schema. */

import { moduleOf } from "../data/frame_kinds.js";
import { annotated, eachStack, numberFrames } from "./export_text.js";

/** @import { Profile } from "../data/profile.js" */

const SAMPLE_TYPE = 1;
const SAMPLE = 2;
const MAPPING = 3;
const LOCATION = 4;
const FUNCTION = 5;
const STRING = 6;
const DEFAULT_SAMPLE_TYPE = 14;
const PIECE_BYTES = 1 << 20;
const UTF8_BYTES = new TextEncoder();

/** A message in the making. */
class Message {
  constructor() {
    this.bytes = new Uint8Array(256);
    this.length = 0;
  }

  /** @param {number} more */
  grow(more) {
    if (this.length + more <= this.bytes.length) return;
    const bytes = new Uint8Array(Math.max(this.length + more, this.bytes.length * 2));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
  }

  /** @param {number} value a whole number up to 2^53 */
  varint(value) {
    this.grow(10);
    while (value > 127) {
      this.bytes[this.length++] = (value % 128) | 128;
      value = Math.floor(value / 128);
    }
    this.bytes[this.length++] = value;
  }

  /**
   * @param {number} field
   * @param {number} value
   */
  number(field, value) {
    this.varint(field * 8);
    this.varint(value);
  }

  /**
   * @param {number} field
   * @param {Uint8Array} content
   */
  content(field, content) {
    this.varint(field * 8 + 2);
    this.varint(content.length);
    this.grow(content.length);
    this.bytes.set(content, this.length);
    this.length += content.length;
  }

  /**
   * A message within: what `fill` puts into `inner`, which is used again and again.
   * @param {number} field
   * @param {Message} inner
   * @param {() => void} fill
   */
  message(field, inner, fill) {
    inner.length = 0;
    fill();
    this.content(field, inner.written());
  }

  written() {
    return this.bytes.subarray(0, this.length);
  }
}

class Strings {
  constructor() {
    /** @type {Map<string, number>} */
    this.ids = new Map([["", 0]]);
  }

  /** @param {string} text */
  id(text) {
    const id = this.ids.get(text) ?? this.ids.size;
    this.ids.set(text, id);
    return id;
  }
}

/** Modules as mappings. The first has no name, and another end than the next one's begin: pprof takes it for the program. */
class Mappings {
  /**
   * @param {Strings} strings
   * @param {Message} out
   */
  constructor(strings, out) {
    this.strings = strings;
    this.out = out;
    /** @type {Map<string, number>} */
    this.ids = new Map();
  }

  /** @param {string} module */
  id(module) {
    if (!module) return 0;
    if (this.ids.size === 0) this.put("", 1);
    return this.ids.get(module) ?? this.put(module, 0);
  }

  /**
   * @param {string} module
   * @param {number} end
   */
  put(module, end) {
    const id = this.ids.size + 1;
    this.ids.set(module, id);
    const inner = new Message();
    this.out.message(MAPPING, inner, () => {
      inner.number(1, id);
      inner.number(3, end);
      inner.number(5, this.strings.id(module));
      inner.number(7, 1);
    });
    return id;
  }
}

/**
 * The profile with the event's value, and the second one where there is one.
 * @param {Profile} profile
 */
export function toPprof(profile) {
  const strings = new Strings();
  const out = new Message();
  /** @type {Blob[]} */
  const pieces = [];
  putTypes(profile, strings, out);
  const numbers = putFrames(profile, strings, out);
  putSamples(profile, numbers, out, () => {
    pieces.push(new Blob([out.written().slice()]));
    out.length = 0;
  });
  for (const text of strings.ids.keys()) out.content(STRING, UTF8_BYTES.encode(text));
  pieces.push(new Blob([out.written().slice()]));
  const packed = new Blob(pieces).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(packed, { headers: { "Content-Type": "application/gzip" } }).blob();
}

/**
 * @param {Profile} profile
 * @param {Strings} strings
 * @param {Message} out
 */
function putTypes({ event }, strings, out) {
  const inner = new Message();
  for (const { type, unit } of event.second ? [event, event.second] : [event]) {
    out.message(SAMPLE_TYPE, inner, () => {
      inner.number(1, strings.id(type));
      inner.number(2, strings.id(unit));
    });
  }
  out.number(DEFAULT_SAMPLE_TYPE, strings.id(event.type));
}

/**
 * A function and a location, of the same id, for each frame.
 * @param {Profile} profile
 * @param {Strings} strings
 * @param {Message} out
 */
function putFrames(profile, strings, out) {
  const { numbers, first } = numberFrames(profile);
  const mappings = new Mappings(strings, out);
  const inner = new Message();
  const line = new Message();
  for (const [number, node] of first.entries()) {
    const id = number + 1;
    out.message(FUNCTION, inner, () => {
      inner.number(1, id);
      inner.number(2, strings.id(profile.nameOf(node)));
      inner.number(3, strings.id(annotated(profile, node)));
    });
    const mapping = mappings.id(moduleOf(profile, node));
    out.message(LOCATION, inner, () => {
      inner.number(1, id);
      if (mapping) inner.number(2, mapping);
      inner.message(4, line, () => line.number(1, id));
    });
  }
  return numbers;
}

/**
 * @param {Profile} profile
 * @param {Int32Array} numbers of the frames, by node
 * @param {Message} out
 * @param {() => void} flush is called when there is much
 */
function putSamples(profile, numbers, out, flush) {
  const { parent, event } = profile;
  const inner = new Message();
  const packed = new Message();
  let sum = 0;
  let written = 0;
  eachStack(profile, (leaf, amount) => {
    out.message(SAMPLE, inner, () => {
      inner.message(1, packed, () => {
        for (let at = leaf; at > 0; at = parent[at]) packed.varint(numbers[at] + 1);
      });
      inner.message(2, packed, () => {
        packed.varint(amount);
        if (!event.second) return;
        sum += amount;
        const second = Math.round(sum * event.second.per) - written;
        written += second;
        packed.varint(second);
      });
    });
    if (out.length >= PIECE_BYTES) flush();
  });
}
