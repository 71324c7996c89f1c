//! Golden files: each `tests/golden/flamegraph/NAME.folded` has its expected outputs beside it.
//! `HPROFILER_BLESS=1 cargo test -p flamegraph golden` rewrites them; a missing one fails.

use std::fs;
use std::path::{Path, PathBuf};

use flamegraph::svg::{Background, Font, MinWidth, Options, Palette};
use flamegraph::{read, Profile, ReadOptions};

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

fn inputs() -> Vec<PathBuf> {
    let folder = Path::new("../tests/golden/flamegraph");
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "folded")
    });
    inputs.sort();
    inputs
}

#[test]
fn outputs_are_as_expected() {
    let bless = std::env::var_os("HPROFILER_BLESS").is_some();
    assert!(!inputs().is_empty());
    let mut wrong = Vec::new();
    for input in inputs() {
        let profile = read(&fs::read(&input).unwrap(), &ReadOptions::default()).unwrap();
        for (extension, render) in OUTPUTS {
            let (path, output) = (input.with_extension(extension), render(&profile));
            if bless {
                fs::write(&path, output).unwrap();
            } else if fs::read(&path).ok().as_ref() != Some(&output) {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not as expected (HPROFILER_BLESS=1 rewrites): {wrong:#?}"
    );
}
