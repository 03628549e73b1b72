//! A connection to a server, with everything beside the result going to the screen and to the
//! recording.

mod journal;
mod repeats;
mod requests;
mod told;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::client::{
    CallError, ClientBuilder, ClientLimits, Phase, Preference, Restart, Started, Timeouts,
};
use bowline::model::{LoggingLevel, ProgressParams};
use bowline::{Client, Json};
use tokio::time::Instant;

#[cfg(unix)]
pub(crate) use self::journal::shown;
pub(crate) use self::journal::{Channel, Journal, LineSink, Tap, Tapped, note};
pub(crate) use self::requests::SentRequest;
pub(crate) use self::told::{TaskTold, task_words};
use crate::answers::Answers;
use crate::failure::{Code, Failure};
use crate::redact;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Location, Resolved, TargetArgs, TargetOptions};

/// How to talk to a server.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) screen: Arc<Screen>,
    pub(crate) is_verbose: bool,
    pub(crate) record: Option<PathBuf>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: ClientLimits,
    pub(crate) preference: Preference,
    pub(crate) answers: Answers,
    pub(crate) log: Option<LoggingLevel>,
    /// Whether this session continues an earlier one, so that the recording is appended to.
    pub(crate) is_again: bool,
    /// Receives everything that happens on the connection.
    pub(crate) tap: Option<Tap>,
    /// Receives every line of the recording, whether there is a file or not.
    pub(crate) lines: Option<LineSink>,
    /// When the session began, if this one continues it: on the same clock, with no other opening.
    pub(crate) begun: Option<Instant>,
}

impl Settings {
    /// Reads the command line.
    pub(crate) fn new(options: &TargetOptions, root: &OutputArgs) -> Result<Self, Failure> {
        let output = options.output.clone().or(root);
        let mut timeouts = Timeouts::default();
        if let Some(connect) = options.connect_timeout {
            timeouts.connect = connect;
        }
        if let Some(idle) = options.timeout {
            timeouts.idle = idle;
            timeouts.total = timeouts.total.max(idle);
        }
        let mut limits = options.most.limits_for_people();
        let screen = Arc::new(Screen::new(&output));
        if !screen.is_quiet {
            // It has been shown as it came: errors need not repeat it.
            limits.stderr_lines = 0;
        }
        Ok(Self {
            screen,
            is_verbose: output.verbose,
            record: output.record,
            timeouts,
            limits,
            preference: options.revision.unwrap_or(Preference::Auto),
            answers: Answers::read(&options.answers)?,
            log: options.log,
            is_again: false,
            tap: None,
            lines: None,
            begun: None,
        })
    }
}

/// One run of a command: which server, and how to talk to it.
pub(crate) struct Invocation {
    pub(crate) resolved: Resolved,
    settings: Settings,
}

/// What a command does with its session. Boxed so that connecting and closing are compiled once,
/// not once for every command.
type Work<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

impl Invocation {
    /// Reads the command line.
    pub(crate) fn new(target: &TargetArgs, root: &OutputArgs) -> Result<Self, Failure> {
        let settings = Settings::new(&target.options, root)?;
        Ok(Self { settings, resolved: target.resolve()? })
    }

