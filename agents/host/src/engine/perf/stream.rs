//! The beginning of what perf writes to a pipe: which events it opened.

const MAGIC: &[u8; 8] = b"PERFILE2";
const HEADER: usize = 16;
/// The type of a record that describes an event.
const ATTR: u32 = 64;
const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;

/// An event as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    pub kind: u32,
    pub config: u64,
}

impl Opened {
    pub fn is_cpu_clock(&self) -> bool {
        (self.kind, self.config) == (SOFTWARE, CPU_CLOCK)
    }
}

/// The events that are described; none where this is no recording.
pub fn events(bytes: &[u8]) -> Vec<Opened> {
    let mut events = Vec::new();
    if !bytes.starts_with(MAGIC) {
        return events;
    }
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let Some((kind, body)) = record(&mut rest) {
        if kind == ATTR {
            events.extend(opened(body));
        }
    }
    events
}

/// The type and the content of the next record.
fn record<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let kind = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?);
    let size = usize::from(u16::from_ne_bytes(rest.get(6..8)?.try_into().ok()?));
    let body = rest.get(8..size)?;
    *rest = &rest[size..];
    Some((kind, body))
}

fn opened(body: &[u8]) -> Option<Opened> {
    Some(Opened {
        kind: u32::from_ne_bytes(body.get(..4)?.try_into().ok()?),
        config: u64::from_ne_bytes(body.get(8..16)?.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64) -> Vec<u8> {
        let mut record = ATTR.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend(24u16.to_ne_bytes());
        record.extend(kind.to_ne_bytes());
        record.extend(0u32.to_ne_bytes());
        record.extend(config.to_ne_bytes());
        record
    }

    #[test]
    fn events_of_a_stream() {
        let mut bytes = [&MAGIC[..], &16u64.to_ne_bytes()].concat();
        assert_eq!(events(&bytes), []);
        bytes.extend(attr(1, 0));
        bytes.extend(attr(0, 3));
        let want = [Opened { kind: 1, config: 0 }, Opened { kind: 0, config: 3 }];
        assert_eq!(events(&bytes), want);
        assert!(want[0].is_cpu_clock() && !want[1].is_cpu_clock());
        for end in 0..bytes.len() {
            assert!(events(&bytes[..end]).len() < 2);
        }
        // A record without a size would go on for ever.
        bytes[16 + 6..16 + 8].fill(0);
        assert_eq!(events(&bytes), []);
        assert_eq!(events(b"no recording at all"), []);
    }
}
