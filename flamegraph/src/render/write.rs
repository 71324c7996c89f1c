//! Writing a profile in whichever format, as a stream.

use std::io::Write;

use crate::profile::{Profile, Result};
use crate::render::svg;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    /// `root;...;leaf count`
    Folded,
    /// A picture that needs nothing else.
    Svg,
    /// A gzipped `profile.proto` message.
    Pprof,
    /// Our own, in the fewest bytes.
    Compact,
    /// The plain call tree.
    Json,
    /// Speedscope's JSON.
    #[cfg(feature = "formats")]
    Speedscope,
    /// OTLP profiles of opentelemetry-proto 1.10.
    Otlp,
}

/// How to write; each format looks at what concerns it.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Which value, where the format holds one (folded text, SVG). `None`: the first, and of a difference
    /// both, as two counts or as colours.
    pub value: Option<usize>,
    /// Folded text: put a frame's kind behind its name (`_[j]`).
    pub annotate: bool,
    /// pprof: an outermost frame in brackets, `[name]`, is each sample's label `thread` instead.
    pub thread_label: bool,
    /// How a picture is to look.
    pub svg: svg::Options,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            value: None,
            annotate: true,
            thread_label: false,
            svg: svg::Options::default(),
        }
    }
}

/// What there is to know of a format: its name, and how its files' names end.
struct Entry {
    format: WriteFormat,
    name: &'static str,
    endings: &'static [&'static str],
}

const fn entry(format: WriteFormat, name: &'static str, endings: &'static [&'static str]) -> Entry {
    Entry {
        format,
        name,
        endings,
    }
}

/// Every format; of endings that fit, the first counts.
const FORMATS: &[Entry] = &[
    entry(WriteFormat::Folded, "folded", &[".folded"]),
    entry(WriteFormat::Svg, "svg", &[".svg"]),
    entry(WriteFormat::Pprof, "pprof", &[".pb.gz", ".pprof"]),
    entry(WriteFormat::Compact, "compact", &[".hpt"]),
    #[cfg(feature = "formats")]
    entry(
        WriteFormat::Speedscope,
        "speedscope",
        &[".speedscope.json", ".speedscope"],
    ),
    entry(WriteFormat::Json, "json", &[".json"]),
    entry(WriteFormat::Otlp, "otlp-1.10", &[".otlp"]),
];

impl WriteFormat {
    /// Every format that can be written.
    pub fn all() -> impl Iterator<Item = WriteFormat> {
        FORMATS.iter().map(|entry| entry.format)
    }

    /// What the user calls it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// How its files' names end; the first is the usual one.
    pub fn endings(self) -> &'static [&'static str] {
        self.entry().endings
    }

    fn entry(self) -> &'static Entry {
        let mut entries = FORMATS.iter();
        // Every variant has its line above; a test walks them.
        entries
            .find(|entry| entry.format == self)
            .unwrap_or(&FORMATS[0])
    }

    /// The format a file of this name is to have.
    pub fn of_file_name(name: &str) -> Option<WriteFormat> {
        let fits = |entry: &&Entry| entry.endings.iter().any(|ending| name.ends_with(ending));
        FORMATS.iter().find(fits).map(|entry| entry.format)
    }
}

/// Writes a profile, the same bytes for the same profile; `out` should be buffered.
pub fn write(
    profile: &Profile,
    format: WriteFormat,
    out: &mut dyn Write,
    options: &WriteOptions,
) -> Result<()> {
    match format {
        WriteFormat::Folded => match options.value {
            None if profile.is_differential() => profile.write_differential(out, options.annotate),
            value => profile.write_folded(out, value.unwrap_or_default(), options.annotate),
        },
        WriteFormat::Svg => profile.write_svg(out, options.value.unwrap_or_default(), &options.svg),
        WriteFormat::Pprof if options.thread_label => profile.write_pprof_threads(out),
        WriteFormat::Pprof => profile.write_pprof(out),
        WriteFormat::Compact => profile.write_compact(out),
        WriteFormat::Json => profile.write_json(out),
        #[cfg(feature = "formats")]
        WriteFormat::Speedscope => profile.write_speedscope(out),
        WriteFormat::Otlp => profile.write_otlp(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_name_and_by_the_files_name() {
        for entry in FORMATS {
            assert_eq!(entry.format.name(), entry.name);
            for ending in entry.format.endings() {
                let name = format!("x{ending}");
                assert_eq!(
                    WriteFormat::of_file_name(&name),
                    Some(entry.format),
                    "{name}"
                );
            }
        }
        assert_eq!(WriteFormat::of_file_name("x.txt"), None);
    }
}
