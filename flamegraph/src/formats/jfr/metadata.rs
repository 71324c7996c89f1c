//! The metadata of a chunk: which types there are, and which fields they have.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::Cursor;

/// Most texts and elements. A few bytes can claim any number of them.
const MOST_TEXTS: u64 = 1 << 20;
const MOST_ELEMENTS: usize = 1 << 22;

/// A field of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Field {
    /// The number of its name.
    name: usize,
    pub(super) class: u64,
    /// A number refers to the value, in the pool of its type.
    pub(super) pooled: bool,
    pub(super) array: bool,
}

#[derive(Debug, Default)]
struct Class {
    id: u64,
    name: usize,
    fields: Vec<Field>,
}

/// The types of a chunk.
pub(super) struct Types<'a> {
    texts: Vec<Cow<'a, [u8]>>,
    classes: Vec<Class>,
    by_id: HashMap<u64, usize, RandomState>,
}

impl<'a> Types<'a> {
    /// Reads a metadata event, from its fields on. `None`: it is damaged.
    pub(super) fn read(mut cursor: Cursor<'a>) -> Option<Types<'a>> {
        for _start_duration_id in 0..3 {
            cursor.number()?;
        }
        let count = cursor.number().filter(|&count| count <= MOST_TEXTS)?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(cursor.text()?.utf8());
        }
        let classes = read_classes(&mut cursor, &texts)?;
        let by_id = classes.iter().enumerate();
        let by_id = by_id.map(|(index, class)| (class.id, index)).collect();
        Some(Types {
            texts,
            classes,
            by_id,
        })
    }

    /// The number of the type of this name.
    pub(super) fn id(&self, name: &str) -> Option<u64> {
        let found = |class: &&Class| *self.texts[class.name] == *name.as_bytes();
        self.classes.iter().rev().find(found).map(|class| class.id)
    }

    /// The numbers and names of the types with a field of this name.
    pub(super) fn with_field<'t>(
        &'t self,
        field: &'t [u8],
    ) -> impl Iterator<Item = (u64, &'t [u8])> {
        let has_it = move |class: &&Class| {
            let mut fields = class.fields.iter();
            fields.any(|of_class| *self.texts[of_class.name] == *field)
        };
        let found = self.classes.iter().filter(has_it);
        found.map(|class| (class.id, &*self.texts[class.name]))
    }

    pub(super) fn fields(&self, class: u64) -> Option<&[Field]> {
        let class = &self.classes[*self.by_id.get(&class)?];
        Some(&class.fields)
    }

    pub(super) fn class_name(&self, class: u64) -> Option<&[u8]> {
        let class = &self.classes[*self.by_id.get(&class)?];
        Some(&self.texts[class.name])
    }

    pub(super) fn field_name(&self, field: &Field) -> &[u8] {
        &self.texts[field.name]
    }
}

/// Classes and their fields; the elements are nested, everything but these two is passed over.
fn read_classes(cursor: &mut Cursor<'_>, texts: &[Cow<'_, [u8]>]) -> Option<Vec<Class>> {
    let mut classes: Vec<Class> = Vec::new();
    // For each open element the number of elements still to come in it, and its class.
    let mut open: Vec<(u64, Option<usize>)> = vec![(1, None)];
    let mut elements_left = MOST_ELEMENTS;
    while let Some((left, class)) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        elements_left = elements_left.checked_sub(1)?;
        let mut class = *class;
        let (name, attributes) = (cursor.number()?, cursor.number()?);
        let element = Attributes::read(cursor, attributes, texts)?;
        match &*texts[index(name, texts)?] {
            b"class" => {
                class = Some(classes.len());
                classes.push(Class {
                    id: element.id,
                    name: element.field.name,
                    fields: Vec::new(),
                });
            }
            b"field" => classes.get_mut(class?)?.fields.push(element.field),
            _ => {}
        }
        open.push((cursor.number()?, class));
    }
    Some(classes)
}

fn index(number: u64, texts: &[Cow<'_, [u8]>]) -> Option<usize> {
    usize::try_from(number)
        .ok()
        .filter(|&index| index < texts.len())
}

/// The attributes of an element that matter: of a class its number and name.
#[derive(Default)]
struct Attributes {
    id: u64,
    field: Field,
}

impl Attributes {
    fn read(cursor: &mut Cursor<'_>, count: u64, texts: &[Cow<'_, [u8]>]) -> Option<Attributes> {
        let mut attributes = Attributes::default();
        let field = &mut attributes.field;
        for _ in 0..count {
            let key = index(cursor.number()?, texts)?;
            let value = index(cursor.number()?, texts)?;
            match &*texts[key] {
                b"name" => field.name = value,
                b"id" => attributes.id = decimal(&texts[value])?,
                b"class" => field.class = decimal(&texts[value]).unwrap_or(0),
                b"constantPool" => field.pooled = *texts[value] == *b"true",
                b"dimension" => field.array = *texts[value] != *b"0",
                _ => {}
            }
        }
        Some(attributes)
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
