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
   * Fields that are numbers, by field.
   * @param {Record<number, number>} fields
   */
  numbers(fields) {
    for (const [field, value] of Object.entries(fields)) {
      this.varint(Number(field) * 8);
      this.varint(value);
    }
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
   * A nested message, which `fill` puts into `inner`. `inner` is reused.
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

/**
 * The profile with the event's value, and the second one where there is one.
 * @param {Profile} profile
 */
export function toPprof(profile) {
  const { parent, event } = profile;
  const [out, inner, packed] = [new Message(), new Message(), new Message()];
  /** @type {Blob[]} */
  const pieces = [];
  const flush = () => {
    pieces.push(new Blob([out.written().slice()]));
    out.length = 0;
  };
  /** @type {Map<string, number>} */
  const strings = new Map([["", 0]]);
  const idOf = (/** @type {string} */ text) => {
    const id = strings.get(text) ?? strings.size;
    strings.set(text, id);
    return id;
  };
  for (const { type, unit } of event.second ? [event, event.second] : [event]) {
    out.message(SAMPLE_TYPE, inner, () => inner.numbers({ 1: idOf(type), 2: idOf(unit) }));
  }
  out.numbers({ [DEFAULT_SAMPLE_TYPE]: idOf(event.type) });

  /** Modules as mappings. @type {Map<string, number>} */
  const mappings = new Map();
  /** @type {(module: string) => number} */
  const mappingOf = (module) => {
    const known = mappings.get(module);
    if (known) return known;
    // The first has no name, and another end than the next one's begin: pprof takes it for the program.
    const id = module && mappings.size === 0 ? mappingOf("") + 1 : mappings.size + 1;
    mappings.set(module, id);
    out.message(MAPPING, inner, () => inner.numbers({ 1: id, 3: id === 1 ? 1 : 0, 5: idOf(module), 7: 1 }));
    return id;
  };
  // A function and a location, of the same id, for each frame.
  const { numbers, first } = numberFrames(profile);
  for (const [number, node] of first.entries()) {
    const id = number + 1;
    out.message(FUNCTION, inner, () => {
      inner.numbers({ 1: id, 2: idOf(profile.nameOf(node)), 3: idOf(annotated(profile, node)) });
    });
    const module = moduleOf(profile, node);
    const mapping = module ? mappingOf(module) : 0;
    out.message(LOCATION, inner, () => {
      inner.numbers(mapping ? { 1: id, 2: mapping } : { 1: id });
      inner.message(4, packed, () => packed.numbers({ 1: id }));
    });
  }
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
  for (const text of strings.keys()) out.content(STRING, UTF8_BYTES.encode(text));
  flush();
  const gzipped = new Blob(pieces).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(gzipped, { headers: { "Content-Type": "application/gzip" } }).blob();
}
