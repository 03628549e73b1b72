//! The program under test, and things for it to examine.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use bowline::http::Http;
use bowline_serve::testing::{Process, answer_with};
use serde_json::Value;
use tokio::runtime::Runtime;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");

/// What the doctor said.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) code: i32,
    pub(crate) document: Value,
}

/// Runs the doctor, and parses the document.
pub(crate) fn doctor(arguments: &[&str]) -> Found {
    doctor_with(arguments, &[])
}

/// Runs the doctor with more environment variables.
pub(crate) fn doctor_with(arguments: &[&str], variables: &[(&str, &str)]) -> Found {
    let all = [&["doctor", "--output", "json"], arguments].concat();
    let variables = [&surroundings(), variables].concat();
    let said = Process::start_with(PROGRAM, &all, &variables).close();
    assert_eq!(said.err, "", "{arguments:?}");
    assert_eq!(said.out.lines().count(), 1, "{arguments:?}: {}", said.out);
    let document: Value = serde_json::from_str(&said.out).expect("one document");
    let code = said.code.expect("it exits without a signal");
    assert_eq!(document["exitCode"], code);
    Found { code, document }
}

/// Runs the doctor, and returns what people read.
pub(crate) fn doctor_for_people(arguments: &[&str]) -> String {
    let all = [&["doctor"], arguments].concat();
    Process::start_with(PROGRAM, &all, &surroundings()).close().out
}

/// Hides the logins of the user who runs the tests.
fn surroundings() -> [(&'static str, &'static str); 1] {
    [("BOWLINE_DATA_DIR", "/nonexistent/bowline")]
}

impl Found {
    /// Checks the verdict: outcome, step, a part of the cause, exit code.
    pub(crate) fn is(&self, outcome: &str, step: &str, cause: &str, code: i32) {
        let told = &self.document;
        let found = told["cause"].as_str().unwrap_or_default();
        let is_it = told["outcome"] == outcome && told["step"] == step && self.code == code;
        assert!(is_it && found.contains(cause), "{outcome} {step} {code} {cause:?}: {told:#}");
        assert!(told["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{told:#}");
    }

    pub(crate) fn is_well(&self) {
        assert_eq!(
            (self.code, &self.document["outcome"]),
            (0, &"ok".into()),
            "{:#}",
            self.document
        );
    }

    /// What a step saw.
    pub(crate) fn step(&self, name: &str) -> &Value {
        let steps = self.document["steps"].as_array().expect("steps are a list");
        steps.iter().find(|step| step["step"] == name).unwrap_or(&Value::Null)
    }
}

/// The example `patient`, which is built with the tests.
pub(crate) fn patient() -> String {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let tests = env::current_exe().expect("a test is a program");
        let folder = tests.parent().and_then(|it| it.parent()).expect("tests are in a folder");
        let path = folder.join("examples/patient");
        assert!(path.exists(), "{}: cargo build --examples makes it", path.display());
        path
    });
    path.to_str().expect("the path is text").to_owned()
}

/// A unique argument for each patient, to find what is left of it.
pub(crate) fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("doctor-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// How many processes have this mark.
pub(crate) fn left(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    // Only an argument counts, not a name that happens to contain the mark.
    lines.filter(|line| line.split('\0').any(|word| word == mark)).count()
}

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let at = env::temp_dir().join(mark());
        fs::create_dir_all(&at).expect("a folder can be made");
        Self(at)
    }

    /// A file in it.
    pub(crate) fn put(&self, name: &str, bytes: &[u8], is_program: bool) -> String {
        use std::os::unix::fs::PermissionsExt;
        let at = self.0.join(name);
        fs::write(&at, bytes).expect("it can be written");
        let mode = if is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).expect("it is ours");
        at.to_str().expect("the path is text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Serves in this process, on loopback, until it ends.
pub(crate) fn serve(make: impl FnOnce(SocketAddr) -> Http) -> SocketAddr {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| Runtime::new().expect("a runtime starts"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it can be polled");
    let address = listener.local_addr().expect("it is bound");
    let http = make(address);
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
        http.serve_on(listener).await
    });
    address
}

/// A request.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// A site that responds exactly as a test says; `None` holds the connection open for a while.
pub(crate) fn site(
    answer: impl Fn(&Asked) -> Option<String> + Send + Sync + 'static,
) -> SocketAddr {
    answer_with(move |asked, mut stream| {
        let (method, path) = (asked.method().to_owned(), asked.path().to_owned());
        let body = serde_json::from_str(&asked.body).unwrap_or_default();
        match answer(&Asked { method, path, body }) {
            Some(bytes) => stream.write_all(bytes.as_bytes()),
            None => {
                thread::sleep(Duration::from_secs(300));
                Ok(())
            }
        }
    })
}

/// An HTTP response.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    let headers = headers.lines().map(|line| format!("{line}\r\n")).collect::<String>();
    Some(format!(
        "HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}
