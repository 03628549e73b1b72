//! A real Postgres and a real Redis, of Debian's packages, in a folder of their own.
//!
//! `cargo xtask` unpacks them and says where; without it, those of the system are used.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// An id that owns nothing, for programs that refuse to run as root.
const NOBODY: u32 = 65_534;
/// How often to look whether a program answers: for a minute in all.
const LOOKS: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(50);

/// A folder that is removed in the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-{name}-{}-{count}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder");
        if is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("a folder of nobody");
        }
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that programs without rights can read.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        if is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("a file of nobody");
        }
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where the unpacked package is, and the folder with a program.
fn find(variable: &str, program: &str) -> (Option<PathBuf>, PathBuf) {
    if let Ok(reason) = env::var(format!("{variable}_MISSING")) {
        panic!("{program} is missing: {reason}");
    }
    let root = env::var_os(variable).map(PathBuf::from);
    let base = root.clone().unwrap_or_else(|| PathBuf::from("/"));
    let mut folders = vec![base.join("usr/bin"), base.join("usr/sbin")];
    if let Ok(versions) = fs::read_dir(base.join("usr/lib/postgresql")) {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = folders.into_iter().find(|folder| folder.join(program).exists());
    let found = found.unwrap_or_else(|| {
        panic!("{program} is not installed; `cargo xtask fleet` unpacks it and runs this test")
    });
    (root, found)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program without rights, with the libraries of its package.
fn unprivileged(program: &Path, root: Option<&PathBuf>) -> Command {
    let mut command = Command::new(program);
    if let Some(root) = root {
        let triple = format!("{}-linux-gnu", env::consts::ARCH);
        let folders = ["usr/lib", "lib"].map(|it| root.join(it).join(&triple));
        let path = env::join_paths(folders).expect("folders without a colon");
        command.env("LD_LIBRARY_PATH", path);
    }
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The ports that `free_port` chooses from: below those that Linux gives to sockets without one,
/// so that one stays free while its program is restarted.
const PORTS: Range<u32> = 20_000..32_000;

/// A port that is free now, and that this process gives to nobody else.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Each process begins somewhere else.
    let first = std::process::id().wrapping_mul(61);
    for _ in PORTS {
        let next = first.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + next % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("a port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

fn until_it_answers(port: u16, child: &mut Option<Child>, what: &str) {
    for _ in 0..LOOKS {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return;
        }
        if let Some(Ok(Some(status))) = child.as_mut().map(Child::try_wait) {
            panic!("{what} has ended: {status}");
        }
        sleep(PAUSE);
    }
    panic!("{what} does not answer");
}

/// A Postgres of its own.
pub struct Postgres {
    folder: Folder,
    root: Option<PathBuf>,
    programs: PathBuf,
    pub port: u16,
    child: Option<Child>,
    databases: AtomicU32,
    settings: Vec<String>,
}

impl Postgres {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with these settings.
    pub fn start_with(settings: &[(&str, String)]) -> Self {
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (root, programs) = find("BOWLINE_POSTGRES", "postgres");
        let folder = Folder::new("pg");
        let mut initdb = unprivileged(&programs.join("initdb"), root.as_ref());
        initdb.arg("-D").arg(folder.path().join("data"));
        initdb.args("-U bowline -A trust -E UTF8 --locale=C --no-sync".split(' '));
        if let Some(root) = &root {
            let share = fs::read_dir(root.join("usr/share/postgresql")).expect("its files");
            let share = share.flatten().next().expect("one version").path();
            initdb.arg("-L").arg(share);
        }
        let made = initdb.current_dir(folder.path()).output().expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let (port, databases) = (free_port(), AtomicU32::new(0));
        let child = None;
        let mut postgres = Self { folder, root, programs, port, child, databases, settings };
        postgres.run();
        postgres
    }

    /// Starts the server, after a crash as well.
    pub fn run(&mut self) {
        let program = self.programs.join("postgres");
        let log = self.folder.path().join("log");
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut command = unprivileged(&program, self.root.as_ref());
        command.arg("-D").arg(self.folder.path().join("data")).arg("-k").arg(self.folder.path());
        command.arg("-p").arg(self.port.to_string());
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        let copy = log.try_clone().expect("a log");
        command.stdout(log).stderr(copy).current_dir(self.folder.path());
        self.child = Some(command.spawn().expect("postgres starts"));
        until_it_answers(self.port, &mut self.child, "postgres");
        // It accepts connections before it takes statements.
        for _ in 0..LOOKS {
            if self.sql("postgres", "SELECT 1").is_ok() {
                return;
            }
            sleep(PAUSE);
        }
        panic!("postgres takes no statements: {}", self.log());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends it in good order, and the work of its clients with it.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        for _ in 0..LOOKS {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            sleep(PAUSE);
        }
        let _ = child.kill();
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.kill();
        let _ = child.wait();
        // Its children notice; the next start needs the memory that they share.
        let pid = self.folder.path().join("data/postmaster.pid");
        for _ in 0..LOOKS {
            let text = fs::read_to_string(&pid).unwrap_or_default();
            let Some(line) = text.lines().nth(6) else { return };
            let Some(id) = line.split_whitespace().nth(1) else { return };
            let shared = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
            let attached = shared.lines().any(|line| {
                let mut fields = line.split_whitespace();
                let (_, found, _, _, _, _, users) = (
                    fields.next(),
                    fields.next(),
                    fields.next(),
                    fields.next(),
                    fields.next(),
                    fields.next(),
                    fields.next(),
                );
                found == Some(id) && users != Some("0")
            });
            if !attached {
                return;
            }
            sleep(PAUSE);
        }
    }

    /// Runs a statement.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = unprivileged(&self.programs.join("psql"), self.root.as_ref());
        psql.args(["-h", "127.0.0.1", "-U", "bowline", "-X", "-q", "-A", "-t", "-d", database]);
        psql.arg("-p").arg(self.port.to_string()).arg("-c").arg(sql).current_dir("/");
        let ran = psql.output().expect("psql starts");
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
        }
    }

    /// The address of a new database.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}")).expect("a database");
        Self::url(&name, self.port)
    }

    pub fn url(database: &str, port: u16) -> String {
        format!("postgres://bowline@127.0.0.1:{port}/{database}")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A Redis of its own.
pub struct Redis {
    folder: Folder,
    root: Option<PathBuf>,
    programs: PathBuf,
    pub port: u16,
    child: Option<Child>,
    /// Its certificate, the key of that, and its authority, if it is encrypted.
    tls: Option<[String; 3]>,
}

impl Redis {
    pub fn start() -> Self {
        Self::starting(None)
    }

    /// Starts one that is encrypted, with its certificate, the key of that, and its authority.
    pub fn start_with(tls: &[String; 3]) -> Self {
        Self::starting(Some(tls.clone()))
    }

    fn starting(tls: Option<[String; 3]>) -> Self {
        let (root, programs) = find("BOWLINE_REDIS", "redis-server");
        let folder = Folder::new("redis");
        let mut redis = Self { folder, root, programs, port: free_port(), child: None, tls };
        redis.run();
        redis
    }

    pub fn run(&mut self) {
        let program = self.programs.join("redis-server");
        let mut command = unprivileged(&program, self.root.as_ref());
        let port = self.port.to_string();
        match &self.tls {
            None => command.args(["--port", &port]),
            Some([host, key, root]) => command
                .args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"])
                .args(["--tls-cert-file", host, "--tls-key-file", key, "--tls-ca-cert-file", root]),
        };
        command.args(["--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(self.folder.path()).current_dir(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("redis-server starts"));
        until_it_answers(self.port, &mut self.child, "redis-server");
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
