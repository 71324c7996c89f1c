// @ts-check
/** How wide texts are on the canvas. Plain ones are as wide as their letters together: asking for each text takes longer. */

const FONT_FAMILY = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
export const FONT = `12px ${FONT_FAMILY}`;
const PLAIN = 128;
const LONGEST_MEASURED = 500;
const MOST_KEPT = 50_000;
const CUT = "…";

export class Ruler {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    /** Of each plain letter; NaN until it was asked for. */
    this.letters = new Float64Array(PLAIN).fill(NaN);
    /** Of texts with other letters, which may join. @type {Map<string, number>} */
    this.texts = new Map();
  }

  /** A canvas forgets it with each new size. */
  prepare() {
    this.context.font = FONT;
    this.context.fontKerning = "none";
  }

  /** @param {string} text */
  widthOf(text) {
    if (text.length > LONGEST_MEASURED) return Infinity;
    let width = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code >= PLAIN) return this.asked(text);
      width += this.letterOf(code);
    }
    return width;
  }

  /**
   * As much of a text as there is room for; "" where that would be next to nothing.
   * @param {string} text
   * @param {number} room in pixels
   */
  fit(text, room) {
    if (this.widthOf(text) <= room) return text;
    const least = this.lettersIn(text, room - this.asked(CUT));
    return least < 2 ? "" : `${text.slice(0, least)}${CUT}`;
  }

  /**
   * How many of its letters fit into the room.
   * @param {string} text
   * @param {number} room
   */
  lettersIn(text, room) {
    let width = 0;
    let at = 0;
    for (; at < text.length && width <= room; at++) {
      const code = text.charCodeAt(at);
      width += code < PLAIN ? this.letterOf(code) : this.asked(text.slice(at, at + 1));
    }
    return width <= room ? at : at - 1;
  }

  /** @param {number} code of a plain letter */
  letterOf(code) {
    if (Number.isNaN(this.letters[code])) this.letters[code] = this.measured(String.fromCharCode(code));
    return this.letters[code];
  }

  /** @param {string} text */
  asked(text) {
    let width = this.texts.get(text);
    if (width === undefined) {
      if (this.texts.size > MOST_KEPT) this.texts.clear();
      this.texts.set(text, (width = this.measured(text)));
    }
    return width;
  }

  /** @param {string} text */
  measured(text) {
    this.prepare();
    return this.context.measureText(text).width;
  }
}
