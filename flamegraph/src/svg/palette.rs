//! Colours: a hue for what a frame is, a shade for its name.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::frames::Kind;

/// A set of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// By annotation where there is one, by the shape of the name where there is none.
    Java,
    /// Warm colours without a meaning.
    Hot,
}

impl FromStr for Palette {
    type Err = Error;

    fn from_str(name: &str) -> Result<Palette> {
        match name {
            "java" => Ok(Palette::Java),
            "hot" => Ok(Palette::Hot),
            other => Err(Error::Usage(format!(
                "unknown palette {other:?}; known are: hot, java"
            ))),
        }
    }
}

/// Red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

/// A hue: its colour at full strength, from which shades go towards white.
const JIT: Rgb = (92, 200, 92);
const C1: Rgb = (176, 208, 84);
const INTERPRETED: Rgb = (158, 214, 170);
const INLINED: Rgb = (84, 198, 198);
const KERNEL: Rgb = (240, 150, 50);
const WAKER: Rgb = (150, 140, 230);
const CPP: Rgb = (214, 196, 62);
const NATIVE: Rgb = (226, 100, 88);
const GROUP: Rgb = (176, 176, 184);
const HOT: Rgb = (232, 110, 36);

impl Palette {
    /// The colour of a frame: always the same for the same name and kind.
    pub(super) fn color(self, name: &str, kind: Kind) -> Rgb {
        let hue = match self {
            Palette::Java => java_hue(name, kind),
            Palette::Hot => HOT,
        };
        shade(hue, name)
    }
}

fn java_hue(name: &str, kind: Kind) -> Rgb {
    match kind {
        Kind::Jit => JIT,
        Kind::C1 => C1,
        Kind::Interpreted => INTERPRETED,
        Kind::Inlined => INLINED,
        Kind::Kernel => KERNEL,
        Kind::Waker => WAKER,
        Kind::Plain if name.starts_with('[') => GROUP,
        Kind::Plain if name.contains("::") => CPP,
        Kind::Plain if is_java(name) => JIT,
        Kind::Plain => NATIVE,
    }
}

/// `java/util/HashMap.get`, `java.lang.String[]`, `Main.run`: words parted by `/` or `.`, one of which
/// starts with a capital as a class does; or a package nobody else uses. A path of a file is not one.
fn is_java(name: &str) -> bool {
    let name = name.split('(').next().unwrap_or(name);
    if name.starts_with('/') || !name.contains(['/', '.']) {
        return false;
    }
    let package = name.split(['/', '.']).next().unwrap_or(name);
    matches!(package, "java" | "javax" | "jdk" | "sun" | "com" | "org")
        || name
            .split(['/', '.'])
            .any(|word| word.starts_with(char::is_uppercase))
}

/// Lightens a hue by up to a third, by the hash of the name.
fn shade(hue: Rgb, name: &str) -> Rgb {
    let part = hash(name) % 256;
    let lighten = |color: u8| color + (u32::from(255 - color) * part / 256 / 3) as u8;
    (lighten(hue.0), lighten(hue.1), lighten(hue.2))
}

/// FNV-1a, folded: the colours must not change with the process or the version.
fn hash(name: &str) -> u32 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_comes_first_then_the_shape_of_the_name() {
        for (name, kind, hue) in [
            ("libjvm.so", Kind::Jit, JIT),
            ("do_syscall_64", Kind::Kernel, KERNEL),
            ("java/util/HashMap.get", Kind::Inlined, INLINED),
            ("java/util/HashMap.get", Kind::Plain, JIT),
            ("java.lang.Thread.run", Kind::Plain, JIT),
            ("org.apache.a.b", Kind::Plain, JIT),
            ("Main.burn", Kind::Plain, JIT),
            ("B.lambda$main$0(I)V", Kind::Plain, JIT),
            ("Foo$$Lambda.0x00007f.run", Kind::Plain, JIT),
            ("/usr/lib/Foo.so", Kind::Plain, NATIVE),
            ("JavaThread::run()", Kind::Plain, CPP),
            ("libc.so.6", Kind::Plain, NATIVE),
            ("__GI___clone", Kind::Plain, NATIVE),
            ("[unknown_Java]", Kind::Plain, GROUP),
        ] {
            assert_eq!(java_hue(name, kind), hue, "{name}");
        }
    }

    #[test]
    fn a_name_keeps_its_colour() {
        assert_eq!(
            Palette::Java.color("a.B.c", Kind::Jit),
            Palette::Java.color("a.B.c", Kind::Jit)
        );
        assert_ne!(
            Palette::Java.color("a.B.c", Kind::Jit),
            Palette::Java.color("a.B.d", Kind::Jit)
        );
    }
}
