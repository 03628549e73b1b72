//! The example `nasty` as a server, and what must not be left of it: processes, tasks.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use bowline::client::{Client, ClientBuilder, ClientLimits, Command, OpenError, Verdicts};
use tokio::runtime::Handle;

/// What hangs is stopped after this; nothing else is timed.
pub(crate) const GUARD: Duration = Duration::from_secs(120);

/// How much of a load to run: a part by default, all with `BOWLINE_FULL=1`.
pub(crate) fn scaled<T>(part: T, all: T) -> T {
    if env::var_os("BOWLINE_FULL").is_some() { all } else { part }
}

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, work: impl IntoFuture<Output = T>) -> T {
    match tokio::time::timeout(GUARD, work.into_future()).await {
        Ok(done) => done,
        Err(_) => panic!("{what} did not happen within {GUARD:?}"),
    }
}

/// Looks again and again until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(what, look).await;
}

/// Lets this much time pass at once, so that a test need not hurry to be there before it is over.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// One test's servers, told from all others by a mark in their command lines.
pub(crate) struct Nasty {
    mark: String,
    /// How many tasks there were before.
    tasks: usize,
}

impl Nasty {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("mark-{}-{count}", std::process::id());
        Self { mark, tasks: Handle::current().metrics().num_alive_tasks() }
    }

    pub(crate) fn command(&self, manner: &str) -> Command {
        Command::new(path()).arg(manner).arg(&self.mark)
    }

    pub(crate) async fn connect(&self, manner: &str) -> Client {
        self.try_connect(manner, builder()).await.unwrap()
    }

    pub(crate) async fn try_connect(
        &self,
        manner: &str,
        builder: ClientBuilder,
    ) -> Result<Client, OpenError> {
        soon("a connection", builder.connect(self.command(manner))).await
    }

    /// The servers that are alive, and their descendants.
    pub(crate) fn processes(&self) -> Vec<u32> {
        processes(&self.mark)
    }

    /// Nothing is left: no process, no task.
    pub(crate) async fn is_gone(&self) {
        until("the end of all processes", || self.processes().is_empty()).await;
        let count = || Handle::current().metrics().num_alive_tasks();
        until("the end of all tasks", || count() <= self.tasks).await;
    }
}

/// The processes that have a mark in their command lines and are not dead.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| is_marked(*id, mark) && is_alive(*id)).collect()
}

fn is_marked(id: u32, mark: &str) -> bool {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|part| part == mark.as_bytes())
}

/// Whether a process runs. One that is dead and not yet waited for does not.
pub(crate) fn is_alive(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// A client that remembers nothing of other tests, with short patience for what must be waited for.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0.0").verdicts(Verdicts::new()).limits(limits())
}

pub(crate) fn limits() -> ClientLimits {
    let half = Duration::from_millis(500);
    ClientLimits { exit_grace: half, term_grace: half, ..ClientLimits::default() }
}

/// The example's program, built if nobody has.
pub(crate) fn path() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let this = env::current_exe().unwrap();
        let folder = this.parent().and_then(|deps| deps.parent()).unwrap();
        let path = folder.join("examples/nasty");
        if !path.exists() {
            let mut build = std::process::Command::new(env!("CARGO"));
            build.args(["build", "--package", "bowline", "--example", "nasty"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success());
        }
        path
    })
}

/// Runs a test alone in a process of its own, where memory and files are its own too. The test
/// calls this first, and goes on if it is that process.
pub(crate) fn is_alone(test: &str) -> bool {
    const ALONE: &str = "BOWLINE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
    // `cargo xtask faults` collects them.
    let figures = said.lines().filter_map(|line| line.find("figure: ").map(|at| &line[at..]));
    figures.for_each(|figure| println!("{figure}"));
    false
}

/// What this process holds, in kibibytes. The pages of its program do not count.
pub(crate) fn held() -> u64 {
    memory("RssAnon")
}

/// The most that it ever held.
pub(crate) fn peak() -> u64 {
    memory("VmHWM").saturating_sub(memory("RssFile"))
}

/// A number of `/proc/self/status`, in kibibytes.
fn memory(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How many files this process has open.
pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
