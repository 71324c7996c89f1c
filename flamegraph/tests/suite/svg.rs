//! Pictures as a whole: differences, remainders, colours kept in a map, charts, and that they are streams.

use std::io::{self, Write};

use flamegraph::svg::{FlameChart, MinWidth, Options, Palette, Side};
use flamegraph::{Diff, Keep, Limits};

use crate::support::{samples, svg};

/// The line of the only frame of this name.
fn frame<'a>(picture: &'a str, name: &str) -> &'a str {
    let title = format!("<title>{name} (");
    let mut lines = picture.lines().filter(|line| line.contains(&title));
    let line = lines.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(lines.next().is_none(), "{name} twice");
    line
}

fn fill(picture: &str, name: &str) -> [u8; 3] {
    let line = frame(picture, name);
    let digits = &line[line.find("fill=\"#").unwrap() + 7..][..6];
    [0, 2, 4].map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
}

fn details<'a>(picture: &'a str, name: &str) -> &'a str {
    let line = frame(picture, name);
    &line[line.find(" (").unwrap() + 2..line.find(")</title>").unwrap()]
}

const CHANGED: &str =
    "run;up 10 30\nrun;down 30 10\nrun;same 50 50\nrun;old;older 10 0\nrun;new 0 10\n";

#[test]
fn growth_is_red_shrinking_is_blue_and_vanished_paths_are_listed() {
    let picture = svg(&samples(CHANGED), &Options::default());
    let [red, _, blue] = fill(&picture, "up");
    assert!(red > blue);
    let [red, _, blue] = fill(&picture, "down");
    assert!(blue > red);
    assert_eq!(details(&picture, "up"), "30 samples, 30.00%; +20.00%");
    assert_eq!(details(&picture, "down"), "10 samples, 10.00%; -20.00%");
    assert_eq!(details(&picture, "same"), "50 samples, 50.00%; 0.00%");
    assert_eq!(details(&picture, "new"), "10 samples, 10.00%; +10.00%, new");
    assert_eq!(details(&picture, "run"), "100 samples, 100.00%; 0.00%");
    assert!(!picture.contains("<title>old"));
    assert!(picture.contains("Vanished: 10.00% of before in 1 path (old 10.00%)<"));
    assert!(picture.contains("Differential Flame Graph"));
}

#[test]
fn the_strongest_colour_means_at_least_ten_points() {
    let colour = |after: u32| {
        let changed = format!("run;a 500 {after}\nrun;b 500 {}\n", 1000 - after);
        fill(&svg(&samples(&changed), &Options::default()), "a")
    };
    let [strong, pale] = [colour(600), colour(510)];
    assert_eq!(strong, colour(800));
    assert!(pale[0] > pale[2] && pale[1] > strong[1] + 50);
}

#[test]
fn widths_can_be_those_of_before_and_hues_can_be_switched() {
    let before = Options {
        width_from: Side::Before,
        ..Options::default()
    };
    let picture = svg(&samples(CHANGED), &before);
    assert_eq!(
        details(&picture, "old"),
        "10 samples, 10.00%; -10.00%, gone"
    );
    assert!(picture.contains("Appeared: 10.00% of after in 1 path (new 10.00%)<"));
    let negated = Options {
        negate: true,
        ..Options::default()
    };
    let picture = svg(&samples(CHANGED), &negated);
    let [red, _, blue] = fill(&picture, "up");
    assert!(blue > red);
    assert_eq!(details(&picture, "up"), "30 samples, 30.00%; -20.00%");
}

#[test]
fn a_change_is_that_of_everything_above() {
    let before = samples("a;b;c 10\na;b;d 30\n");
    let after = samples("a;b;c 30\na;b;d 10\n");
    let diff = Diff::of(&before, &after, 0, true).unwrap();
    let picture = svg(diff.tree(), &Options::default());
    assert!(details(&picture, "b").ends_with("; 0.00%"));
    assert!(details(&picture, "c").ends_with("; +50.00%"));
    // A method compiled in between has not vanished.
    let (before, after) = (samples("a;m_[0] 10\n"), samples("a;m_[j] 10\n"));
    let diff = Diff::of(&before, &after, 0, true).unwrap();
    assert!(svg(diff.tree(), &Options::default()).contains("Vanished: nothing<"));
}

