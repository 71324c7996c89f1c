//! The colour of each bar.

use super::change::Change;
use super::layout::Bar;
use super::options::Options;
use super::palette::Rgb;
use super::shade;
use crate::ops::smaller_frames;
use crate::profile::Kind;

const ROOT: Rgb = (205, 205, 208);
/// The colour of the placeholder for frames that were left out.
const REMAINDER: Rgb = (190, 190, 194);
/// The frames `-` and `--`, with which flamegraph.pl's users separate stacks.
const SEPARATOR: Rgb = (200, 200, 200);
const STRONG_SEPARATOR: Rgb = (160, 160, 160);

/// The colour of a bar.
pub(super) fn color(bar: &Bar<'_>, options: &Options, change: Option<&Change>) -> Rgb {
    match bar.name {
        _ if bar.level == 0 => return ROOT,
        "--" => return STRONG_SEPARATOR,
        "-" => return SEPARATOR,
        name if smaller_frames(name).is_some() => return REMAINDER,
        _ => {}
    }
    if let (Some(change), Some(sides)) = (change, bar.sides) {
        return change.color(sides);
    }
    let shade = match options.hash {
        true => shade::by_letters(&format!("{}{}", bar.name, bar.kind.suffix())),
        false => shade::by_name(bar.name),
    };
    match options.palette {
        Some(palette) => palette.color(bar.name, bar.kind, shade),
        None => default_color(bar.name, bar.kind, shade[0]),
    }
}

/// Hues at full strength; shades are lighter.
const JIT: Rgb = (92, 200, 92);
const C1: Rgb = (176, 208, 84);
const INTERPRETED: Rgb = (158, 214, 170);
const INLINED: Rgb = (84, 198, 198);
const KERNEL: Rgb = (240, 150, 50);
const WAKER: Rgb = (150, 140, 230);
const CPP: Rgb = (214, 196, 62);
const NATIVE: Rgb = (226, 100, 88);
const GROUP: Rgb = (176, 176, 184);

/// The colour of a frame; `shade` from 0 to 1 lightens its hue by up to a third.
fn default_color(name: &str, kind: Kind, shade: f64) -> Rgb {
    let hue = hue(name, kind);
    let part = (shade * 256.0) as u32;
    let lighten = |color: u8| color + (u32::from(255 - color) * part / 256 / 3) as u8;
    (lighten(hue.0), lighten(hue.1), lighten(hue.2))
}

fn hue(name: &str, kind: Kind) -> Rgb {
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

/// `java/util/HashMap.get`, `java.lang.String[]`, `Main.run`: words separated by `/` or `.`, one with a capital first
/// letter like a class; or a package that only Java uses. File paths do not count.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_comes_first_then_the_shape_of_the_name() {
        for (name, kind, expected) in [
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
            assert_eq!(hue(name, kind), expected, "{name}");
        }
    }

    #[test]
    fn shades_go_towards_white() {
        assert_eq!(default_color("f", Kind::Jit, 0.0), JIT);
        assert_eq!(default_color("f", Kind::Jit, 1.0), (146, 218, 146));
    }
}
