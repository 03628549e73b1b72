//! A connection to a server, with everything beside the result going to the screen and to the
//! recording.

mod journal;
mod repeats;
mod requests;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::{
    CallError, ClientBuilder, ClientLimits, Phase, Preference, Restart, Timeouts,
};
use bowline::model::LoggingLevel;
use bowline::{Client, Json};
use tokio::time::Instant;

pub(crate) use self::journal::{Channel, Journal, Tap, Tapped, note};
pub(crate) use self::requests::SentRequest;
use crate::answers::Answers;
use crate::failure::{Code, Failure};
use crate::redact;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Location, Resolved, TargetArgs, TargetOptions};

/// How to talk to a server.
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
        let mut limits = ClientLimits::default();
        let screen = Arc::new(Screen::new(&output));
        if !screen.is_quiet {
            // It has been shown as it came: errors need not repeat it.
            limits.stderr_lines = 0;
        }
        if let Some(size) = options.max_size {
            limits.message_length = size;
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
        let session = self.open().await?;
        let outcome = until_stopped(Box::pin(work(&session)), Err(cancelled())).await;
        self.finish(session, outcome).await
    }

    /// The same for work that has no end of its own: Ctrl-C ends it successfully.
    pub(crate) async fn run_until_stopped(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let session = self.open().await?;
        let outcome = until_stopped(Box::pin(work(&session)), Ok(())).await;
        self.finish(session, outcome).await
    }

    async fn open(&self) -> Result<Session, Failure> {
        tokio::select! {
            opened = Session::open(&self.resolved, &self.settings, &|it| it) => return opened,
            () = interrupted() => {}
        }
        settled().await;
        Err(cancelled())
    }

    async fn finish(&self, session: Session, outcome: Result<(), Failure>) -> Result<(), Failure> {
        let outcome =
            outcome.map_err(|failure| explained(failure, &self.resolved, &session.journal));
        session.close(outcome.as_ref().err()).await;
        let finished = self.settings.screen.finish();
        outcome.and(finished)
    }
}

async fn until_stopped(work: Work<'_>, stopped: Result<(), Failure>) -> Result<(), Failure> {
    tokio::select! {
        outcome = work => outcome,
        () = interrupted() => stopped,
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

    /// Sends a request and shows its progress.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: impl Into<Json>,
    ) -> Result<Json, Failure> {
        let screen = Arc::clone(&self.screen);
        let call = self.client.call_json(method, params).on_progress(move |report| {
            let message = report.message.as_deref().unwrap_or_default();
            screen.progress(report.progress, report.total, message);
        });
        // A person may take longer to answer than a server; the total time still ends it.
        let call = call.idle_timeout(self.patience.max(DAY));
        tokio::select! {
            result = call => Ok(result?),
            () = self.screen.silence(self.patience) => {
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
            () = interrupted() => {}
        }
        self.journal.end(failure);
    }
}

/// Waits until the process is told to stop.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let stop = |kind| async move {
            match signal(kind) {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop(SignalKind::interrupt()) => {}
            () = stop(SignalKind::terminate()) => {}
            () = stop(SignalKind::hangup()) => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
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

fn cancelled() -> Failure {
    Failure::new(Code::Interrupted, "interrupted")
}

/// Names the server that failed, and says how to log in where that is what is missing.
fn explained(mut failure: Failure, resolved: &Resolved, journal: &Journal) -> Failure {
    if failure.code == Code::Unauthorized
        && let Location::Url { url, .. } = &resolved.location
    {
        let url = redact::url(url);
        failure =
            failure.with_remedy(format!("log in with `bowline login {url}`, or give --token"));
    }
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