    /// The same for a command whose server is the first word, unless a command follows `--`.
    /// Also returns the other words.
    pub(crate) fn split<'a>(
        options: &TargetOptions,
        words: &'a [String],
        root: &OutputArgs,
    ) -> Result<(Self, &'a [String]), Failure> {
        let settings = Settings::new(options, root)?;
        let (resolved, words) = options.resolve_words(words)?;
        Ok((Self { resolved, settings }, words))
    }

    /// Connects, does the work, and disconnects whatever the outcome. Ctrl-C fails the command.
    pub(crate) async fn run(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.run_as(&|it| it, work).await
    }

    /// The same as a client with further settings.
    pub(crate) async fn run_as(
        &self,
        more: &dyn Fn(ClientBuilder) -> ClientBuilder,
        work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let session = self.open(more).await?;
        let outcome = until_stopped(Box::pin(work(&session)), Err).await;
        self.finish(session, outcome).await
    }

    /// The same for work that has no end of its own: Ctrl-C ends it successfully.
    pub(crate) async fn run_until_stopped(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let session = self.open(&|it| it).await?;
        let outcome = until_stopped(Box::pin(work(&session)), |_| Ok(())).await;
        self.finish(session, outcome).await
    }

    async fn open(
        &self,
        more: &dyn Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<Session, Failure> {
        let stopped = tokio::select! {
            opened = Session::open(&self.resolved, &self.settings, more) => return opened,
            stopped = interrupted() => stopped,
        };
        settled().await;
        Err(stopped)
    }

    async fn finish(&self, session: Session, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let outcome =
            outcome.map_err(|failure| explained(failure, &self.resolved, &session.journal));
        session.close(outcome.as_ref().err()).await;
        let finished = self.settings.screen.finish();
        outcome.and(finished)
    }
}

async fn until_stopped(
    work: Work<'_>,
    stop: impl FnOnce(Failure) -> Result<(), Failure>,
) -> Result<(), Failure> {
    tokio::select! {
        outcome = work => outcome,
        stopped = interrupted() => stop(stopped),
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A connection to a server.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// What went over the wire so far.
    pub(crate) journal: Arc<Journal>,
    pub(crate) screen: Arc<Screen>,
    /// How long a call may be silent.
    patience: Duration,
}

impl Session {
    /// Connects; `more` completes the client's settings.
    pub(crate) async fn open(
        resolved: &Resolved,
        settings: &Settings,
        more: &dyn Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let journal = Arc::new(Journal::new(resolved, settings)?);
        let builder = Client::builder("bowline", env!("CARGO_PKG_VERSION"))
            .title("Bowline")
            .timeouts(settings.timeouts.clone())
            .limits(settings.limits.clone())
            .preference(settings.preference)
            .restart(Restart::Never)
            .without_cache();
        let builder = settings.answers.add_to(builder, &settings.screen);
        let opened = more(journal.listen(builder)).connect(resolved.target()?).await;
        let client = opened.map_err(|error| explained(error.into(), resolved, &journal))?;
        let screen = Arc::clone(&settings.screen);
        if let Some(level) = settings.log
            && let Err(error) = client.set_log_level(Some(level)).await
        {
            screen.warn(&format!("--log {level}: {error}"));
        }
        Ok(Self { client, journal, screen, patience: settings.timeouts.idle })
    }

    /// Sends a request, shows its progress, and waits for the task that it may become.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: impl Into<Json>,
    ) -> Result<Json, Failure> {
        let is_task = Arc::new(AtomicBool::new(false));
        let (screen, noted) = (Arc::clone(&self.screen), Arc::clone(&is_task));
        let mut told = TaskTold::default();
        let call = self.client.call_json(method, params).on_progress(self.bar());
        let call = call.on_status(move |state| {
            noted.store(true, Ordering::Relaxed);
            told.tell(&screen, state);
        });
        self.patiently(method, &is_task, call.idle_timeout(self.patience.max(DAY))).await
    }

    /// Calls a tool, and returns as soon as it is a task or has ended.
    pub(crate) async fn start(&self, tool: &str, arguments: &Json) -> Result<Started, Failure> {
        let call = self.client.call_tool(tool, arguments).on_progress(self.bar());
        let started = call.idle_timeout(self.patience.max(DAY)).start();
        self.patiently("tools/call", &AtomicBool::new(false), started).await
    }

    /// Shows progress.
    fn bar(&self) -> impl FnMut(ProgressParams) + Send + 'static {
        let screen = Arc::clone(&self.screen);
        move |report| {
            let message = report.message.as_deref().unwrap_or_default();
            screen.progress(report.progress, report.total, message);
        }
    }

    /// Waits for a call until the server has been silent for too long. A person may take longer to
    /// answer than a server, and a task is silent while it works; the total time still ends them.
    async fn patiently<T>(
        &self,
        method: &str,
        is_task: &AtomicBool,
        call: impl IntoFuture<Output = Result<T, CallError>>,
    ) -> Result<T, Failure> {
        let silence = async {
            self.screen.silence(self.patience).await;
            if is_task.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            result = call.into_future() => Ok(result?),
            () = silence => {
                let (method, after) = (method.to_owned(), self.patience);
                Err(CallError::TimedOut { method, after }.into())
            }
        }
    }

    /// Asks whether the server is there; returns the seconds it took to answer.
    pub(crate) async fn ping(&self) -> Result<f64, Failure> {
        let begun = Instant::now();
        self.client.ping().await?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Waits until the connection has ended, and says why.
    pub(crate) async fn lost(&self) -> Failure {
        let mut watch = self.client.watch();
        while watch.wait_for(Phase::Closed, DAY).await.is_err() {}
        let reason = self.client.state().reason;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Failure::new(Code::Unreachable, format!("the connection ended{reason}"))
    }

    pub(crate) async fn close(self, failure: Option<&Failure>) {
        tokio::select! {
            () = self.client.close() => {}
            // A second Ctrl-C means: do not wait for the server.
            _ = interrupted() => {}
        }
        self.journal.end(failure);
    }
}

