// @ts-check
/** The still pictures of readers without scripts, for those whose browser runs this but cannot show the page's data. */

import { make } from "./dom.js";

/** Takes the pictures out of what a browser that runs scripts passes over. */
export function showStill() {
  for (const skipped of document.querySelectorAll("noscript.still-picture")) {
    const written = new DOMParser().parseFromString(skipped.textContent ?? "", "text/html").querySelector("img");
    if (!written) continue;
    const picture = document.createElement("img");
    picture.src = written.src;
    picture.alt = written.alt;
    const figure = make("figure", "still");
    figure.append(picture);
    skipped.replaceWith(figure);
  }
}
