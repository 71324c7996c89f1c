//! Reading many profiles at once and summing them up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::ops::MeanMerger;
use crate::profile::{values, Error, Merger, Profile, Result, ValueType};

/// Reads files with `read` on all processors and adds them up; none of no files.
///
/// Each processor adds up what it read, so that memory grows with distinct stacks and not with files. The
/// error is that of the first file in the list that has one. `read` says of its errors whose they are;
/// `name` does so where a file's values are not those of the first.
pub fn read_all<F: Sync>(
    files: &[F],
    read: impl Fn(&F) -> Result<Profile> + Sync,
    name: fn(&F, Error) -> Error,
) -> Result<Option<Profile>> {
    let shared = Shared::new(files.len());
    let mergers = on_all_processors(files.len(), || {
        let mut merger = Merger::new();
        shared.work(files, &read, |profile| merger.add(profile));
        merger
    });
    shared.check(files, name)?;
    let mut sum = Merger::new();
    for merger in mergers {
        if let Some(part) = merger.finish()? {
            sum.add(part)?;
        }
    }
    let mut sum = sum.finish()?;
    if let Some(sum) = &mut sum {
        shared.warn(sum);
    }
    Ok(sum)
}

/// The same for the host-fair mean; an error of no files. Only reading is shared out: what is read is added
/// to one sum, whose order does not matter.
pub fn read_mean<F: Sync>(
    files: &[F],
    read: impl Fn(&F) -> Result<Profile> + Sync,
    name: fn(&F, Error) -> Error,
) -> Result<Profile> {
    let shared = Shared::new(files.len());
    let mean = Mutex::new(MeanMerger::new());
    on_all_processors(files.len(), || {
        shared.work(files, &read, |profile| lock(&mean).add(&profile));
    });
    shared.check(files, name)?;
    let mut mean = lock(&mean).finish()?;
    shared.warn(&mut mean);
    Ok(mean)
}

/// What each thread makes, of as many threads as there are processors, and `most` at most.
pub(crate) fn on_all_processors<T: Send>(most: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let helpers = processors.min(most).saturating_sub(1);
    thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(&work)).collect();
        let mut made = vec![work()];
        for helper in helpers {
            match helper.join() {
                Ok(other) => made.push(other),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    })
}

/// What the threads have in common.
struct Shared {
    next: AtomicUsize,
    /// The first file that failed, by its place in the list, and how.
    failure: Mutex<Option<(usize, Error)>>,
    /// The values of each file, once it has been read.
    values: Mutex<Vec<Option<Vec<ValueType>>>>,
    /// What was said of files, by their place in the list.
    warnings: Mutex<Vec<(usize, Vec<String>)>>,
}

impl Shared {
    fn new(files: usize) -> Shared {
        Shared {
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
            values: Mutex::new(vec![None; files]),
            warnings: Mutex::new(Vec::new()),
        }
    }

