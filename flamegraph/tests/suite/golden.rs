//! Golden files: each `tests/golden/flamegraph/NAME.folded` has its expected outputs beside it.
//! Beside each file of another tool in `tests/golden/formats` is what is read of it.
//! `HPROFILER_BLESS=1 cargo test -p flamegraph golden` rewrites them; a missing one fails.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flamegraph::svg::{Background, Font, MinWidth, Options, Palette};
use flamegraph::{read, Profile, ReadOptions};

pub const OTHER_TOOLS: &str = "../tests/golden/formats";

type Render = fn(&Profile) -> Vec<u8>;

const OUTPUTS: &[(&str, Render)] = &[
    ("sorted.txt", |profile| folded(profile, true)),
    ("plain.txt", |profile| folded(profile, false)),
    ("svg", |profile| svg(profile, Options::default())),
    ("icicle.svg", |profile| {
        svg(
            profile,
            Options {
                inverted: true,
                palette: Some(Palette::Hot),
                width: 600,
                ..Options::default()
            },
        )
    }),
    ("asked.svg", |profile| svg(profile, asked())),
];

/// Every option with another value than its default.
fn asked() -> Options {
    Options {
        palette: Some(Palette::Java),
        background: Some(Background::Flat(255, 255, 255)),
        hash: true,
        frame_height: 24,
        min_width: MinWidth::Percent(2.0),
        font: Font {
            family: "Courier \"New\"".into(),
            size: 18.0,
            width: 0.6,
        },
        count_name: Some("ticks".into()),
        name_type: Some("Method:".into()),
        reverse: true,
        factor: 0.5,
        ..Options::default()
    }
}

fn folded(profile: &Profile, annotate: bool) -> Vec<u8> {
    let mut out = Vec::new();
    profile.write_folded(&mut out, 0, annotate).unwrap();
    out
}

/// Without its script, which is the same in all.
fn svg(profile: &Profile, look: Options) -> Vec<u8> {
    let options = Options {
        title: "Where <time> goes".into(),
        subtitle: "3 of 3 hosts".into(),
        ..look
    };
    let mut out = Vec::new();
    profile.write_svg(&mut out, 0, &options).unwrap();
    let picture = String::from_utf8(out).unwrap();
    let (frames, rest) = picture.split_once("<script>").unwrap();
    let (_, end) = rest.split_once("</script>").unwrap();
    format!("{frames}{end}").into_bytes()
}

/// The files of a folder with this extension, or with any but this.
fn inputs(folder: &str, extension: &str, has: bool) -> Vec<PathBuf> {
    let folder = Path::new(folder);
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.retain(|path| (path.extension().is_some_and(|found| found == extension)) == has);
    inputs.sort();
    inputs
}

/// Everything that is read of a file: each value as folded text, and what was left out.
fn all_values(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    for (value, meaning) in profile.values().iter().enumerate() {
        writeln!(out, "# {meaning}").unwrap();
        profile.write_folded(&mut out, value, true).unwrap();
    }
    for (name, value) in profile.labels() {
        writeln!(out, "# label {name}: {value}").unwrap();
    }
    for (name, module) in profile.modules() {
        writeln!(out, "# module {name}: {module}").unwrap();
    }
    writeln!(out, "# malformed: {}", profile.malformed_lines()).unwrap();
    for warning in profile.warnings() {
        writeln!(out, "# warning: {warning}").unwrap();
    }
    out
}

/// Compares each output with the file that it should equal, or writes it.
fn check(outputs: impl Iterator<Item = (PathBuf, Vec<u8>)>) {
    let bless = std::env::var_os("HPROFILER_BLESS").is_some();
    let mut wrong = Vec::new();
    for (path, output) in outputs {
        if bless {
            fs::write(&path, output).unwrap();
        } else if fs::read(&path).ok().as_ref() != Some(&output) {
            wrong.push(path.display().to_string());
        }
    }
    assert!(
        wrong.is_empty(),
        "not as expected (HPROFILER_BLESS=1 rewrites): {wrong:#?}"
    );
}

#[test]
fn outputs_are_as_expected() {
    let inputs = inputs("../tests/golden/flamegraph", "folded", true);
    assert!(!inputs.is_empty());
    check(inputs.iter().flat_map(|input| {
        let profile = read(&fs::read(input).unwrap(), &ReadOptions::default()).unwrap();
        let outputs = OUTPUTS.iter();
        outputs.map(move |(extension, render)| (input.with_extension(extension), render(&profile)))
    }));
}

#[test]
fn files_of_other_tools_are_read() {
    let inputs = inputs(OTHER_TOOLS, "txt", false);
    assert!(!inputs.is_empty());
    check(inputs.iter().map(|input| {
        let profile = read(&fs::read(input).unwrap(), &ReadOptions::default()).unwrap();
        (input.with_extension("txt"), all_values(&profile))
    }));
}
