//! The inputs that fuzzing kept, read again: a test of its own program, in which memory is limited.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

#[global_allocator]
static MEMORY: fuzz::kept::Bounded = fuzz::kept::Bounded;

#[test]
fn what_fuzzing_kept() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus");
    let targets = fuzz::TARGETS.map(|(name, _)| name);
    fuzz::kept::replay(folder.as_ref(), &targets, fuzz::run);
}

#[test]
#[should_panic(expected = "compact, input 0")]
fn an_input_that_breaks_a_target_is_told() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus");
    fuzz::kept::replay(folder.as_ref(), &["compact"], |_, _| panic!("on purpose"));
}
