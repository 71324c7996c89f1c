//! Call trees of stacks: formats in and out, merging, pictures.
