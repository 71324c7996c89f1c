// @ts-check
/** Folded pieces of the page: which of them the reader opened or closed is kept in the address, by their numbers. */

/**
 * @param {(folds: string) => void} changed
 * @returns {(folds: string) => void} brings the pieces into that state; "" is as they were written
 */
export function followFolds(changed) {
  const pieces = [...document.querySelectorAll("main details")].filter((one) => one instanceof HTMLDetailsElement);
  const written = pieces.map((piece) => piece.open);
  const told = () => pieces.flatMap((piece, at) => (piece.open === written[at] ? [] : [at])).join(".");
  let shown = "";
  for (const piece of pieces) {
    piece.addEventListener("toggle", () => {
      if (told() === shown) return;
      shown = told();
      changed(shown);
    });
  }
  return (folds) => {
    if (folds === shown) return;
    const turned = new Set(folds.split("."));
    pieces.forEach((piece, at) => (piece.open = written[at] !== turned.has(String(at))));
    shown = told();
  };
}
