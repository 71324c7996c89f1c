// @ts-check
/** What charts and tables of sections ask of the keys of their rows. */

/** Where else a key leads to. @typedef {{text: string, act: () => void}} Link */
/**
 * `leads` says whether there is anything else of a key, `choose` shows only what belongs to it, or all again for "".
 * @typedef {object} Keys
 * @property {(key: string) => boolean} leads
 * @property {(key: string) => void} choose
 * @property {(key: string) => Link | null} linkOf
 */
export {};
