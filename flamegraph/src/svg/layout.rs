//! Which frames are drawn, and where.

use super::Options;
use crate::profile::Profile;
use crate::tree::Node;
use crate::walk::{Order, Step};

/// Space left and right of the frames, in pixels.
pub(super) const PAD: u32 = 10;

/// One frame of the picture, in the units of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) node: Node,
    /// 0 is the root.
    pub(super) level: u32,
    pub(super) start: i64,
    pub(super) length: i64,
}

/// The frames wide enough to be seen, in depth-first order.
pub(super) struct Layout {
    pub(super) bars: Vec<Bar>,
    pub(super) levels: u32,
    /// The length of the root: the whole.
    pub(super) total: i64,
    /// Pixels for one unit.
    pub(super) scale: f64,
}

impl Layout {
    /// Lays out one value. Children stand side by side from where their parent starts; what is the
    /// parent's own stays free on the right.
    pub(super) fn of(profile: &Profile, options: &Options) -> Layout {
        let totals = profile.node_totals(options.value);
        let total = totals[0];
        let scale = f64::from(options.width - 2 * PAD) / total as f64;
        let mut layout = Layout {
            bars: Vec::new(),
            levels: 0,
            total,
            scale,
        };
        let order = Order::of(profile);
        let mut walk = order.walk();
        // Where the next child starts, for each node on the path.
        let mut starts: Vec<i64> = vec![0];
        while let Some(step) = walk.next() {
            let Step::Enter(node) = step else {
                starts.pop();
                continue;
            };
            let level = starts.len() - 1;
            let (start, length) = (starts[level], totals[node as usize]);
            starts[level] += length;
            starts.push(start);
            if length == 0 || length as f64 * scale < options.min_width {
                walk.skip_children();
                continue;
            }
            layout.levels = layout.levels.max(level as u32 + 1);
            layout.bars.push(Bar {
                node,
                level: level as u32,
                start,
                length,
            });
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::ValueType;

    fn profile(stacks: &[(&[&str], i64)]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for (stack, count) in stacks {
            profile.add_stack(stack, &[*count]).unwrap();
        }
        profile
    }

    #[test]
    fn children_stand_in_name_order_from_their_parents_start() {
        let profile = profile(&[(&["b"], 1), (&["a", "y"], 2), (&["a", "x"], 3), (&["a"], 4)]);
        let layout = Layout::of(&profile, &Options::default());
        let places: Vec<_> = layout
            .bars
            .iter()
            .map(|bar| (bar.level, bar.start, bar.length))
            .collect();
        assert_eq!(
            places,
            [(0, 0, 10), (1, 0, 9), (2, 0, 3), (2, 3, 2), (1, 9, 1)]
        );
        assert_eq!(layout.levels, 3);
    }

    #[test]
    fn frames_too_narrow_are_left_out_with_all_above_them() {
        let profile = profile(&[(&["a"], 100_000), (&["b", "c"], 1), (&["d"], 50_000)]);
        let layout = Layout::of(&profile, &Options::default());
        let starts: Vec<_> = layout.bars.iter().map(|bar| bar.start).collect();
        assert_eq!(
            starts,
            [0, 0, 100_001],
            "the space of what is left out stays free"
        );
        assert_eq!(layout.levels, 2);
    }
}
