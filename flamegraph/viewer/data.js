// @ts-check
/** From a data block of the page to a profile. Nothing is ever fetched: the page carries its data. */

import { readProfile } from "./profile.js";

/** @typedef {import("./profile.js").Profile} Profile */

/** @type {Map<string, Promise<Profile>>} */
const loaded = new Map();

/**
 * The profile in the data block of that id; decoded once, when it is first asked for.
 * @param {string} id
 */
export function loadProfile(id) {
  let profile = loaded.get(id);
  if (!profile) {
    profile = decode(id);
    loaded.set(id, profile);
  }
  return profile;
}

/** @param {string} id */
async function decode(id) {
  const block = document.getElementById(id);
  if (!block || !block.textContent) throw new Error("the page carries no data for this scope");
  const packed = fromBase64(block.textContent.trim());
  return readProfile(await inflate(packed));
}

/** @param {string} text */
function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} packed a zlib stream */
async function inflate(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * What the page says about itself.
 * @typedef {{id: string, label: string, group: string, data: string, note: string}} Scope
 * @returns {{scopes: Scope[]}}
 */
export function readPage() {
  return JSON.parse(document.getElementById("hprofiler-page")?.textContent || '{"scopes": []}');
}
