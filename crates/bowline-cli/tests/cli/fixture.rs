//! Servers in this process, an empty home, and the program.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Child;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use bowline::http::Http;
use bowline_serve::testing::Said;
use tokio::net::TcpListener;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");

#[path = "../../../bowline/examples/features/servers.rs"]
mod servers;

/// The URL of a server of `examples/features`, which ends with this process.
pub(crate) fn url(name: &'static str) -> String {
    static STARTED: LazyLock<Mutex<BTreeMap<&'static str, String>>> = LazyLock::new(Mutex::default);
    let mut started = STARTED.lock().unwrap();
    started.entry(name).or_insert_with(|| start(name)).clone()
}

fn start(name: &str) -> String {
    assert!(servers::NAMES.contains(&name), "{name}");
    format!("http://{}/mcp", serve(servers::server(name).unwrap().http()))
}

/// Serves until this process ends.
pub(crate) fn serve(http: Http) -> SocketAddr {
    let (told, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            http.serve_until(listener, std::future::pending()).await.unwrap();
        });
    });
    address.recv().unwrap()
}

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and creates the folders above it.
    pub(crate) fn write(&self, file: &str, text: &str) -> PathBuf {
        let file = self.0.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Variables that would give the program another home or other settings.
const UNSET: [&str; 6] =
    ["BROWSER", "RUST_LOG", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// The program, with this folder as its home.
pub(crate) fn program(home: &Folder) -> Command {
    let mut command = Command::new(PROGRAM);
    for name in UNSET {
        command.env_remove(name);
    }
    command
        .env("HOME", home.path())
        .env("BOWLINE_DATA_DIR", home.path().join("data"))
        .env("BOWLINE_RUNTIME_DIR", home.path().join("r"))
        .env("COLUMNS", "90")
        .env("NO_COLOR", "1")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Waits until something is the case, a minute at most.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it never happens");
}

/// The same, but after so long it is killed with everything that it started.
#[cfg(unix)]
pub(crate) fn said_within(command: &mut Command, limit: Duration) -> Said {
    use std::os::unix::process::CommandExt;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let group = format!("-{}", child.id());
    let (ended, waits) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            drop(Command::new("kill").args(["-KILL", "--", &group]).status());
        }
    });
    let output = child.wait_with_output().expect("its output can be read");
    drop(ended);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Sends a signal.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// Waits for a line that contains this, two minutes at most: a read cannot be given up, so then the
/// whole process ends.
pub(crate) fn wait_for(reader: &mut impl BufRead, part: &str) -> String {
    let (_found, waiting) = std::sync::mpsc::channel::<()>();
    let wanted = part.to_owned();
    thread::spawn(move || {
        if waiting.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            let told = format!("two minutes, and nothing has said {wanted:?}\n");
            let _ = std::io::stderr().write_all(told.as_bytes());
            std::process::exit(101);
        }
    });
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "it ended before {part:?}");
    }
    line
}
