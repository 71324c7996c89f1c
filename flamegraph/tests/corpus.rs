//! The inputs that fuzzing kept, read again: a test of its own program, in which memory is limited.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

#[global_allocator]
static MEMORY: fuzz::kept::Bounded = fuzz::kept::Bounded;

#[test]
fn kept_inputs_of_fuzzing() {
    let targets = fuzz::TARGETS.map(|(name, _)| name);
    // Cargo runs tests in the crate's folder. A path compiled in could be that of another checkout, as they share objects.
    fuzz::kept::replay("fuzz/corpus".as_ref(), &targets, fuzz::run);
}
