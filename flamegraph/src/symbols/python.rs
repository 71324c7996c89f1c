//! Names of Python frames, as py-spy and Python's own perf maps give them.

/// `function (file)`, with the module's path within the folder of packages that contains it.
pub fn python_frame(function: &str, file: &str) -> String {
    match short_path(file) {
        "" => function.to_owned(),
        file => format!("{function} ({file})"),
    }
}

/// The name in a perf map: `py::function:file`. None if it is not of Python.
pub(crate) fn of_perf_map(name: &[u8]) -> Option<String> {
    let named = std::str::from_utf8(name.strip_prefix(b"py::")?).ok()?;
    let (function, file) = named.split_once(':')?;
    Some(python_frame(function, file))
}

/// A module's path within the folder of packages that contains it; the file's name alone if that is not in one. Files
/// are not looked at.
fn short_path(path: &str) -> &str {
    let is_root = |folder: &str| {
        let version = folder.strip_prefix("python");
        let is_version = |text: &str| {
            text.split_once('.').is_some_and(|(major, minor)| {
                let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                digits(major) && digits(minor)
            })
        };
        ["site-packages", "dist-packages"].contains(&folder)
            || folder.ends_with(".zip")
            || folder.ends_with(".egg")
            || version.is_some_and(|text| text.is_empty() || is_version(text)) // Spark has its own in "python"
    };
    let mut rest = path;
    let mut short = path.rsplit('/').next().unwrap_or(path);
    while let Some((folder, inner)) = rest.split_once('/') {
        if is_root(folder) {
            short = inner;
        }
        rest = inner;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_maps_name_function_and_file() {
        for (name, want) in [
            (
                "py::Warm.burn:/home/me/shares.py",
                Some("Warm.burn (shares.py)"),
            ),
            (
                "py::f:<frozen importlib._bootstrap>",
                Some("f (<frozen importlib._bootstrap>)"),
            ),
            ("py::f", None),
            ("Interpreter", None),
        ] {
            assert_eq!(of_perf_map(name.as_bytes()).as_deref(), want);
        }
    }

    #[test]
    fn paths_begin_below_the_folder_of_packages() {
        for (path, want) in [
            ("/usr/lib/python3.11/threading.py", "threading.py"),
            (
                "/usr/lib/python3/dist-packages/numpy/core/x.py",
                "numpy/core/x.py",
            ),
            (
                "/v/lib/python3.11/site-packages/pandas/io.py",
                "pandas/io.py",
            ),
            (
                "/spark/python/lib/pyspark.zip/pyspark/worker.py",
                "pyspark/worker.py",
            ),
            ("/spark/python/pyspark/worker.py", "pyspark/worker.py"),
            ("/home/me/jobs/etl.py", "etl.py"),
            ("/home/me/python3/jobs/etl.py", "etl.py"),
            ("etl.py", "etl.py"),
            (
                "<frozen importlib._bootstrap>",
                "<frozen importlib._bootstrap>",
            ),
            ("", ""),
        ] {
            assert_eq!(short_path(path), want);
        }
    }
}
