//! The samples' labels `thread`: a frame of the stack if threads are requested, else ignored.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::tables::{decode, Strings};
use super::THREAD;
use crate::formats::pprof::proto;
use crate::ops::Threads;
use crate::profile::Result;

/// Most labels that are cached: an endless message may have endless labels.
const MOST_KNOWN: usize = 1 << 16;

/// Separates the labels of threads from others.
pub(super) struct ThreadLabels<'a, 's> {
    strings: &'s Strings<'a>,
    threads: Threads,
    /// For each label None if it is not a thread's, else the name of its frame, if it has one.
    known: HashMap<Vec<u8>, Option<Option<String>>, RandomState>,
    /// The previous sample's label of the thread.
    before: Vec<u8>,
}

impl<'a, 's> ThreadLabels<'a, 's> {
    pub(super) fn of(strings: &'s Strings<'a>, threads: Threads) -> ThreadLabels<'a, 's> {
        ThreadLabels {
            strings,
            threads,
            known: HashMap::default(),
            before: Vec::new(),
        }
    }

    /// Removes the thread's label from a sample's. `None`: it is the previous sample's. Else the frame's name, if the
    /// sample has one.
    pub(super) fn take_from(
        &mut self,
        labels: &mut Vec<&[u8]>,
        number: usize,
    ) -> Result<Option<Option<&str>>> {
        let mut found = None;
        let mut place = 0;
        while place < labels.len() {
            if self.is_thread(labels[place], number)? {
                found = Some(labels.remove(place));
            } else {
                place += 1;
            }
        }
        let label = found.unwrap_or_default();
        if label == self.before {
            return Ok(None);
        }
        if !label.is_empty() {
            // A later label may have evicted it from the cache.
            self.is_thread(label, number)?;
        }
        self.before.clear();
        self.before.extend_from_slice(label);
        let name = self.known.get(label).and_then(Option::as_ref);
        Ok(Some(name.and_then(Option::as_deref)))
    }

    fn is_thread(&mut self, label: &[u8], number: usize) -> Result<bool> {
        if let Some(known) = self.known.get(label) {
            return Ok(known.is_some());
        }
        let read: proto::Label = decode(label, "label of sample", number)?;
        let is_thread = self.strings.text(read.key)? == THREAD;
        let frame = match (is_thread, read.str) {
            (false, _) => None,
            (true, 0) => Some(self.threads.frame_of_label(&read.num.to_string())),
            (true, text) => Some(self.threads.frame_of_label(&self.strings.text(text)?)),
        };
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(label.to_vec(), frame);
        Ok(is_thread)
    }
}