/// Waits until the process is told to stop, and returns how the command fails then.
pub(crate) async fn interrupted() -> Failure {
    #[cfg(unix)]
    let code = {
        use tokio::signal::unix::{SignalKind, signal};
        let stop = |kind| async move {
            match signal(kind) {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop(SignalKind::interrupt()) => Code::Interrupted,
            () = stop(SignalKind::terminate()) => Code::Terminated,
            () = stop(SignalKind::hangup()) => Code::HungUp,
        }
    };
    #[cfg(not(unix))]
    let code = {
        bowline::stop_signal().await;
        Code::Interrupted
    };
    Failure::new(code, "interrupted")
}

/// Waits until the process is told to stop, for commands that run until then.
pub(crate) async fn told_to_stop() {
    interrupted().await;
}

/// Waits until everything that was started and given up has ended: the server's process and all its
/// descendants.
async fn settled() {
    /// Longer than a process may take to end; see `ClientLimits`.
    const LIMIT: Duration = Duration::from_secs(6);
    const PAUSE: Duration = Duration::from_millis(10);
    let tasks = tokio::runtime::Handle::current().metrics();
    let begun = Instant::now();
    while tasks.num_alive_tasks() > 0 && begun.elapsed() < LIMIT {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Names the server that failed, and says how to log in where that is what is missing.
fn explained(failure: Failure, resolved: &Resolved, journal: &Journal) -> Failure {
    let mut failure = with_login(failure, resolved);
    let is_status = matches!(failure.code, Code::Refused | Code::Unreachable);
    if let Some(said) = journal.refusal().filter(|_| is_status && failure.error.is_none()) {
        failure.what += &format!("; it says: {said}");
    }
    failure.what = journal.redact(&failure.what);
    // The user has typed a URL or a command; a name stands for what a file says.
    if resolved.from.is_some() && matches!(failure.code, Code::Unreachable | Code::Unauthorized) {
        failure.what = format!("{}: {}", resolved.name, failure.what);
    }
    failure
}

/// Says how to log in where that is what is missing.
pub(crate) fn with_login(failure: Failure, resolved: &Resolved) -> Failure {
    match &resolved.location {
        Location::Url { url, .. } if failure.code == Code::Unauthorized => {
            let url = redact::url(url);
            failure.with_remedy(format!("log in with `bowline login {url}`, or give --token"))
        }
        _ => failure,
    }
}
