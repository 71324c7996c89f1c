// @ts-check
/** Where the page's script begins. A page without data (nothing was recorded) needs none. */

import { readPage } from "./data.js";
import { Explorer } from "./explorer.js";

const { scopes } = readPage();
if (scopes.length > 0) {
  document.documentElement.classList.add("live");
  void new Explorer(scopes).start();
}
