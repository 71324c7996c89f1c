//! How the values of a type lie in a chunk, made ready for reading many of them.

use super::bytes::Cursor;
use super::metadata::{Field, Types};

/// Fields that are wanted of one type, at most.
pub(super) const SLOTS: usize = 8;
/// The values that were wanted; of a text or an array the place where it begins.
pub(super) type Slots = [u64; SLOTS];

/// Nested types deeper than any there are.
const MOST_DEPTH: usize = 8;
/// More steps than any type has: types within types can multiply.
const MOST_STEPS: usize = 4096;

/// How one value is read, and its slot. Unwanted values have a slot past the end.
#[derive(Clone, Debug)]
enum Step {
    Number(usize),
    Byte(usize),
    /// Four bytes: the bits of a `float`.
    Float(usize),
    Fixed(u64),
    Text(usize),
    /// A count, and as many times these steps.
    Many(usize, Box<[Step]>),
}

const UNWANTED: usize = SLOTS;

/// The steps for one type.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
    /// Which of the wanted fields the type has.
    found: [bool; SLOTS],
}

impl Layout {
    /// The layout of a type. `None`: the metadata lack a type that is needed, or nest endlessly.
    pub(super) fn of(types: &Types<'_>, class: u64, wanted: &[&str]) -> Option<Layout> {
        let mut maker = Maker {
            types,
            left: MOST_STEPS,
        };
        let mut layout = Layout::default();
        if let Some(step) = maker.primitive(class, 0) {
            layout.steps.push(step);
            layout.found[0] = true;
            return Some(layout);
        }
        for field in types.fields(class)? {
            let name = types.field_name(field);
            let slot = wanted.iter().position(|wanted| wanted.as_bytes() == name);
            if let Some(slot) = slot {
                *layout.found.get_mut(slot)? = true;
            }
            let slot = slot.unwrap_or(UNWANTED);
            maker.field(&mut layout.steps, *field, slot, 0)?;
        }
        Some(layout)
    }

    /// The same without the fields after the last wanted one.
    pub(super) fn shortened(mut self) -> Layout {
        let wanted = |step: &Step| match step {
            Step::Number(slot)
            | Step::Byte(slot)
            | Step::Float(slot)
            | Step::Text(slot)
            | Step::Many(slot, _) => *slot < SLOTS,
            Step::Fixed(_) => false,
        };
        let last = self.steps.iter().rposition(wanted);
        self.steps.truncate(last.map_or(0, |last| last + 1));
        self
    }

    /// What comes before the array of a slot, and whether nothing comes behind it.
    pub(super) fn before_array(&self, slot: usize) -> Option<(Layout, bool)> {
        let is_it = |step: &Step| matches!(step, Step::Many(array, _) if *array == slot);
        let place = self.steps.iter().position(is_it)?;
        let before = Layout {
            steps: self.steps[..place].to_vec(),
            found: [false; SLOTS],
        };
        Some((before, place + 1 == self.steps.len()))
    }

    /// If a value consists of numbers only: how many, and which of them go to the first two slots.
    pub(super) fn numbers(&self) -> Option<(usize, usize, usize)> {
        let is_number = |step: &Step| matches!(step, Step::Number(_));
        if !self.steps.iter().all(is_number) {
            return None;
        }
        let place = |slot| {
            let is_it = |step: &Step| matches!(step, Step::Number(other) if *other == slot);
            self.steps.iter().rposition(is_it)
        };
        Some((self.steps.len(), place(0)?, place(1)?))
    }

    /// How long the steps are that it consists of, those of arrays counted once.
    pub(super) fn len(&self) -> usize {
        let length = |step: &Step| match step {
            Step::Many(_, steps) => 1 + steps.len(),
            _ => 1,
        };
        self.steps.iter().map(length).sum()
    }

    pub(super) fn has(&self, slot: usize) -> bool {
        self.found[slot]
    }

    /// The layout of an element of a wanted array.
    pub(super) fn of_elements(
        types: &Types<'_>,
        class: u64,
        array: &str,
        wanted: &[&str],
    ) -> Option<Layout> {
        let mut fields = types.fields(class)?.iter();
        let field = fields.find(|field| types.field_name(field) == array.as_bytes())?;
        let plain = field.array && !field.pooled;
        plain.then(|| Layout::of(types, field.class, wanted))?
    }

    /// Reads one value of the type.
    #[inline]
    pub(super) fn read(&self, cursor: &mut Cursor<'_>, slots: &mut Slots) -> Option<()> {
        run(&self.steps, cursor, slots)
    }
}

fn run(steps: &[Step], cursor: &mut Cursor<'_>, slots: &mut Slots) -> Option<()> {
    for step in steps {
        let (slot, value) = match step {
            Step::Number(slot) => (slot, cursor.number()?),
            Step::Byte(slot) => (slot, u64::from(cursor.byte()?)),
            Step::Float(slot) => {
                let bits = cursor.take(4)?.iter();
                (
                    slot,
                    bits.fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
                )
            }
            Step::Fixed(length) => {
                cursor.take(*length)?;
                continue;
            }
            Step::Text(slot) => {
                let at = cursor.at();
                cursor.text()?;
                (slot, at as u64)
            }
            Step::Many(slot, steps) => {
                let at = cursor.at();
                pass_over(steps, cursor)?;
                (slot, at as u64)
            }
        };
        if let Some(slot) = slots.get_mut(*slot) {
            *slot = value;
        }
    }
    Some(())
}

/// Passes over an array. Steps are never empty, so that each element takes a byte at least.
fn pass_over(steps: &[Step], cursor: &mut Cursor<'_>) -> Option<()> {
    let count = cursor.number()?;
    if count > cursor.left() as u64 {
        return None;
    }
    if steps.iter().all(|step| matches!(step, Step::Number(_))) {
        return cursor.pass(count * steps.len() as u64);
    }
    let mut unwanted = Slots::default();
    for _ in 0..count {
        run(steps, cursor, &mut unwanted)?;
    }
    Some(())
}

/// Makes steps; `left` is how many more there may be.
struct Maker<'t, 'a> {
    types: &'t Types<'a>,
    left: usize,
}

impl Maker<'_, '_> {
    /// The step for a type that consists of no others.
    fn primitive(&self, class: u64, slot: usize) -> Option<Step> {
        Some(match self.types.class_name(class)? {
            b"boolean" | b"byte" => Step::Byte(slot),
            b"char" | b"short" | b"int" | b"long" => Step::Number(slot),
            b"float" => Step::Float(slot),
            b"double" => Step::Fixed(8),
            b"java.lang.String" => Step::Text(slot),
            _ => return None,
        })
    }

    fn field(
        &mut self,
        steps: &mut Vec<Step>,
        field: Field,
        slot: usize,
        depth: usize,
    ) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if field.array {
            let mut body = Vec::new();
            let mut element = field;
            element.array = false;
            self.field(&mut body, element, UNWANTED, depth + 1)?;
            if body.is_empty() {
                return None;
            }
            steps.push(Step::Many(slot, body.into()));
        } else if field.pooled {
            steps.push(Step::Number(slot));
        } else if let Some(step) = self.primitive(field.class, slot) {
            steps.push(step);
        } else {
            if depth >= MOST_DEPTH {
                return None;
            }
            for &inner in self.types.fields(field.class)? {
                self.field(steps, inner, UNWANTED, depth + 1)?;
            }
        }
        Some(())
    }
}
