//! Names of Python frames.

use flamegraph::python_frame;
use py_spy::Frame;

/// A process chooses its names; longer ones are cut.
const LONGEST: usize = 500;

/// `function (file)`; Python 3.11 and later also names the function's class.
pub fn frame(frame: &Frame) -> String {
    let name = python_frame(&frame.name, &frame.filename);
    name.chars().take(LONGEST).collect()
}
