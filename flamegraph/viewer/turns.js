// @ts-check
/** Work that may take longer than one picture: it begins when the picture is there, and goes on in turns with the page. */

/** After so many milliseconds of work the page gets its turn. */
const TURN = 8;

/**
 * Does all of it, unless somebody stops it.
 * @param {Iterator<void>} work stops for a moment wherever somebody else may go first
 * @param {() => boolean} stopped
 * @returns {Promise<boolean>} whether all was done
 */
export async function inTurns(work, stopped) {
  // A page that nobody looks at is not drawn, and may read on.
  if (!document.hidden) await new Promise((drawn) => requestAnimationFrame(drawn));
  for (let turn = true; turn; ) {
    await new Promise((resolve) => setTimeout(resolve));
    if (stopped()) return false;
    turn = isLeft(work);
  }
  return true;
}

/**
 * One turn.
 * @param {Iterator<void>} work
 * @returns {boolean} whether anything is left to do
 */
function isLeft(work) {
  const begin = performance.now();
  do {
    if (work.next().done) return false;
  } while (performance.now() - begin < TURN);
  return true;
}
