//! NUMA nodes: how many pages were allocated where, for programs on the same node and on others.

use std::fs;
use std::path::Path;

use super::host::{pairs, Reread};
use super::table::{Reading, Thing};

const FOLDER: &str = "/sys/devices/system/node";
const MOST: usize = 64;

/// Empty on a machine with one node, which has nothing to tell.
pub struct Nodes(Vec<(String, Reread)>);

impl Nodes {
    pub fn open() -> Self {
        Self::of(Path::new(FOLDER))
    }

    fn of(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut nodes: Vec<(u32, Reread)> = entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix("node")?.parse();
                Some((number.ok()?, Reread::open(entry.path().join("numastat"))))
            })
            .collect();
        nodes.sort_by_key(|(number, _)| *number);
        nodes.truncate(if nodes.len() > 1 { MOST } else { 0 });
        let named = nodes
            .into_iter()
            .map(|(number, file)| (number.to_string(), file));
        Self(named.collect())
    }

    pub fn read(&mut self, to: &mut Vec<Reading>) {
        for (id, file) in &mut self.0 {
            let mut node = Thing::new("node", id, to);
            for (word, value) in file.text().into_iter().flat_map(pairs) {
                let name = match word {
                    "local_node" => "local_pages",
                    "other_node" => "other_pages",
                    _ => continue,
                };
                node.counter(name, "count", value);
            }
        }
    }
}

/// Bytes a second that the processors can read from their nearest memory, by the firmware's own figures (ACPI's HMAT);
/// None where a node has none.
pub fn peak_bandwidth() -> Option<u64> {
    peak_bandwidth_of(Path::new(FOLDER))
}

fn peak_bandwidth_of(folder: &Path) -> Option<u64> {
    let nodes = fs::read_dir(folder).ok()?.flatten().map(|one| one.path());
    let with_processors = nodes.filter(|node| {
        fs::read_to_string(node.join("cpulist")).is_ok_and(|list| list.trim() != "")
    });
    let megabytes: Option<Vec<u64>> = with_processors
        .map(|node| {
            fs::read_to_string(node.join("access0/initiators/read_bandwidth"))
                .ok()?
                .trim()
                .parse()
                .ok()
        })
        .collect();
    megabytes?
        .into_iter()
        .sum::<u64>()
        .checked_mul(1_000_000)
        .filter(|sum| *sum > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::host::tests::told;
    use crate::os::files::tests::Folder;

    #[test]
    fn nodes_of_a_machine_with_two() {
        let folder = Folder::new();
        let read = || {
            let mut to = Vec::new();
            Nodes::of(&folder).read(&mut to);
            told(&to)
        };
        folder.put(
            "node0/numastat",
            "numa_hit 5\nlocal_node 40\nother_node 2\n",
        );
        let alone = read();
        folder.put(
            "node1/numastat",
            "numa_hit 5\nlocal_node 30\nother_node 20\n",
        );
        fs::create_dir(folder.join("power")).unwrap();
        let both = read();
        assert!(alone.is_empty());
        assert_eq!(
            both,
            [
                "node 0 local_pages 40",
                "node 0 other_pages 2",
                "node 1 local_pages 30",
                "node 1 other_pages 20"
            ]
        );
    }
    #[test]
    fn the_bandwidth_of_the_firmware() {
        let folder = Folder::new();
        folder.put("node0/cpulist", "0-15\n");
        let none = peak_bandwidth_of(&folder);
        folder.put("node0/access0/initiators/read_bandwidth", "200000\n");
        folder.put("node1/cpulist", "16-31\n");
        let of_one = peak_bandwidth_of(&folder);
        folder.put("node1/access0/initiators/read_bandwidth", "180000\n");
        folder.put("node2/cpulist", "\n"); // memory without processors
        let of_both = peak_bandwidth_of(&folder);
        assert_eq!((none, of_one, of_both), (None, None, Some(380_000_000_000)));
    }
}