    /// Takes file after file until there are no more or one failed.
    fn work<F>(
        &self,
        files: &[F],
        read: &impl Fn(&F) -> Result<Profile>,
        mut add: impl FnMut(Profile) -> Result<()>,
    ) {
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(place) else {
                return;
            };
            let mut profile = match read(file) {
                Ok(profile) => profile,
                Err(error) => return self.fail(place, error),
            };
            lock(&self.values)[place] = Some(profile.values().to_vec());
            lock(&self.warnings).push((place, profile.take_warnings()));
            match add(profile) {
                Ok(()) => {}
                // Which file does not fit depends on the first one, not on what was read first: see `check`.
                Err(Error::UnlikeValues { .. }) => return self.stop(),
                Err(error) => return self.fail(place, error),
            }
        }
    }

    /// Says of the sum what was said of the files, in their order.
    fn warn(&self, sum: &mut Profile) {
        let mut warnings = std::mem::take(&mut *lock(&self.warnings));
        warnings.sort_unstable_by_key(|&(place, _)| place);
        sum.add_warnings(warnings.into_iter().flat_map(|(_, warnings)| warnings));
    }

    /// Remembers the failure that comes first in the list; no further file is taken.
    fn fail(&self, place: usize, error: Error) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|&(first, _)| place < first) {
            *failure = Some((place, error));
        }
        self.stop();
    }

    fn stop(&self) {
        self.next.store(usize::MAX / 2, Ordering::Relaxed);
    }

    /// The first failure, or the first file that does not fit the very first.
    fn check<F>(&self, files: &[F], name: fn(&F, Error) -> Error) -> Result<()> {
        let values = lock(&self.values);
        let ours = values.first().and_then(Option::as_ref);
        let fits = |theirs: &Option<Vec<ValueType>>| {
            theirs.as_ref().is_none_or(|_| theirs.as_ref() == ours)
        };
        let failure = lock(&self.failure).take();
        match (
            failure,
            values.iter().position(|theirs| !fits(theirs)),
            ours,
        ) {
            (Some((place, error)), unlike, _) if unlike.is_none_or(|unlike| place < unlike) => {
                Err(error)
            }
            (_, Some(place), Some(ours)) => {
                let theirs = values[place].as_deref().unwrap_or_default();
                let (ours, theirs) = (values::list(ours), values::list(theirs));
                Err(name(&files[place], Error::UnlikeValues { ours, theirs }))
            }
            _ => Ok(()),
        }
    }
}

/// What a mutex holds, also after a thread panicked with it: that panic is reported by itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(file: &impl AsRef<str>) -> Result<Profile> {
        let name = file.as_ref();
        if name.starts_with("broken") {
            return Err(Error::Usage(name.to_string()));
        }
        let value = if name.starts_with("cpu") {
            ValueType::cpu()
        } else {
            ValueType::samples()
        };
        let mut profile = Profile::new(vec![value]);
        profile.add_stack(&["all", name], &[1])?;
        Ok(profile)
    }

    fn named(file: &impl AsRef<str>, error: Error) -> Error {
        Error::Usage(format!("{}: {error}", file.as_ref()))
    }

    #[test]
    fn files_are_summed_up_whoever_reads_them() {
        let paths: Vec<String> = (0..100).map(|number| format!("f{}", number % 30)).collect();
        let sum = read_all(&paths, profile, named).unwrap().unwrap();
        assert_eq!((sum.total(0).unwrap(), sum.node_count()), (100, 31));
        assert!(read_all::<&str>(&[], profile, named).unwrap().is_none());
    }

    #[test]
    fn warnings_stand_in_the_order_of_files() {
        let paths: Vec<String> = (0..60).map(|number| format!("f{number}")).collect();
        let warned = |file: &String| {
            let mut profile = profile(file)?;
            profile.add_warnings([file.clone()]);
            Ok(profile)
        };
        let sum = read_all(&paths, warned, named).unwrap().unwrap();
        let mean = read_mean(&paths, warned, named).unwrap();
        assert!(!sum.warnings().is_empty());
        assert_eq!(sum.warnings(), &paths[..sum.warnings().len()]);
        assert_eq!(mean.warnings(), sum.warnings());
    }

    #[test]
    fn the_first_file_that_does_not_fit_is_named() {
        let error = |paths: &[&str]| {
            let (sum, mean) = (
                read_all(paths, profile, named),
                read_mean(paths, profile, named),
            );
            let error = sum.err().unwrap().to_string();
            assert_eq!(error, mean.err().unwrap().to_string());
            error
        };
        for _ in 0..20 {
            assert_eq!(error(&["a", "b", "broken1", "broken2", "cpu"]), "broken1");
            assert!(error(&["a", "cpu1", "b", "cpu2"]).starts_with("cpu1: "));
            assert!(error(&["cpu1", "a", "broken"]).starts_with("a: "));
        }
    }
}
