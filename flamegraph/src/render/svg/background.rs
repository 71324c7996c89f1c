//! The background of a picture.

use std::str::FromStr;

use super::palette::{Palette, Rgb};
use crate::profile::{Error, Result};

/// A background: one of flamegraph.pl's gradients, or one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// From grey to a pale yellow.
    Yellow,
    /// From grey to a pale blue.
    Blue,
    /// From grey to a pale green.
    Green,
    /// From light grey to grey.
    Grey,
    /// One colour.
    Flat(u8, u8, u8),
}

/// The background for our own colours.
const OURS: Background = Background::Flat(0xfb, 0xfa, 0xf5);

impl FromStr for Background {
    type Err = Error;

    fn from_str(name: &str) -> Result<Background> {
        match name {
            "yellow" => Ok(Background::Yellow),
            "blue" => Ok(Background::Blue),
            "green" => Ok(Background::Green),
            "grey" => Ok(Background::Grey),
            other => flat(other).ok_or_else(|| {
                Error::Usage(format!(
                    "unknown background {other:?}; known are: yellow, blue, green, grey, #rrggbb"
                ))
            }),
        }
    }
}

fn flat(text: &str) -> Option<Background> {
    let digits = text.strip_prefix('#')?;
    if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    Some(Background::Flat(part(0)?, part(2)?, part(4)?))
}

impl Background {
    /// The background that suits a palette.
    pub(super) fn of(palette: Option<Palette>) -> Background {
        use Palette::*;
        match palette {
            None => OURS,
            Some(Mem) => Background::Green,
            Some(Io | Wakeup | Chain) => Background::Blue,
            Some(Red | Green | Blue | Aqua | Yellow | Purple | Orange) => Background::Grey,
            Some(Hot | Java) => Background::Yellow,
        }
    }

    /// The colours at the top and at the bottom.
    pub(super) fn ends(self) -> [Rgb; 2] {
        match self {
            Background::Yellow => [(0xee, 0xee, 0xee), (0xee, 0xee, 0xb0)],
            Background::Blue => [(0xee, 0xee, 0xee), (0xe0, 0xe0, 0xff)],
            Background::Green => [(0xee, 0xf2, 0xee), (0xe0, 0xff, 0xe0)],
            Background::Grey => [(0xf8, 0xf8, 0xf8), (0xe8, 0xe8, 0xe8)],
            Background::Flat(red, green, blue) => [(red, green, blue); 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_has_a_name_or_is_a_colour() {
        assert_eq!("grey".parse::<Background>().unwrap(), Background::Grey);
        assert_eq!(
            "#0aFf10".parse::<Background>().unwrap(),
            Background::Flat(10, 255, 16)
        );
        for wrong in ["pink", "#12345", "#12345g", "#é2345", "#+12345", ""] {
            let error = wrong.parse::<Background>().err().unwrap().to_string();
            assert!(error.contains("known are: yellow"), "{error}");
        }
    }
}
