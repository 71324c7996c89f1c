//! The plain call tree as JSON: `docs/reference/formats.md` describes it. Also how JSON is written everywhere.

use std::io::Write;

use crate::profile::{Node, Order, Profile, Result, Step, ValueType, ROOT};

/// How many bytes are gathered before they are written.
const BLOCK_BYTES: usize = 64 << 10;

impl Profile {
    /// Writes the call tree as JSON, all values, as it is walked: no more than a path is held.
    pub fn write_json(&self, mut out: impl Write) -> Result<()> {
        let mut block = b"{\"values\":[".to_vec();
        for (index, value) in self.values().iter().enumerate() {
            separate(&mut block, index > 0);
            put_value(&mut block, value);
        }
        block.extend_from_slice(b"],\"labels\":");
        put_labels(&mut block, self);
        block.extend_from_slice(b",\"root\":");
        self.write_tree_json(&mut block, &mut out)?;
        block.extend_from_slice(b"}\n");
        out.write_all(&block)?;
        out.flush()?;
        Ok(())
    }

    fn write_tree_json(&self, block: &mut Vec<u8>, out: &mut impl Write) -> Result<()> {
        let columns = 0..self.values().len();
        let totals: Vec<Vec<i64>> = columns.map(|value| self.node_totals(value)).collect();
        let order = Order::of(self);
        let mut after_sibling = false;
        for step in order.walk() {
            match step {
                Step::Enter(node) => {
                    separate(block, after_sibling);
                    self.put_node(block, node, &totals);
                    after_sibling = false;
                }
                Step::Leave(_) => {
                    block.extend_from_slice(b"]}");
                    after_sibling = true;
                }
            }
            if block.len() >= BLOCK_BYTES {
                out.write_all(block)?;
                block.clear();
            }
        }
        Ok(())
    }

    /// A node up to its children.
    fn put_node(&self, block: &mut Vec<u8>, node: Node, totals: &[Vec<i64>]) {
        let (name, kind, module) = if node == ROOT {
            ("", "root", None)
        } else {
            let frame = self.tree.frame(node);
            let (name, kind) = (self.frames.name_of(frame), frame.kind());
            (name, kind.word(), self.modules.get(name, kind))
        };
        block.extend_from_slice(b"{\"name\":");
        put_string(block, name);
        block.extend_from_slice(b",\"kind\":");
        put_string(block, kind);
        if let Some(module) = module {
            block.extend_from_slice(b",\"module\":");
            put_string(block, module);
        }
        block.extend_from_slice(b",\"self\":[");
        let columns = 0..totals.len();
        put_numbers(
            block,
            columns.map(|value| self.selves(value)[node as usize]),
        );
        block.extend_from_slice(b"],\"total\":[");
        put_numbers(block, totals.iter().map(|total| total[node as usize]));
        block.extend_from_slice(b"],\"children\":[");
    }
}

/// `{"name":"cpu","unit":"nanoseconds"}`
pub(crate) fn put_value(out: &mut Vec<u8>, value: &ValueType) {
    out.extend_from_slice(b"{\"name\":");
    put_string(out, &value.name);
    out.extend_from_slice(b",\"unit\":");
    put_string(out, &value.unit);
    out.push(b'}');
}

/// The labels as an object.
pub(crate) fn put_labels(out: &mut Vec<u8>, profile: &Profile) {
    out.push(b'{');
    for (index, (name, value)) in profile.labels().iter().enumerate() {
        separate(out, index > 0);
        put_string(out, name);
        out.push(b':');
        put_string(out, value);
    }
    out.push(b'}');
}

/// Numbers with commas between.
pub(crate) fn put_numbers(out: &mut Vec<u8>, numbers: impl Iterator<Item = i64>) {
    for (index, number) in numbers.enumerate() {
        separate(out, index > 0);
        let _ = write!(out, "{number}");
    }
}

pub(crate) fn separate(out: &mut Vec<u8>, wanted: bool) {
    if wanted {
        out.push(b',');
    }
}

/// A JSON string.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            0..=0x1f | 0x7f => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            other => out.push(other),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_written_with_totals() {
        let values = vec![ValueType::samples(), ValueType::cpu()];
        let mut profile = Profile::new(values);
        profile.add_stack(&["a_[j]", "\"b\"\n"], &[1, 10]).unwrap();
        profile.add_stack(&["a_[j]"], &[2, 20]).unwrap();
        profile.set_label("host", "h");
        let mut out = Vec::new();
        profile.write_json(&mut out).unwrap();
        let expected = concat!(
            r#"{"values":[{"name":"samples","unit":"count"},{"name":"cpu","unit":"nanoseconds"}],"labels":{"host":"h"},"#,
            r#""root":{"name":"","kind":"root","self":[0,0],"total":[3,30],"children":["#,
            r#"{"name":"a","kind":"jit","self":[2,20],"total":[3,30],"children":["#,
            r#"{"name":"\"b\"\u000a","kind":"plain","self":[1,10],"total":[1,10],"children":[]}]}]}}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
