//! Records packed by `perf record -z`, without what unpacks them: the feature `formats`.

/// Takes no record; see `unpack.rs` for one that does.
#[derive(Default)]
pub(crate) struct Unpacker {}

impl Unpacker {
    pub(crate) fn feed(&mut self, _packed: &[u8]) -> Result<(), String> {
        Err("packed records (perf record -z) cannot be read here".into())
    }

    pub(crate) fn in_use(&self) -> bool {
        false
    }

    pub(crate) fn finish(&mut self) {}

    pub(crate) fn next(&mut self, _big_endian: bool) -> Option<&[u8]> {
        None
    }
}
