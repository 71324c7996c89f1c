//! Dealing a whole out in proportion, so that nothing is lost to rounding.

/// Deals a whole out in proportion to parts. Rounding is of the running sum, so the parts add up to the
/// whole exactly, and any run of neighbours (such as a subtree) is off by at most one.
pub(crate) struct Split {
    whole: u128,
    parts: u128,
    /// How many low bits of the parts are left out, for the product with the whole to fit.
    shift: u32,
    seen: u128,
    given: u128,
}

impl Split {
    /// `parts` is the sum of what will be passed to [`next`](Split::next).
    pub(crate) fn new(whole: u128, parts: u128) -> Split {
        let spare = whole.leading_zeros() + parts.leading_zeros();
        let shift = (u128::BITS + 1).saturating_sub(spare);
        Split {
            whole,
            parts: (parts >> shift).max(1),
            shift,
            seen: 0,
            given: 0,
        }
    }

    pub(crate) fn next(&mut self, part: u128) -> i64 {
        self.seen += part;
        let due = ((self.seen >> self.shift) * self.whole + self.parts / 2) / self.parts;
        let amount = due - self.given;
        self.given = due;
        amount as i64
    }
}

/// A count times a factor above zero, rounded; none when it does not fit. Exact: no digit of a large
/// count is lost on the way, as it would be in floating point.
pub(crate) fn times(count: i64, factor: f64) -> Option<i64> {
    if count == 0 {
        return Some(0);
    }
    let bits = factor.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    // A number too small to have the leading one has the exponent of the smallest that has.
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    let product = i128::from(count) * i128::from(mantissa);
    let scaled = match exponent {
        // The product has at least 53 bits: more than 63 of them fit into no count.
        11.. => return None,
        0.. => product << exponent,
        // 63 bits times 53: from here on not even a half is left.
        ..=-118 => 0,
        _ => (product + (1i128 << (-exponent - 1))) >> -exponent,
    };
    i64::try_from(scaled).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_whole_is_dealt_out_exactly() {
        let one = 1u128 << 64;
        let parts = [one << 20, 1, one, 12345];
        let mut split = Split::new(i64::MAX as u128, parts.iter().sum());
        let dealt: Vec<i64> = parts.iter().map(|&part| split.next(part)).collect();
        assert_eq!(dealt.iter().sum::<i64>(), i64::MAX);
        assert!(dealt[0] > dealt[2] && dealt[2] > dealt[3]);
    }

    #[test]
    fn equal_wholes_leave_the_parts_as_they_are() {
        let parts = [5, 0, i64::MAX as u128 - 7, 2];
        let mut split = Split::new(i64::MAX as u128, parts.iter().sum());
        assert!(parts.iter().all(|&part| split.next(part) as u128 == part));
    }

    #[test]
    fn a_count_times_a_factor_is_exact() {
        assert_eq!(times(7, 1.0), Some(7));
        assert_eq!(times(i64::MAX, 1.0), Some(i64::MAX));
        assert_eq!(times(i64::MAX, 0.5), Some(1 << 62));
        assert_eq!(times(3, 0.5), Some(2), "a half goes up");
        assert_eq!(times(100, 1e-3), Some(0));
        assert_eq!(times(99, 10_101_010.0), Some(999_999_990));
        assert_eq!(times(1, 9.0e18), Some(9_000_000_000_000_000_000));
        assert_eq!(times(2, 9.0e18), None);
        assert_eq!(times(1, f64::MAX), None);
        assert_eq!(times(0, f64::MAX), Some(0));
        assert_eq!(times(i64::MAX, f64::MIN_POSITIVE / 4.0), Some(0));
    }
}
