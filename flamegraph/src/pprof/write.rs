//! Writing pprof: samples are encoded one by one as the tree is walked.

use std::collections::HashMap;
use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;

use crate::error::Result;
use crate::frames::Kind;
use crate::profile::Profile;
use crate::proto::{self, field};
use crate::tree::ROOT;
use crate::walk::{Order, Step};
use crate::wire::{put_bytes, put_message};

/// How many bytes are gathered before they are written.
const BLOCK_BYTES: usize = 64 << 10;

impl Profile {
    /// Writes gzipped pprof, the same bytes for the same profile; labels stand on every sample.
    pub fn write_pprof(&self, out: impl Write) -> Result<()> {
        let mut out = GzEncoder::new(out, Compression::default());
        let mut strings = Strings::new();
        let mut block = Vec::new();
        for value in self.values() {
            let (name, unit) = (strings.id(&value.name), strings.id(&value.unit));
            put_message(
                &mut block,
                field::SAMPLE_TYPE,
                &proto::ValueType { r#type: name, unit },
            );
        }
        let labels: Vec<proto::Label> = self
            .labels()
            .iter()
            .map(|(name, value)| proto::Label {
                key: strings.id(name),
                str: strings.id(value),
                num: 0,
            })
            .collect();
        let locations = put_frames(self, &mut strings, &mut block);
        write_samples(self, &locations, labels, &mut block, &mut out)?;
        for string in &strings.in_order {
            put_bytes(&mut block, field::STRING, string.as_bytes());
        }
        out.write_all(&block)?;
        out.finish()?.flush()?;
        Ok(())
    }
}

/// The string table as it grows; the empty string is always the first.
struct Strings {
    in_order: Vec<String>,
    ids: HashMap<String, i64>,
}

impl Strings {
    fn new() -> Strings {
        let mut strings = Strings {
            in_order: Vec::new(),
            ids: HashMap::new(),
        };
        strings.id("");
        strings
    }

    fn id(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.in_order.len() as i64;
        self.in_order.push(text.to_string());
        self.ids.insert(text.to_string(), id);
        id
    }
}

/// One function and one location, of the same id, for each frame in name order; returns the ids by frame index.
fn put_frames(profile: &Profile, strings: &mut Strings, block: &mut Vec<u8>) -> Vec<u32> {
    let mut frames = profile.used_frames();
    let ranks = profile.frames.ranks();
    frames.sort_unstable_by_key(|frame| (ranks[frame.name() as usize], frame.kind()));
    let mut ids = vec![0; profile.frames.index_len()];
    for (id, &frame) in (1u32..).zip(&frames) {
        ids[frame.index()] = id;
        let plain = profile.frames.name_of(frame);
        let name = strings.id(plain);
        let system_name = match frame.kind() {
            Kind::Plain => name,
            kind => strings.id(&format!("{plain}{}", kind.suffix())),
        };
        let id = u64::from(id);
        put_message(
            block,
            field::FUNCTION,
            &proto::Function {
                id,
                name,
                system_name,
            },
        );
        let line = vec![proto::Line { function_id: id }];
        put_message(
            block,
            field::LOCATION,
            &proto::Location {
                id,
                address: 0,
                line,
            },
        );
    }
    ids
}

fn write_samples(
    profile: &Profile,
    locations: &[u32],
    labels: Vec<proto::Label>,
    block: &mut Vec<u8>,
    out: &mut impl Write,
) -> Result<()> {
    let columns: Vec<&[i64]> = (0..profile.values().len())
        .map(|value| profile.selves(value))
        .collect();
    let mut sample = proto::Sample {
        label: labels,
        ..proto::Sample::default()
    };
    for step in Order::of(profile).walk() {
        let Step::Enter(leaf) = step else { continue };
        // A profile without samples has one empty sample, which carries its labels.
        let carrier = leaf == ROOT && profile.is_empty() && !sample.label.is_empty();
        if !carrier && columns.iter().all(|column| column[leaf as usize] == 0) {
            continue;
        }
        sample.value.clear();
        sample
            .value
            .extend(columns.iter().map(|column| column[leaf as usize]));
        sample.location_id.clear();
        let mut node = leaf;
        while node != ROOT {
            sample
                .location_id
                .push(u64::from(locations[profile.tree.frame(node).index()]));
            node = profile.tree.parent(node);
        }
        put_message(block, field::SAMPLE, &sample);
        if block.len() >= BLOCK_BYTES {
            out.write_all(block)?;
            block.clear();
        }
    }
    Ok(())
}
