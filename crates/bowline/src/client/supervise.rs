//! The task that owns a connection on a byte stream: opens it, watches it, reopens it, closes it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bowline_proto::revision::Revisions;
use bowline_proto::session::{Action, Connect, ConnectError, Transport};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::child::{Command, Process};
use super::connection::{Reader, Writer, drive};
use super::error::{CloseReason, Exit, OpenError};
use super::handshake::{Search, Stop};
use super::limits::ClientLimits;
use super::restart::{Backoff, Restart};
use super::shared::{Link, Shared};
use super::state::Phase;
use crate::clock;
use crate::outbox::Outbox;

/// Where a byte stream comes from.
pub(super) enum Source {
    /// A process, which can be restarted.
    Command(Command),
    /// A stream that can be used once.
    Once(Option<Once>),
}

/// A stream that can be used once, and the server at its other end, if it is ours.
pub(super) struct Once {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) server: Option<JoinHandle<()>>,
}

/// Owns a connection over a byte stream.
pub(super) struct Supervisor {
    pub(super) shared: Arc<Shared>,
    pub(super) source: Source,
    pub(super) closing: watch::Receiver<bool>,
}

/// Waits until the client is to be closed: explicitly, or because its last clone was dropped.
pub(super) async fn asked_to_close(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

impl Supervisor {
    /// Keeps the connection until it is closed for good.
    pub(super) async fn run(mut self, opened: oneshot::Sender<Result<(), OpenError>>) {
        let mut running = match self.open_in_time().await {
            Ok(running) => running,
            Err(error) => {
                self.finish(CloseReason::NotReopened(error.to_string())).await;
                let _ = opened.send(Err(error));
                return;
            }
        };
        if opened.send(Ok(())).is_err() {
            running.end(&self.shared).await;
            return self.finish(CloseReason::Asked).await;
        }
        let mut backoff = Backoff::new();
        loop {
            let since = clock::now();
            let reason = tokio::select! {
                reason = running.ended(&self.shared.profile.limits) => reason,
                () = asked_to_close(&mut self.closing) => {
                    self.shared.enter(Phase::Closing, None);
                    self.shared.cancel_all(&running.outbox);
                    self.shared.go_down(&CloseReason::Asked);
                    running.end(&self.shared).await;
                    return self.finish(CloseReason::Asked).await;
                }
            };
            self.shared.enter(Phase::Starting, Some(reason.clone()));
            self.shared.go_down(&reason);
            running.end(&self.shared).await;
            running = match self.reopen(&mut backoff, since.elapsed(), reason).await {
                Ok(running) => running,
                Err(reason) => return self.finish(reason).await,
            };
        }
    }

    /// Restarts the process, after a pause.
    async fn reopen(
        &mut self,
        backoff: &mut Backoff,
        lasted: Duration,
        reason: CloseReason,
    ) -> Result<Running, CloseReason> {
        let Restart::OnExit { attempts, stable } = self.shared.profile.restart else {
            return Err(reason);
        };
        if !matches!(self.source, Source::Command(_)) {
            return Err(reason);
        }
        if lasted >= stable {
            backoff.reset();
        }
        let mut why = reason.to_string();
        while backoff.failures() < attempts {
            let wait = backoff.next();
            tracing::warn!(%why, ?wait, "restarting the server");
            let mut closing = self.closing.clone();
            tokio::select! {
                () = sleep(wait) => {}
                () = asked_to_close(&mut closing) => return Err(CloseReason::Asked),
            }
            match self.open_in_time().await {
                Ok(running) => return Ok(running),
                Err(error) => why = error.to_string(),
            }
        }
        Err(CloseReason::NotReopened(why))
    }

    async fn open_in_time(&mut self) -> Result<Running, OpenError> {
        let patience = self.shared.profile.timeouts.connect;
        let mut closing = self.closing.clone();
        let opened = tokio::select! {
            opened = timeout(patience, self.open()) => opened,
            () = asked_to_close(&mut closing) => {
                Ok(Err(OpenError::Target("the client was closed while connecting".to_owned())))
            }
        };
        let opened = opened.unwrap_or(Err(OpenError::TimedOut(patience)));
        if opened.is_err() {
            self.shared.go_down(&CloseReason::EndOfStream);
        }
        opened
    }

    /// Opens the stream and finds out which revision the server speaks.
    async fn open(&mut self) -> Result<Running, OpenError> {
        let profile = &self.shared.profile;
        let ours = profile.preference.narrow(Revisions::ALL);
        let mut connect =
            Connect::new(Transport::Stream, ours).with_probe_timeout(profile.timeouts.probe);
        let key = match &self.source {
            Source::Command(command) => Some(command.key()),
            Source::Once(_) => None,
        };
        let known = key.as_ref().and_then(|key| profile.verdicts.find(key));
        let mut action = connect.open(known);
        let shared = Arc::clone(&self.shared);
        loop {
            let mut running = self.start()?;
            shared.enter(Phase::Initializing, None);
            let link = Link::Stream(Arc::clone(&running.outbox));
            let search = Search::new(&shared, &link, &mut connect).run(action);
            match running.during(&shared, search).await {
                Ok(live) => {
                    if let Some(key) = &key {
                        shared.profile.verdicts.remember(key, live.peer.revision);
                    }
                    shared.go_live(live);
                    return Ok(running);
                }
                Err(Stop::Respawn(revision)) => {
                    running.end(&shared).await;
                    if matches!(self.source, Source::Once(_)) {
                        return Err(OpenError::Connect { error: ConnectError::Exited, exit: None });
                    }
                    action = Action::Initialize(revision);
                }
                Err(Stop::Failed { error, .. }) => {
                    if let Some(key) = key.as_ref().filter(|_| known.is_some()) {
                        shared.profile.verdicts.forget(key);
                    }
                    let exit = running.end(&shared).await;
                    let exit = exit.filter(|_| error == ConnectError::Exited);
                    return Err(OpenError::Connect { error, exit });
                }
            }
        }
    }

    fn start(&mut self) -> Result<Running, OpenError> {
        let profile = &self.shared.profile;
        let (reader, writer, process, server) = match &mut self.source {
            Source::Command(command) => {
                let (process, reader, writer) =
                    command.spawn(&profile.limits, profile.on_stderr.clone())?;
                self.shared.process.store(process.id().unwrap_or(0), Ordering::Relaxed);
                (reader, writer, Some(process), None)
            }
            Source::Once(once) => {
                let Once { reader, writer, server } = once
                    .take()
                    .ok_or_else(|| OpenError::Target("the stream was already used".to_owned()))?;
                (reader, writer, None, server)
            }
        };
        let outbox = Arc::new(Outbox::new(profile.limits.outbox));
        let driver = drive(Arc::clone(&self.shared), Arc::clone(&outbox), reader, writer);
        let driver: Driver = Box::pin(driver);
        Ok(Running { outbox, driver: Some(driver), over: None, process, server })
    }

    /// Ends the client for good.
    async fn finish(self, reason: CloseReason) {
        finish(&self.shared, reason).await;
    }
}

/// Ends everything that a client still does.
pub(super) async fn finish(shared: &Shared, reason: CloseReason) {
    shared.go_down(&reason);
    shared.workers.stop().await;
    // A task may have opened a session just before it was stopped.
    shared.go_down(&reason);
    shared.feeds.end();
    // Last, because callers that wait for this phase rely on nothing being left.
    shared.enter(Phase::Closed, Some(reason));
}

/// What reads and writes a stream until it ends.
type Driver = Pin<Box<dyn Future<Output = CloseReason> + Send>>;

/// A stream that is open.
struct Running {
    outbox: Arc<Outbox>,
    driver: Option<Driver>,
    /// Why the driver has ended.
    over: Option<CloseReason>,
    process: Option<Process>,
    server: Option<JoinHandle<()>>,
}

/// How long the output of a dead process may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl Running {
    /// Waits until the stream has ended, and returns the reason. Can be called again.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn ended(&mut self, limits: &ClientLimits) -> CloseReason {
        if let Some(driver) = &mut self.driver {
            let reason = match &mut self.process {
                None => driver.await,
                Some(process) => tokio::select! {
                    reason = &mut *driver => reason,
                    // A descendant may keep the pipe open forever.
                    () = process.exited() => {
                        timeout(LAST_WORDS, driver).await.unwrap_or(CloseReason::EndOfStream)
                    }
                },
            };
            self.driver = None;
            self.over = Some(reason);
            self.outbox.close();
        }
        match &mut self.process {
            Some(process) => CloseReason::Exited(process.end(limits).await),
            None => self.over.clone().unwrap_or(CloseReason::EndOfStream),
        }
    }

    /// Runs something while the stream is driven.
    async fn during<T>(&mut self, shared: &Shared, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            reason = self.ended(&shared.profile.limits) => shared.go_down(&reason),
        }
        // Nothing more will arrive, so it finishes on its own.
        work.await
    }

    /// Shuts down in order. Returns how the process exited, if there was one.
    async fn end(&mut self, shared: &Shared) -> Option<Arc<Exit>> {
        self.outbox.close();
        shared.process.store(0, Ordering::Relaxed);
        let limits = &shared.profile.limits;
        let driver = self.driver.take();
        let drive = async {
            match driver {
                Some(driver) => drop(driver.await),
                None => std::future::pending().await,
            }
        };
        let mut drive = std::pin::pin!(drive);
        let mut is_driving = true;
        let exit = match &mut self.process {
            Some(process) => {
                let mut end = std::pin::pin!(process.end(limits));
                loop {
                    tokio::select! {
                        exit = &mut end => break Some(exit),
                        () = &mut drive, if is_driving => is_driving = false,
                    }
                }
            }
            None => {
                let _ = timeout(limits.exit_grace, drive).await;
                None
            }
        };
        if let Some(mut server) = self.server.take()
            && timeout(limits.term_grace, &mut server).await.is_err()
        {
            server.abort();
        }
        exit
    }
}