#[test]
fn a_difference_without_one_side_is_an_error_or_all_new() {
    let profile = samples("a 0 5\nb 0 6\n");
    assert!(details(&svg(&profile, &Options::default()), "a").ends_with(", new"));
    let before = Options {
        width_from: Side::Before,
        ..Options::default()
    };
    let error = profile.write_svg(Vec::new(), 0, &before).err().unwrap();
    assert!(
        error.to_string().contains("no samples of before"),
        "{error}"
    );
    // One side alone is drawn as any value is.
    let picture = svg(&samples(CHANGED).select(&[0]).unwrap(), &Options::default());
    assert_eq!(details(&picture, "old"), "10 before, 10.00%");
}

#[test]
fn what_was_pruned_is_grey() {
    let profile = samples("a;b 900\na;c 1\na;d 2\na;e 3\n");
    let pruned = profile.pruned(Keep::Share(0.1)).unwrap();
    let palettes = [None, Some(Palette::Java), Some(Palette::Hot)];
    for palette in palettes {
        let options = Options {
            palette,
            ..Options::default()
        };
        let [red, green, blue] = fill(&svg(&pruned, &options), "(3 smaller frames)");
        assert!(
            red.abs_diff(blue) < 8 && red.abs_diff(green) < 8,
            "{palette:?}"
        );
    }
}

#[test]
fn hostile_text_is_escaped() {
    let hostile = "</text>\"><script>alert(1)</script>&]]>";
    let options = Options {
        title: hostile.into(),
        subtitle: hostile.into(),
        count_name: Some(hostile.into()),
        name_type: Some(hostile.into()),
        font: flamegraph::svg::Font {
            family: hostile.into(),
            ..Default::default()
        },
        ..Options::default()
    };
    let picture = svg(&samples(&format!("{hostile};b 5\n")), &options);
    assert_eq!(picture.matches("<script").count(), 1);
    assert_eq!(picture.matches("]]>").count(), 1);
    let mut chart = Vec::new();
    let text = format!("{hostile};b 5\n");
    let read = FlameChart::read(text.as_bytes(), false, &Limits::default()).unwrap();
    read.write_svg(&mut chart, &options).unwrap();
    assert_eq!(
        String::from_utf8(chart).unwrap().matches("<script").count(),
        1
    );
}

#[test]
fn a_long_subtitle_fits_the_picture() {
    let subtitle = |letters: usize| {
        let options = Options {
            subtitle: "n".repeat(letters),
            ..Options::default()
        };
        let picture = svg(&samples("a;b 5\n"), &options);
        let (_, line) = picture.split_once("id=\"subtitle\"").unwrap();
        line.split_once('>').unwrap().0.to_owned()
    };
    // 12 px letters of 0.59: 166 have room on 1180 px.
    assert!(!subtitle(166).contains("textLength"));
    let closer = " textLength=\"1180\" lengthAdjust=\"spacingAndGlyphs\"";
    assert!(subtitle(167).ends_with(closer), "{}", subtitle(167));
}

/// Remembers the largest block.
struct Blocks {
    largest: usize,
    total: usize,
}

impl Write for Blocks {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(block.len());
        self.total += block.len();
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_large_picture_comes_in_small_blocks() {
    let mut profile = samples("");
    for number in 0..50_000 {
        profile
            .add_stack(&[format!("f{number}"), "leaf".into()], &[1])
            .unwrap();
    }
    let every = Options {
        min_width: MinWidth::Pixels(0.0),
        ..Options::default()
    };
    let mut blocks = Blocks {
        largest: 0,
        total: 0,
    };
    profile.write_svg(&mut blocks, 0, &every).unwrap();
    assert!(blocks.total > 10_000_000, "{}", blocks.total);
    assert!(blocks.largest < 100_000, "{}", blocks.largest);
}
