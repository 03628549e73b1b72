//! Names that every provider accepts: letters, digits, `_` and `-`, at most 64 of them, the first
//! one a letter or `_`.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};

const LONGEST: usize = 64;

/// The names that are taken.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// The name of a function for a tool. Names that are fine stay as they are.
    pub(super) fn add(&mut self, tool: &str) -> String {
        let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let mut name: String =
            tool.chars().map(|letter| if is_fine(letter) { letter } else { '_' }).collect();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            name.insert(0, '_');
        }
        if name.len() > LONGEST || self.0.contains(&name) {
            name = numbered(&name, tool, &self.0);
        }
        self.0.insert(name.clone());
        name
    }
}

/// The same with a digest of the tool's name: the same in every run, whatever the other tools.
fn numbered(name: &str, tool: &str, taken: &HashSet<String>) -> String {
    let hash = digest(&SHA256, tool.as_bytes());
    let hash: String = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let candidate = |count: usize| {
        let end = if count == 0 { format!("_{hash}") } else { format!("_{hash}_{count}") };
        let start: String = name.chars().take(LONGEST - end.len()).collect();
        start + &end
    };
    (0..).map(candidate).find(|name| !taken.contains(name)).expect("there are enough numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_unique_and_stable() {
        let long = "l".repeat(100);
        let tools = ["add", "files.read", "files/read", "7up", "-x", "été", "", &long, "add"];
        let mut names = Names::default();
        let given: Vec<_> = tools.iter().map(|tool| names.add(tool)).collect();
        assert_eq!(given[..2], ["add", "files_read"]);
        assert!(given[2].starts_with("files_read_"), "{given:?}");
        assert_eq!(given[3..6], ["_7up", "_-x", "_t_"]);
        assert_eq!(given[7].len(), 64);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), tools.len());
        let mut names = Names::default();
        assert_eq!(tools.map(|tool| names.add(tool)).as_slice(), given.as_slice());
    }
}
