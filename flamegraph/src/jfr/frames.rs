//! The frames of one stack after the other. Callers that a stack shares with the one before are not decoded again:
//! where threads are sampled often they are most of it.

use super::bytes::Cursor;
use super::names::Namer;
use super::pools::{Packed, Pools};
use crate::error::Result;
use crate::frames::Frame;
use crate::profile::Profile;
use crate::stack::shared_suffix;

/// The frames of the stack decoded last.
#[derive(Default)]
pub(super) struct Frames<'a> {
    /// How it lies in the chunk; nothing where callers cannot be told by their bytes.
    bytes: &'a [u8],
    /// Root first.
    frames: Vec<Frame>,
    /// For each frame how much it and its callers are.
    extents: Vec<Extent>,
    /// Those the stack before has not, leaf first, each with where its bytes begin before the end.
    own: Vec<(Frame, usize)>,
}

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Bytes in the chunk.
    packed: usize,
    /// Bytes as folded text.
    text: u64,
}

impl<'a> Frames<'a> {
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
        profile: &mut Profile,
        stack: &Packed<'a>,
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
            let frame = namer.method(profile, method, frame_type)?;
            self.own.push((frame, packed));
        }
        for &(frame, packed) in self.own.iter().rev() {
            let text = so_far.text + profile.frames.name_of(frame).len() as u64 + 1;
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
        let Some(innermost) = shared.checked_sub(1) else {
            return 0;
        };
        // It may be the end of a longer number here.
        let start = bytes.len() - self.extents[innermost].packed;
        let is_cut = start > 0 && bytes[start - 1] >= 0x80;
        shared - usize::from(is_cut)
    }
}
