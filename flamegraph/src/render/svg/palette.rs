//! flamegraph.pl's palettes: the hue of a name, and the range of colours of each hue.

use std::str::FromStr;

use crate::profile::{Error, Kind, Result};

/// Red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

/// A palette by flamegraph.pl's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// From red to yellow.
    Hot,
    /// From green to blue.
    Mem,
    /// Wide blue.
    Io,
    /// Aqua.
    Wakeup,
    /// Wakers aqua, waiting frames blue.
    Chain,
    /// By annotation, or without one by the form of the class name.
    Java,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Blue.
    Blue,
    /// Aqua.
    Aqua,
    /// Yellow.
    Yellow,
    /// Purple.
    Purple,
    /// Orange.
    Orange,
}

/// Every palette and its name.
const PALETTES: &[(&str, Palette)] = &[
    ("hot", Palette::Hot),
    ("mem", Palette::Mem),
    ("io", Palette::Io),
    ("wakeup", Palette::Wakeup),
    ("chain", Palette::Chain),
    ("java", Palette::Java),
    ("red", Palette::Red),
    ("green", Palette::Green),
    ("blue", Palette::Blue),
    ("aqua", Palette::Aqua),
    ("yellow", Palette::Yellow),
    ("purple", Palette::Purple),
    ("orange", Palette::Orange),
];

impl FromStr for Palette {
    type Err = Error;

    fn from_str(name: &str) -> Result<Palette> {
        let found = PALETTES.iter().find(|(known, _)| *known == name);
        found.map(|(_, palette)| *palette).ok_or_else(|| {
            let known: Vec<&str> = PALETTES.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            Error::Usage(format!("unknown palette {name:?}; known are: {known}"))
        })
    }
}

impl Palette {
    /// The palette of one hue that a frame has in this palette.
    fn hue(self, name: &str, kind: Kind) -> Palette {
        match self {
            Palette::Wakeup => Palette::Aqua,
            Palette::Chain if kind == Kind::Waker || name.contains("_[w]") => Palette::Aqua,
            Palette::Chain => Palette::Blue,
            Palette::Java => java(name, kind),
            plain => plain,
        }
    }

    /// A frame's colour; `shade` picks within the range of its hue, three numbers from 0 to 1.
    pub(super) fn color(self, name: &str, kind: Kind, shade: [f64; 3]) -> Rgb {
        let [first, second, third] = shade;
        let step = |base: u8, range: f64, part: f64| base + (range * part) as u8;
        let mix = |red: (u8, f64), green: (u8, f64), blue: (u8, f64)| {
            (
                step(red.0, red.1, first),
                step(green.0, green.1, first),
                step(blue.0, blue.1, first),
            )
        };
        match self.hue(name, kind) {
            Palette::Hot => (
                step(205, 50.0, third),
                step(0, 230.0, first),
                step(0, 55.0, second),
            ),
            Palette::Mem => (0, step(190, 50.0, second), step(0, 210.0, first)),
            Palette::Io => {
                let low = step(80, 60.0, first);
                (low, low, step(190, 55.0, second))
            }
            Palette::Green => mix((50, 60.0), (200, 55.0), (50, 60.0)),
            Palette::Blue => mix((80, 60.0), (80, 60.0), (205, 50.0)),
            Palette::Yellow => mix((175, 55.0), (175, 55.0), (50, 20.0)),
            Palette::Purple => mix((190, 65.0), (80, 60.0), (190, 65.0)),
            Palette::Aqua => mix((50, 60.0), (165, 55.0), (165, 55.0)),
            Palette::Orange => mix((190, 65.0), (90, 65.0), (0, 0.0)),
            _ => mix((200, 55.0), (50, 80.0), (50, 80.0)),
        }
    }
}

/// inferno's rule: the annotation first, then the form of the name.
fn java(name: &str, kind: Kind) -> Palette {
    match kind {
        Kind::Kernel => return Palette::Orange,
        Kind::Inlined => return Palette::Aqua,
        Kind::Jit => return Palette::Green,
        _ => {}
    }
    if name.contains("::") || name.starts_with("-[") || name.starts_with("+[") {
        return Palette::Yellow;
    }
    let class = name.strip_prefix('L').unwrap_or(name);
    let is_java = class.contains('/')
        || (class.contains('.') && !class.starts_with('['))
        || class.starts_with(|letter: char| letter.is_ascii_uppercase());
    if is_java {
        Palette::Green
    } else {
        Palette::Red
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(palette: Palette, cases: &[(&str, Kind, Palette)]) {
        for (name, kind, hue) in cases {
            assert_eq!(palette.hue(name, *kind), *hue, "{name} {kind:?}");
        }
    }

    #[test]
    fn java_goes_by_annotation_then_by_the_shape_of_the_name() {
        check(
            Palette::Java,
            &[
                ("java/util/HashMap.get", Kind::Kernel, Palette::Orange),
                ("a::b", Kind::Jit, Palette::Green),
                ("memcpy", Kind::Inlined, Palette::Aqua),
                ("JavaThread::run", Kind::Interpreted, Palette::Yellow),
                ("-[NSView draw]", Kind::Plain, Palette::Yellow),
                ("java/lang/Thread.run", Kind::Plain, Palette::Green),
                ("Main", Kind::C1, Palette::Green),
                ("LMain", Kind::Plain, Palette::Green),
                ("Lmain", Kind::Plain, Palette::Red),
                ("[libc.so]", Kind::Plain, Palette::Red),
                ("start_thread", Kind::Waker, Palette::Red),
                ("", Kind::Plain, Palette::Red),
            ],
        );
    }

    #[test]
    fn chain_parts_wakers_from_what_waits() {
        check(
            Palette::Chain,
            &[
                ("ksoftirqd", Kind::Waker, Palette::Aqua),
                ("read", Kind::Kernel, Palette::Blue),
            ],
        );
    }

    #[test]
    fn every_shade_is_within_its_range() {
        for (_, palette) in PALETTES {
            for shade in [[0.0; 3], [0.5; 3], [1.0; 3]] {
                palette.color("java/A.b", Kind::Plain, shade);
            }
        }
        let color = |shade| Palette::Hot.color("f", Kind::Plain, shade);
        assert_eq!(color([0.0; 3]), (205, 0, 0));
        assert_eq!(color([1.0; 3]), (255, 230, 55));
    }
}
