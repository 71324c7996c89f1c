//! How a process says that it was started.

use crate::discovery::role::Role;
use crate::jvm::command_line::{self, Launch};
use crate::jvm::preflight::last_set;
use crate::os::proc::mask;
use crate::os::proc::split_zero;

const SECRET: &str = "hunter2";

/// A command line, and after bytes of 255 the files that it may name.
pub fn command_line(bytes: &[u8]) {
    let mut parts = bytes.split(|&byte| byte == 255);
    let command = split_zero(parts.next().unwrap_or_default());
    let files: Vec<String> = parts
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    let launch = command_line::parse(&command, |name| files.get(name.len()).cloned());
    let words = launch.options.len() + launch.arguments.len();
    assert!(words <= command.len() + bytes.len() * command.len());
    looked_at(&launch);
    hidden(&command);
}

fn looked_at(launch: &Launch) {
    last_set(&launch.options, "DisableAttachMechanism");
    let masked = launch.masked();
    assert_eq!(masked.options.len(), launch.options.len());
    assert_eq!(masked.arguments.len(), launch.arguments.len());
    masked.simple_name();
    if let Some(role) = Role::of(&masked) {
        assert!(role.label().len() < 60);
        role.labels();
    }
}

/// A password is hidden, whatever comes before it.
fn hidden(command: &[String]) {
    let shown = mask::command(command, 100);
    assert!(shown.len() <= 100);
    for argument in command.iter().take(8) {
        let told = mask::words(&[format!("{argument}password={SECRET}")]);
        assert!(argument.contains(SECRET) || !told[0].contains(SECRET));
        mask::variable(argument, argument);
    }
}
