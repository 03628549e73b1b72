//! `bowline serve workbench`: this program's abilities as tools, for agents that build servers.
//!
//! Servers are named on the command line, by a person. The agent chooses among these names; it can
//! give neither a command nor an address.

mod desk;
mod kept;
mod readable;

use std::path::PathBuf;
use std::rc::Rc;

use bowline::{Context, Server, server};
use bowline_serve::ServeArgs;
use clap::Args;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use self::desk::{Desk, List, Side};
use crate::failure::Failure;
use crate::target::TargetOptions;

/// Gives a coding agent the abilities of this program, on the servers that you name
///
/// Its tools connect to a server, list and show what it offers, call it, check it, diagnose it, and
/// record, replay and compare sessions. Answers are cut to what fits into a context window; the
/// rest can be fetched. The agent reaches the servers named here and no others.
#[derive(Args)]
pub(super) struct Workbench {
    /// The servers that the agent may use: names from a config file, or URLs; a command after `--`
    /// is one more
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,

    /// Keep recorded sessions in this directory, and let the agent use those in it; otherwise they
    /// end with this program
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Workbench {
    /// Serves on standard input and output until the client closes.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let approved = self.options.resolve_all(&self.servers)?;
        let desk = Rc::new(Desk::new(approved, &self.options, self.sessions)?);
        let (errands, mut waiting) = mpsc::channel::<Errand>(ERRANDS);
        let instructions = format!(
            "A workbench for MCP servers. Its person has approved these: {}. Every tool connects \
             when it has to; `reconnect` starts a server anew, after it was rebuilt for instance. \
             Long answers are cut; `more` returns the rest.",
            desk.names().join(", ")
        );
        let server = Server::new("workbench", env!("CARGO_PKG_VERSION"))
            .title("Workbench")
            .description("Connects to MCP servers, calls, checks, diagnoses and compares them")
            .instructions(instructions)
            .with(Tools { errands });
        let local = LocalSet::new();
        let serving = async {
            let worker = tokio::task::spawn_local(async move {
                while let Some(errand) = waiting.recv().await {
                    tokio::task::spawn_local(errand(Rc::clone(&desk)));
                }
                desk.close().await;
            });
            let served = super::run("workbench", server, ServeArgs::default()).await;
            // The server has gone, and with it whatever sends errands.
            let _ = worker.await;
            served
        };
        local.run_until(serving).await
    }
}

/// How many errands may wait. The server limits how many calls run.
const ERRANDS: usize = 64;

/// Something to do at the desk, where the connections are: they stay on one thread.
type Errand = Box<dyn FnOnce(Rc<Desk>) -> Done + Send>;
type Done = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// The tools.
struct Tools {
    errands: mpsc::Sender<Errand>,
}

impl Tools {
    /// Has something done at the desk. It is given up when the caller gives up.
    async fn send(
        &self,
        work: impl AsyncFnOnce(&Desk) -> Result<String, Failure> + Send + 'static,
    ) -> Result<String, String> {
        let (mut answer, answered) = oneshot::channel();
        let errand: Errand = Box::new(move |desk| {
            Box::pin(async move {
                tokio::select! {
                    outcome = work(&desk) => drop(answer.send(outcome)),
                    () = answer.closed() => {}
                }
            })
        });
        let gone = || "the workbench is closing".to_owned();
        self.errands.send(errand).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?.map_err(|failure| failure.for_agents())
    }
}

#[server]
impl Tools {
    /// List the servers that may be used, and the sessions that were recorded
    #[tool(title = "Servers", read_only, open_world = false)]
    async fn servers(&self) -> Result<String, String> {
        self.send(async |desk| desk.overview()).await
    }

    /// Connect to a server anew: starts its program again, or opens another session. Returns what
    /// it is, which protocol it speaks and how that was found, and what it offers
    #[tool(title = "Reconnect", destructive = false)]
    async fn reconnect(
        &self,
        /// The name of the server
        server: String,
        /// Answers to what the server asks during calls: an object with `forms`, `urls`,
        /// `sampling` and `roots`, as in `{"forms": [{"when": "part of the message", "content":
        /// {"name": "Ada"}}]}`. Without it, the client says that it cannot be asked
        answers: Option<Map<String, Value>>,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.connect(&server, answers).await).await
    }

    /// List what a server offers, one line each, or show one item in full with its schemas
    #[tool(title = "List", read_only)]
    async fn list(
        &self,
        /// The name of the server
        server: String,
        /// What to list
        what: List,
        /// Show only this one, in full: the name of a tool or prompt, the URI of a resource or
        /// template
        name: Option<String>,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.list(&server, what, name.as_deref()).await).await
    }

    /// Call a tool of a server, and return its result. Arguments are sent as they are, so that
    /// wrong ones can be tried
    #[tool(title = "Call")]
    async fn call(
        &self,
        /// The name of the server
        server: String,
        /// The name of the tool
        tool: String,
        /// The arguments
        arguments: Option<Map<String, Value>>,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.call(&server, &tool, arguments).await).await
    }

    /// Send any request to a server, and return its result as it came: `resources/read`,
    /// `prompts/get`, `completion/complete`, `ping`, …
    #[tool(title = "Request")]
    async fn request(
        &self,
        /// The name of the server
        server: String,
        /// The method
        method: String,
        /// The parameters
        params: Option<Map<String, Value>>,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.request(&server, &method, params).await).await
    }

    /// Test a server against the specification and known client problems. Calls only tools that
    /// say that they only read. Returns the problems, each with its remedy
    #[tool(title = "Check", task(after = "20s"))]
    async fn check(
        &self,
        /// The name of the server
        server: String,
        context: Context,
    ) -> Result<String, String> {
        self.send(async move |desk| {
            desk.check(&server, |done| context.progress(done.into(), None, "")).await
        })
        .await
    }

    /// Walk to a server step by step, and say what is wrong on the way and how to fix it
    #[tool(title = "Doctor", read_only, task(after = "20s"))]
    async fn doctor(
        &self,
        /// The name of the server
        server: String,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.doctor(&server).await).await
    }

    /// Show the latest messages of the connection to a server, as they were on the wire, and the
    /// lines of its standard error
    #[tool(title = "Messages", read_only, open_world = false)]
    async fn messages(
        &self,
        /// The name of the server
        server: String,
        /// How many
        #[arg(default = 20)]
        #[schemars(range(min = 1, max = 1000))]
        last: u32,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.messages(&server, last as usize)).await
    }

    /// Keep the session with a server since it was connected to, under a name, for `replay` and
    /// `diff`
    #[tool(title = "Record", destructive = false, open_world = false)]
    async fn record(
        &self,
        /// The name of the server
        server: String,
        /// The name of the session: letters, digits, `.`, `_` and `-`
        session: String,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.record(&server, &session)).await
    }

    /// Send a server what was sent in a recorded session, and say which answers differ
    #[tool(title = "Replay", task(after = "20s"))]
    async fn replay(
        &self,
        /// The name of the server
        server: String,
        /// The name of the session
        session: String,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.replay(&server, &session).await).await
    }

    /// Compare two sides: what is offered, and between two sessions also what was answered
    #[tool(title = "Compare", read_only)]
    async fn diff(
        &self,
        /// What was before
        before: Side,
        /// What is now
        after: Side,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.diff(before, after).await).await
    }

    /// Return the rest of an answer that was cut
    #[tool(title = "More", read_only, open_world = false)]
    async fn more(
        &self,
        /// The number of the answer
        answer: u64,
        /// Where to go on, in bytes
        from: u64,
    ) -> Result<String, String> {
        self.send(async move |desk| desk.more(answer, from)).await
    }
}
