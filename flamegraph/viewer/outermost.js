// @ts-check
/** Which frames of a tree are not below one of their own name: those that are counted once. */

/** @typedef {import("./profile.js").Shape} Shape */

/** @type {WeakMap<Shape, Uint8Array>} */
const outermostByTree = new WeakMap();

/**
 * For each node 1 if it stands below no other frame of its name. It depends on the tree alone, whatever the scope,
 * and is found out once.
 * @param {Shape} tree
 */
export function outermostOf(tree) {
  const found = outermostByTree.get(tree) ?? outermostFrames(tree);
  outermostByTree.set(tree, found);
  return found;
}

/** @param {Shape} tree */
function outermostFrames(tree) {
  const { count, name, end, parent } = tree;
  const outermost = new Uint8Array(count);
  const open = new Int32Array(tree.names.length);
  let last = 0;
  for (let node = 1; node < count; node++) {
    while (end[last] <= node) {
      if (last > 0) open[name[last]]--;
      last = parent[last];
    }
    if (open[name[node]]++ === 0) outermost[node] = 1;
    last = node;
  }
  return outermost;
}
