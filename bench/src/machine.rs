//! The machine, and what it reports about processes.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Raises the limit of open files, which ten thousand connections need. Child processes inherit it.
pub(crate) fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it cannot be raised, the largest measurements fail with a clear error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The cores for this thread and the processes it starts.
///
/// Left alone, the scheduler sometimes lets both sides of a call share a core and sometimes does
/// not, which changes the time of a single call more than anything measured here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// The first core: one call at a time keeps only one side busy.
    First,
    /// All cores but the last.
    NotLast,
    /// The last core.
    Last,
    /// All cores.
    All,
}

/// Pins this thread to cores. If that fails, the scheduler decides.
pub(crate) fn pin(cores: Cores) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    // `available_parallelism` only counts the cores of the current pinning.
    static CORES: OnceLock<usize> = OnceLock::new();
    let count = *CORES.get_or_init(|| count);
    let mut set = CpuSet::new();
    let wanted = match cores {
        Cores::First => 0..1,
        Cores::NotLast => 0..(count - 1).max(1),
        Cores::Last => count - 1..count,
        Cores::All => 0..count,
    };
    wanted.for_each(|core| set.set(core));
    let _ = sched_setaffinity(None, &set);
}

/// The CPU time of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub(crate) all: Duration,
    /// The time outside the kernel, to a hundredth of a second.
    pub(crate) user: Duration,
}

impl Cpu {
    /// The CPU time of a process so far.
    pub(crate) fn of(pid: u32) -> Result<Self, String> {
        let (user, system) = ticks(&format!("/proc/{pid}/stat"), 13)?;
        let user = TICK * u32::try_from(user).unwrap_or(u32::MAX);
        let system = TICK * u32::try_from(system).unwrap_or(u32::MAX);
        // To the nanosecond, if the kernel counts it.
        let all = run_time(pid).unwrap_or(user + system);
        Ok(Self { all, user })
    }

    /// The CPU time of all child processes that this one has waited for.
    pub(crate) fn of_children() -> Result<Duration, String> {
        let (user, system) = ticks("/proc/self/stat", 15)?;
        Ok(TICK * u32::try_from(user + system).unwrap_or(u32::MAX))
    }
}

/// The unit of the kernel's counters, whatever its resolution.
const TICK: Duration = Duration::from_millis(10);

/// Two consecutive fields of a `stat` file, from a zero-based index.
fn ticks(path: &str, index: usize) -> Result<(u64, u64), String> {
    let text = read(path)?;
    // The second field is a name, which may contain spaces.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let mut fields = rest.split(' ').skip(index - 2);
    let mut next = || fields.next().and_then(|field| field.parse().ok());
    match (next(), next()) {
        (Some(one), Some(two)) => Ok((one, two)),
        _ => Err(format!("{path} has an unexpected format")),
    }
}

/// The run time to the nanosecond; `None` if the kernel does not count it.
fn run_time(pid: u32) -> Option<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may exit in the meantime.
        let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
        nanos += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// The memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/status");
    let text = read(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| format!("{path} has no VmRSS"))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// The machine and the toolchain, in one line.
pub(crate) fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    format!(
        "{}; {model}, {cores} cores; Linux {kernel}; {}",
        said("date", &["-u", "+%Y-%m-%d"]),
        said("rustc", &["--version"]),
    )
}

/// The first line of a program's output.
pub(crate) fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_has_run() {
        let pid = std::process::id();
        assert!(resident(pid).unwrap() > 100 << 10);
        // If only whole ticks are counted, one has to pass.
        assert!((0..100_000).any(|_| Cpu::of(pid).unwrap().all > Duration::ZERO));
        assert!(Cpu::of_children().is_ok());
        assert!(resident(0).unwrap_err().contains("/proc/0/status"));
    }
}
