//! Embeds `rules/frames.yaml`: a table for each of its sections, with the path of each list and its patterns.

use std::fmt::Write;

use saphyr::{LoadableYamlNode, Yaml};

fn main() {
    const RULES: &str = "rules/frames.yaml";
    println!("cargo:rerun-if-changed={RULES}");
    let text = std::fs::read_to_string(RULES).expect("rules/frames.yaml can be read");
    let documents = Yaml::load_from_str(&text).expect("rules/frames.yaml is YAML");
    let mut source = String::new();
    for (section, rules) in documents[0].as_mapping().expect("it has sections") {
        let section = section.as_str().expect("a section has a name");
        let name = section.to_uppercase();
        writeln!(source, "pub(crate) static {name}: Table = &[").expect("memory");
        add(rules, "", &mut source);
        source.push_str("];\n");
    }
    let folder = std::env::var("OUT_DIR").expect("cargo names a folder for generated files");
    std::fs::write(format!("{folder}/frame_rules.rs"), source).expect("the folder is writable");
}

/// Adds what is below a path: a mapping, a list of mappings, or a list of patterns.
fn add(node: &Yaml, path: &str, source: &mut String) {
    if let Some(mapping) = node.as_mapping() {
        for (key, below) in mapping {
            let key = key.as_str().expect("keys are text");
            let path = format!("{path}.{key}");
            add(below, path.trim_start_matches('.'), source);
        }
        return;
    }
    let list = node.as_sequence().expect("a mapping or a list");
    if list.iter().all(|item| item.as_mapping().is_some()) {
        list.iter().for_each(|item| add(item, path, source));
        return;
    }
    let patterns = list
        .iter()
        .map(|item| item.as_str().expect("a pattern is text"));
    let patterns: Vec<String> = patterns.flat_map(expanded).collect();
    writeln!(source, "    ({path:?}, &{patterns:?}),").expect("memory");
}

/// The patterns that one with `{a,b}` stands for, with `/` for every dot.
fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![pattern.replace('.', "/")];
    };
    let (choices, after) = rest.split_once('}').expect("braces are closed");
    let after = expanded(after);
    let before = before.replace('.', "/");
    let mut all = Vec::new();
    for choice in choices.split(',') {
        let choice = choice.replace('.', "/");
        all.extend(after.iter().map(|after| format!("{before}{choice}{after}")));
    }
    all
}
