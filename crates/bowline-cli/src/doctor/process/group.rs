//! The processes that a command started, as far as they stayed in its group.

use std::time::Duration;

use tokio::process::Child;

/// The group that a child leads.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

/// How often to look whether a group is gone. Only its leader can be waited for.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(unix)]
impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }

    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // Nobody left to be told is what was wanted.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    /// Who is left, by name, where the system tells.
    pub(crate) fn names(&self) -> Vec<String> {
        let Some(id) = self.id else { return Vec::new() };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats =
            entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter_map(|stat| member(&stat, id.as_raw_nonzero().get())).collect()
    }
}

/// The name and id in a line of `/proc/*/stat`, if the process is in this group and alive.
#[cfg(unix)]
fn member(stat: &str, group: i32) -> Option<String> {
    let (start, rest) = stat.rsplit_once(')')?;
    let (id, name) = start.split_once('(')?;
    let mut fields = rest.split_whitespace();
    let (state, _parent, of) = (fields.next()?, fields.next()?, fields.next()?);
    (state != "Z" && of.parse() == Ok(group)).then(|| format!("{name} ({})", id.trim()))
}

#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_: &Child) -> Self {
        Self {}
    }

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(crate) fn is_alive(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(crate) fn terminate(&self) {}

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(crate) fn kill(&self) {}

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(crate) fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Group {
    /// Whether all are gone, soon.
    pub(crate) async fn is_soon_gone(&self, patience: Duration) -> bool {
        let gone = async {
            while self.is_alive() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(patience, gone).await.is_ok()
    }
}

#[cfg(test)]
#[cfg(unix)]
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
