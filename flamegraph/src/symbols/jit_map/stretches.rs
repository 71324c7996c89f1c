//! Finds the piece of code at an address; pieces may overlap.

use std::collections::BinaryHeap;

/// A stretch of addresses that belongs to one piece of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    start: u64,
    end: u64,
    code: u32,
}

/// The addresses that a map gives for a piece of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) code: u32,
}

/// Which of several claims to an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    First,
    Last,
}

/// The claims without overlaps, in order. Claims come in the order of their codes.
///
/// A sweep over starts and ends with a heap of the open claims takes n log n, whatever the overlaps.
pub(super) fn settle(mut claims: Vec<Claim>, stands: Stands) -> Vec<Stretch> {
    claims.retain(|claim| claim.start < claim.end);
    claims.sort_by_key(|claim| claim.start);
    let ends = |claim: &Claim| [claim.start, claim.end];
    let mut bounds: Vec<u64> = claims.iter().flat_map(ends).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let rank = |claim: &Claim| match stands {
        Stands::First => u32::MAX - claim.code,
        Stands::Last => claim.code,
    };
    let mut open: BinaryHeap<(u32, usize)> = BinaryHeap::new();
    let mut stretches: Vec<Stretch> = Vec::with_capacity(claims.len());
    let mut next = 0;
    for bound in bounds.windows(2) {
        while claims
            .get(next)
            .is_some_and(|claim| claim.start <= bound[0])
        {
            open.push((rank(&claims[next]), next));
            next += 1;
        }
        while open
            .peek()
            .is_some_and(|&(_, top)| claims[top].end <= bound[0])
        {
            open.pop();
        }
        if let Some(&(_, top)) = open.peek() {
            extend(&mut stretches, bound[0], bound[1], claims[top].code);
        }
    }
    stretches
}

fn extend(stretches: &mut Vec<Stretch>, start: u64, end: u64, code: u32) {
    match stretches.last_mut() {
        Some(last) if last.end == start && last.code == code => last.end = end,
        _ => stretches.push(Stretch { start, end, code }),
    }
}

/// The code at this address.
pub(super) fn find(stretches: &[Stretch], address: u64) -> Option<usize> {
    let after = stretches.partition_point(|stretch| stretch.start <= address);
    let last = stretches[..after].last()?;
    (address < last.end).then_some(last.code as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a table of every address, for many claims over few addresses.
    #[test]
    fn at_each_address_the_first_or_the_last_claim_stands() {
        let claims: Vec<Claim> = (0u64..200)
            .map(|code| {
                let start = code * 7919 % 251;
                let end = start + code * 31 % 40;
                let code = code as u32;
                Claim { start, end, code }
            })
            .collect();
        for stands in [Stands::First, Stands::Last] {
            let stretches = settle(claims.clone(), stands);
            for address in 0..300 {
                let mut there = claims
                    .iter()
                    .filter(|claim| (claim.start..claim.end).contains(&address));
                let expected = match stands {
                    Stands::First => there.next(),
                    Stands::Last => there.next_back(),
                };
                let expected = expected.map(|claim| claim.code as usize);
                assert_eq!(find(&stretches, address), expected, "{address} {stands:?}");
            }
        }
    }
}
