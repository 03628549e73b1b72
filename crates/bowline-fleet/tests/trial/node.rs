//! One node: the server, and the process that runs it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use bowline::{Context, HandlerError, Principal, Server, TaskLimits, TaskMode, Tool};
use bowline_fleet::Fleet;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http;

/// The variable with the settings of a node.
pub const SETTINGS: &str = "BOWLINE_TRIAL_NODE";
/// How long a lease lasts here.
pub const LEASE: Duration = Duration::from_secs(3);
/// The resource that changes.
pub const RESOURCE: &str = "trial://news";

/// Serves until it is stopped, one way or another.
pub async fn serve(settings: &str) {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let text = |name: &str| settings[name].as_str().unwrap().to_owned();
    let limits = TaskLimits {
        tasks: 100_000,
        tasks_per_owner: 100_000,
        lease: LEASE,
        // They are checked after an hour of faults.
        ttl: Duration::from_secs(6 * 3_600),
        ..TaskLimits::default()
    };
    let fleet = Fleet::builder(text("postgres"))
        .redis(text("redis"))
        .address(text("origin"))
        .patience(Duration::from_secs(1))
        .limits(limits);
    // Its store may be away right now.
    let fleet = loop {
        match fleet.clone().connect().await {
            Ok(fleet) => break fleet,
            Err(error) => {
                println!("cannot join yet: {}", bowline::with_causes(&error));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    };
    let effects = PathBuf::from(text("effects"));
    let [once, again] = [(false, effects.clone()), (true, effects)].map(|(reruns, effects)| {
        let name = if reruns { "again" } else { "once" };
        let tool = Tool::new(name, move |context: Context, work: Work| {
            let effects = effects.clone();
            async move {
                leave(&effects, name, work.number);
                tokio::time::sleep(Duration::from_millis(work.millis)).await;
                let owner = context.caller().principal.as_ref().map(|it| it.as_str().to_owned());
                Ok::<_, HandlerError>(format!(
                    "{name} {} {}",
                    work.number,
                    owner.unwrap_or_default()
                ))
            }
        });
        let tool = tool.task(TaskMode::Required);
        if reruns { tool.rerun() } else { tool }
    });
    let touch = Tool::new("touch", |context: Context| async move {
        context.registry().resource_updated(RESOURCE);
        "touched"
    });
    let ask = Tool::new("ask", |context: Context| async move {
        let is_sure = context.confirm("Sure?").await?;
        Ok::<_, HandlerError>(format!("sure: {is_sure}"))
    });
    let news = bowline::Resource::new(RESOURCE, "news", || async { "news" });
    let server = Server::new("trial", "1.0.0").with((once, again, touch, ask, news)).fleet(fleet);
    let http = server.http().drain(Duration::from_secs(1)).identify(|parts| {
        let user = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(user))
    });
    http.serve(&text("address")).await.unwrap();
}

#[derive(serde::Deserialize, bowline::schemars::JsonSchema)]
#[schemars(crate = "bowline::schemars")]
struct Work {
    number: u64,
    millis: u64,
}

/// Leaves a trace that outlives the process: one line, in one write.
fn leave(effects: &Path, name: &str, number: u64) {
    let mut file = File::options().append(true).create(true).open(effects).unwrap();
    file.write_all(format!("{name} {number}\n").as_bytes()).unwrap();
}

/// The process of a node, which can be ended in several ways and started again.
pub struct Node {
    pub port: u16,
    settings: String,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Node {
    /// A node on a port, which other nodes reach at another one.
    pub fn new(
        (port, letters): (u16, u16),
        (postgres, redis): (&str, &str),
        folder: &Path,
    ) -> Self {
        let settings = json!({
            "postgres": postgres,
            "redis": redis,
            "address": format!("127.0.0.1:{port}"),
            "origin": format!("http://127.0.0.1:{letters}"),
            "effects": folder.join("effects"),
        });
        let log = folder.join(format!("node-{port}.log"));
        Self { port, settings: settings.to_string(), log, child: Mutex::default() }
    }

    pub fn start(&self) {
        let log = File::options().append(true).create(true).open(&self.log).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SETTINGS, &self.settings).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        *self.child.lock().unwrap() = Some(command.spawn().unwrap());
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(child) = &*self.child.lock().unwrap() {
            kill_process(Pid::from_child(child), signal).unwrap();
        }
    }

    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Ends it in good order, and waits until it has ended.
    pub async fn stop(&self) {
        self.signal(Signal::TERM);
        for _ in 0..1_200 {
            let ended = self.child.lock().unwrap().as_mut().unwrap().try_wait().unwrap();
            if let Some(status) = ended {
                assert!(status.success(), "a node that is stopped ends well: {status}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("a node does not end");
    }

    /// Waits until it wants requests.
    pub async fn ready(&self) {
        for _ in 0..1_200 {
            if http::get(self.port, "/ready").await == Some(200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        panic!("the node on port {} is not ready:\n{log}", self.port);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
