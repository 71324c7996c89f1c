//! How much memory the command lines of one scan may take: any user can start many processes with very many words.

use std::collections::HashMap;

/// Bytes that a word takes beside its letters: its place in a list, and the allocator's own.
const WORD: usize = 56;
/// What all command lines of one scan may take, and those of one user, in bytes.
const ALL: usize = 64 << 20;
const OF_USER: usize = 32 << 20;
/// What each may take where the others have taken all of that.
const LEAST: usize = 2 << 10;

/// What is left of it.
pub struct Budget {
    left: usize,
    users: HashMap<u32, usize>,
}

impl Budget {
    pub fn new() -> Self {
        Self {
            left: ALL,
            users: HashMap::new(),
        }
    }

    /// How much the next process of this user may take.
    pub fn of(&self, uid: u32) -> usize {
        let of_user = self.users.get(&uid).copied().unwrap_or(OF_USER);
        of_user.min(self.left).max(LEAST)
    }

    /// It took so much; what is beyond its user's part is not taken from the others.
    pub fn take(&mut self, uid: u32, bytes: usize) {
        let of_user = self.users.entry(uid).or_insert(OF_USER);
        let counted = bytes.min(*of_user);
        *of_user -= counted;
        self.left = self.left.saturating_sub(counted);
    }
}

/// Keep the first of the words, as many as there is room for. Whole ones: part of a secret would not look like one.
pub fn keep(words: &mut Vec<String>, room: &mut usize) {
    let fit = words.iter().take_while(|word| {
        let left = room.checked_sub(word.len() + WORD);
        *room = left.unwrap_or(0);
        left.is_some()
    });
    let fit = fit.count();
    words.truncate(fit);
    words.shrink_to_fit();
}

/// What words take, in bytes.
pub fn size(words: &[String]) -> usize {
    words.iter().map(|word| word.len() + WORD).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_much_leaves_the_others_theirs() {
        let mut budget = Budget::new();
        for _ in 0..10_000 {
            budget.take(7, budget.of(7) / 2);
        }
        assert_eq!((budget.of(7), budget.of(8)), (LEAST, OF_USER));
    }

    #[test]
    fn all_users_together_take_no_more_than_there_is() {
        let mut budget = Budget::new();
        let most = |budget: &mut Budget, uid| {
            let bytes = budget.of(uid);
            budget.take(uid, bytes);
            bytes
        };
        let taken: usize = (0..1000).map(|uid| most(&mut budget, uid)).sum();
        assert!(taken <= ALL + 1000 * LEAST, "{taken}");
        assert_eq!(budget.of(1000), LEAST);
    }

    #[test]
    fn whole_words_are_kept_while_there_is_room() {
        let words = ["one".to_owned(), "x".repeat(100), "two".to_owned()];
        for (room, kept) in [(1000, 3), (300, 3), (WORD + 3, 1), (WORD + 102, 1), (9, 0)] {
            let (mut some, mut left) = (words.to_vec(), room);
            keep(&mut some, &mut left);
            assert_eq!(some, words[..kept], "{room}");
            assert!(size(&some) + left <= room, "{room}");
        }
    }
}
