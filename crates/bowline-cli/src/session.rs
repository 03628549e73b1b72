//! A connection to a server, with everything beside the results routed to the screen and to the
//! recording.

mod journal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline::Client;
use bowline::client::{ClientBuilder, Preference, Restart, Timeouts};
use bowline::model::{LoggingLevel, ProgressParams};

pub(crate) use self::journal::{Heard, Journal, Step, Tap, note};
use crate::answers::Answers;
use crate::failure::{Code, Failure};
use crate::record::Recorder;
use crate::redact;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Place, Resolved, TargetOptions};

/// How a session is led.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) screen: Arc<Screen>,
    pub(crate) is_verbose: bool,
    pub(crate) record: Option<PathBuf>,
    pub(crate) timeouts: Timeouts,
    pub(crate) preference: Preference,
    pub(crate) answers: Answers,
    pub(crate) log: Option<LoggingLevel>,
    /// Whether it goes on where another ended: the recording is added to.
    pub(crate) is_again: bool,
    /// Who listens in.
    pub(crate) tap: Option<Tap>,
}

impl Settings {
    /// As the command line says.
    ///
    /// # Errors
    /// When a file that it names cannot be read.
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
        Ok(Self {
            screen: Arc::new(Screen::new(&output)),
            is_verbose: output.verbose,
            record: output.record,
            timeouts,
            preference: options.revision.unwrap_or(Preference::Auto),
            answers: Answers::read(&options.answers)?,
            log: options.log,
            is_again: false,
            tap: None,
        })
    }
}

impl Settings {
    fn recorder(&self) -> Result<Option<Recorder>, Failure> {
        let file = self.record.as_deref();
        file.map(|file| Recorder::create(file, self.is_again)).transpose()
    }
}

/// A connection to a server.
pub(crate) struct Session {
    client: Client,
    journal: Arc<Journal>,
    screen: Arc<Screen>,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or wants to know who asks.
    pub(crate) async fn open(resolved: &Resolved, settings: &Settings) -> Result<Self, Failure> {
        Self::open_with(resolved, settings, |builder| builder).await
    }

    /// The same, with more said to the client.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or wants to know who asks.
    pub(crate) async fn open_with(
        resolved: &Resolved,
        settings: &Settings,
        more: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let journal = Arc::new(Journal::new(resolved, settings, settings.recorder()?));
        let builder = Client::builder("bowline", env!("CARGO_PKG_VERSION"))
            .title("Bowline")
            .timeouts(settings.timeouts.clone())
            .preference(settings.preference)
            .restart(Restart::Never)
            .without_cache();
        let builder = settings.answers.add_to(builder, &settings.screen);
        let builder = more(journal.listen(builder));
        let target = resolved.target()?;
        let opened = builder.connect(target).await;
        let client = opened.map_err(|error| explained(error.into(), resolved, &journal))?;
        let session = Self { client, journal, screen: Arc::clone(&settings.screen) };
        if let Some(level) = settings.log {
            session.ask_for_logs(level).await;
        }
        Ok(session)
    }

    async fn ask_for_logs(&self, level: LoggingLevel) {
        if let Err(error) = self.client.set_log_level(Some(level)).await {
            self.screen.warn(&format!("--log {level}: {error}"));
        }
    }

    /// Connects, does something, and disconnects, whatever became of it. Ctrl-C ends it in good
    /// order.
    ///
    /// # Errors
    /// When there is no connection, the work fails, or it is interrupted.
    pub(crate) async fn run<T>(
        resolved: &Resolved,
        settings: &Settings,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure>
    where
        T: Default,
    {
        Self::run_until(resolved, settings, OnStop::Fail, work).await
    }

    /// The same; says what Ctrl-C means.
    ///
    /// # Errors
    /// When there is no connection, the work fails, or it is interrupted and that is a failure.
    pub(crate) async fn run_until<T: Default>(
        resolved: &Resolved,
        settings: &Settings,
        on_stop: OnStop,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let session = tokio::select! {
            opened = Self::open(resolved, settings) => Some(opened?),
            () = interrupted() => None,
        };
        let Some(session) = session else {
            settled().await;
            return Err(cancelled());
        };
        let outcome = tokio::select! {
            outcome = work(&session) => outcome,
            () = interrupted() => match on_stop {
                OnStop::Fail => Err(cancelled()),
                OnStop::End => Ok(T::default()),
            },
        };
        let outcome = outcome.map_err(|failure| explained(failure, resolved, &session.journal));
        let screen = Arc::clone(&session.screen);
        session.close_with(outcome.as_ref().err()).await;
        let finished = screen.finish();
        let value = outcome?;
        finished?;
        Ok(value)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// What went over the wire so far.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Shows how far a call is.
    pub(crate) fn progress(&self) -> impl FnMut(ProgressParams) + Send + 'static {
        let screen = Arc::clone(&self.screen);
        move |report| {
            let message = report.message.as_deref().unwrap_or_default();
            screen.progress(report.progress, report.total, message);
        }
    }

    /// Disconnects, and leaves nothing behind.
    pub(crate) async fn close(self) {
        self.close_with(None).await;
    }

    async fn close_with(self, failure: Option<&Failure>) {
        let Self { client, journal, .. } = self;
        tokio::select! {
            () = client.close() => {}
            // Whoever asks twice does not want to wait for a server's last words.
            () = interrupted() => {}
        }
        journal.end(failure);
    }
}

/// What it means when the process is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStop {
    /// The work was cut short.
    Fail,
    /// It ends no other way.
    End,
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

/// Waits until what was begun and given up has ended: a server's process, with all its descendants.
async fn settled() {
    /// Longer than a process may take to end; see `ClientLimits`.
    const MOST: Duration = Duration::from_secs(6);
    const PAUSE: Duration = Duration::from_millis(10);
    let tasks = tokio::runtime::Handle::current().metrics();
    let begun = tokio::time::Instant::now();
    while tasks.num_alive_tasks() > 0 && begun.elapsed() < MOST {
        tokio::time::sleep(PAUSE).await;
    }
}

fn cancelled() -> Failure {
    Failure::new(Code::TimedOut, "interrupted")
}

/// Says which server failed, and how to log in where that is what is missing.
fn explained(failure: Failure, resolved: &Resolved, journal: &Journal) -> Failure {
    let mut failure = failure;
    if failure.code == Code::Unauthorized
        && let Place::Url { url, .. } = &resolved.place
    {
        let url = redact::url(url);
        failure =
            failure.with_remedy(format!("log in with `bowline login {url}`, or give --token"));
    }
    failure.what = journal.redact(&failure.what);
    // A URL or a command is before the user's eyes; behind a name is what a file says.
    if resolved.from.is_some() && matches!(failure.code, Code::Unreachable | Code::Unauthorized) {
        failure.what = format!("{}: {}", resolved.name, failure.what);
    }
    failure
}
