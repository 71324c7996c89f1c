//! The frames of one stack after the other. Callers that a stack shares with the one before are not decoded again:
//! where threads are sampled often they are most of it.

use super::bytes::Cursor;
use super::names::Namer;
use super::pools::{Packed, Pools};
use crate::formats::suffix::shared_suffix;
use crate::profile::{Frame, Frames, Result};

/// The frames of the stack decoded last.
#[derive(Default)]
pub(super) struct StackFrames<'a> {
    /// How it lies in the chunk; nothing where callers cannot be told by their bytes.
    bytes: &'a [u8],
    /// Root first.
    frames: Vec<Frame>,
    /// For each frame how much it and its callers are.
    extents: Vec<Extent>,
    /// Those the stack before has not, leaf first, each with the bytes that it and its callers are, and those of
    /// its name.
    own: Vec<(Frame, usize, u32)>,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Bytes in the chunk.
    packed: usize,
    /// Bytes as folded text.
    text: u64,
}

impl<'a> StackFrames<'a> {
    /// Root first.
    pub(super) fn root_first(&self) -> &[Frame] {
        &self.frames
    }

    /// How long the stack is as folded text.
    pub(super) fn text_bytes(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.text)
    }

    /// Takes the place of the stack before.
    pub(super) fn decode(
        &mut self,
        stack: &Packed<'a>,
        names: &mut Frames,
        (pools, namer): (&Pools<'a>, &mut Namer<'a>),
    ) -> Result<()> {
        let shared = self.shared(stack.bytes);
        self.frames.truncate(shared);
        self.extents.truncate(shared);
        let mut so_far = self.extents.last().copied().unwrap_or_default();
        self.own.clear();
        let mut cursor = Cursor::new(stack.bytes, 0);
        for _ in 0..stack.count {
            let packed = cursor.left();
            if shared > 0 && packed <= so_far.packed {
                break;
            }
            let Some((method, frame_type)) = pools.frame(&mut cursor) else {
                break;
            };
            let (frame, name_bytes) = namer.method(names, method, frame_type)?;
            self.own.push((frame, packed, name_bytes));
        }
        for &(frame, packed, name_bytes) in self.own.iter().rev() {
            let text = so_far.text + u64::from(name_bytes) + 1;
            so_far = Extent { packed, text };
            self.frames.push(frame);
            self.extents.push(so_far);
        }
        let by_bytes = pools.frames_are_numbers();
        self.bytes = if by_bytes { stack.bytes } else { &[] };
        Ok(())
    }

    /// How many callers a stack has in common with the one before.
    fn shared(&self, bytes: &[u8]) -> usize {
        let same = shared_suffix(bytes, self.bytes);
        let shared = self.extents.partition_point(|extent| extent.packed <= same);
        // Behind such a byte a number begins for sure: what begins elsewhere may be the end of a longer one here.
        let begins = |extent: &Extent| match bytes.len() - extent.packed {
            0 => true,
            start => bytes[start - 1] < 0x80,
        };
        let innermost = self.extents[..shared].iter().rposition(begins);
        innermost.map_or(0, |innermost| innermost + 1)
    }
}
