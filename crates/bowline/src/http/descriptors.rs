//! How many files and sockets the process may have open.
//!
//! Most systems start a process with a limit of 1,024, which it may raise itself. A server that
//! runs out of descriptors accepts nobody, not even a probe, so it never lets that happen.

use super::options::HttpLimits;

/// More than the default limits of a server ever need. Child processes inherit the limit, and some
/// walk through all of it.
const ENOUGH: u64 = 1 << 16;

/// What is kept for other things than ordinary connections.
const KEPT: usize = 128;

/// Raises this process's limit on open files as far as it is allowed to, for programs that serve
/// over HTTP. [`Http::serve_on`](super::Http::serve_on) accepts no more connections than the limit
/// has room for, and from one address at most a quarter of them.
///
/// It does nothing where there is no such limit, and libraries leave it to the program.
#[cfg(unix)]
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // macOS allows less than it says.
    for most in [ENOUGH, 10_240] {
        let most = maximum.unwrap_or(most).min(most);
        let is_enough = current.is_none_or(|current| current >= most);
        let raised = Rlimit { current: Some(most), maximum };
        if is_enough || setrlimit(Resource::Nofile, raised).is_ok() {
            return;
        }
    }
}

/// Does nothing on this system.
#[cfg(not(unix))]
pub fn raise_file_limit() {}

/// Lowers limits to what the process can have open.
pub(super) fn bound(limits: &mut HttpLimits) {
    #[cfg(unix)]
    if let Some(open) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        bound_by(limits, usize::try_from(open).unwrap_or(usize::MAX));
    }
    #[cfg(not(unix))]
    bound_by(limits, usize::MAX);
}

fn bound_by(limits: &mut HttpLimits, open: usize) {
    let room = open.saturating_sub(KEPT).max(1);
    if room < limits.connections {
        tracing::info!("the limit on open files, {open}, has room for {room} connections");
        limits.connections = room;
        limits.connections_per_party = limits.connections_per_party.min(room.div_ceil(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        let check = |open, expected| {
            let mut limits = HttpLimits::default();
            bound_by(&mut limits, open);
            assert_eq!((limits.connections, limits.connections_per_party), expected, "{open}");
        };
        check(1_024, (896, 224));
        check(10_000, (9_872, 2_468));
        check(20_000, (10_000, 2_500));
        check(64, (1, 1));
    }
}
