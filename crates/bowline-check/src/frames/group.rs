//! What is left of a group of processes.

use bowline::client::ProcessGroup;

/// The living members of a group, by name where the system has `/proc`. Never empty.
pub(super) fn names(group: &ProcessGroup) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let names: Vec<_> = stats.filter_map(|stat| member(&stat, group.id()?)).collect();
    if names.is_empty() { vec!["children".to_owned()] } else { names }
}

/// The name and id in a line of `/proc/*/stat`, if the process is alive and in this group.
fn member(stat: &str, group: i32) -> Option<String> {
    let (start, rest) = stat.rsplit_once(')')?;
    let (id, name) = start.split_once('(')?;
    let mut fields = rest.split_whitespace();
    let (state, _parent, of) = (fields.next()?, fields.next()?, fields.next()?);
    (state != "Z" && of.parse() == Ok(group)).then(|| format!("{name} ({})", id.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_whatever_they_are_called() {
        assert_eq!(member("42 (a) b) S 1 7 7 0", 7).as_deref(), Some("a) b (42)"));
        assert_eq!(member("42 (x) Z 1 7 7 0", 7), None);
        assert_eq!(member("42 (x) S 1 8 7 0", 7), None);
        assert_eq!(member("", 7), None);
    }
}
