//! One client on a byte stream: reading, dispatching, writing, ending.
//!
//! A single task owns both directions. It dispatches each request as it reads it and polls the
//! handler once in place; only handlers that wait become tasks, which are owned and joined here.
//! Reading pauses while too many requests are queued or too much output is pending, so a slow
//! client slows only itself down.
//!
//! When the stream ends, everything that was read is answered. For a client that has talked with us
//! the time for that is short, and nothing but answers is sent. The same holds when the server is
//! told to stop; requests read after that are rejected, so their senders know nothing was done.

mod batch;
mod costs;
mod flight;
mod inward;
mod outward;
mod parked;

use std::collections::HashMap;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bowline_proto::session::{Inbound, Lifecycle, SameId};
use bowline_proto::wire::Id;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{JoinSet, coop};

use self::batch::Batches;
use self::costs::Costs;
use self::flight::{InFlight, Reply, Working};
use self::parked::Parked;
use super::account::Account;
#[cfg(feature = "http")]
use super::account::places::Most;
use super::answer::Outcome;
use super::bus::Sink;
use super::caller::Opening;
use super::core::Core;
#[cfg(feature = "http")]
use super::head::HttpHead;
use super::peer::{LastPeer, Peer, Via};
use super::principal::Principal;
use super::session::Session;
use crate::clock;
use crate::outbox::Outbox;
use crate::rarely::{Bell, Rarely};
use crate::stream::{Input, Output};

/// One client on a byte stream.
pub(crate) struct Connection {
    core: Arc<Core>,
    /// What it counts against.
    account: Arc<Account>,
    outbox: Arc<Outbox>,
    session: Arc<Session>,
    lifecycle: Lifecycle,
    sink: Arc<Sink>,
    /// Whether the sink has something to report.
    news: Bell,
    inbound: Inbound<InFlight>,
    tasks: JoinSet<Outcome>,
    working: HashMap<tokio::task::Id, Working>,
    batches: Batches,
    parked: Parked,
    costs: Costs,
    intake: Intake,
    talk: Talk,
    /// The sender of legacy requests, once there is one.
    legacy: Option<Arc<Peer>>,
    /// The sender of modern requests.
    modern: LastPeer,
    /// The identity of the client, if the transport knows it.
    principal: Option<Principal>,
    via: Via,
    opening: Opening,
    /// The handshake, while middleware decides about it.
    handshake: Option<Id>,
    /// The number of listen requests within middleware.
    listening: Arc<AtomicUsize>,
    /// Ends them. There is one once it is needed.
    ending: Option<watch::Sender<bool>>,
}

/// Why serving ended.
enum End {
    /// We were told to stop.
    Stopped,
    /// The client stopped reading.
    Unread,
    /// The client closed its side, or reading failed.
    Read(io::Result<()>),
}

/// Whether new requests are served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intake {
    Open,
    Closed,
}

/// What kind of client there is, as far as that has shown. One that sends a message after it got an
/// answer is a program that talks with us: when it closes its side, it has gone, or soon kills us.
/// In a pipe from a file everything comes at once, and the reader of the other end wants all
/// answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Talk {
    /// Nothing has been written.
    Silent,
    /// Something has been written.
    Answered,
    /// Everything that was read has been dealt with.
    Paused,
    /// It went on after that.
    Going,
}

impl Talk {
    /// Goes one step further, if this is the next one.
    fn note(&mut self, next: Self) {
        if *self as u8 + 1 == next as u8 {
            *self = next;
        }
    }
}

impl Connection {
    /// A client that is a party by itself.
    pub(crate) fn alone(core: Arc<Core>, via: Via) -> Self {
        let account = core.accounts.alone();
        Self::new(core, account, None, via)
    }

    pub(crate) fn new(
        core: Arc<Core>,
        account: Arc<Account>,
        principal: Option<Principal>,
        via: Via,
    ) -> Self {
        let outbox = Arc::new(Outbox::new(core.limits.outbox));
        let limits = &core.limits;
        // Listen requests do not count against the limit on running requests.
        let open = limits.requests_in_flight.max(1).saturating_add(limits.listens);
        Self {
            session: Arc::new(Session::new()),
            outbox,
            lifecycle: Lifecycle::new(core.offer),
            sink: core.registry.bus().attach(Arc::clone(&account)),
            news: Bell::new(),
            inbound: Inbound::new(SameId::Refuse, open),
            tasks: JoinSet::new(),
            working: HashMap::new(),
            batches: Batches::new(Arc::clone(&account)),
            parked: Parked::new(limits.requests_waiting, Arc::clone(&account)),
            costs: Costs::none(Arc::clone(&account)),
            intake: Intake::Open,
            talk: Talk::Silent,
            legacy: None,
            modern: LastPeer::default(),
            principal,
            via,
            opening: Opening::default(),
            handshake: None,
            listening: Arc::default(),
            ending: None,
            account,
            core,
        }
    }

    /// Shows its handlers the HTTP request that opened it, and counts its calls like those of
    /// other requests.
    #[cfg(feature = "http")]
    pub(crate) fn opened_by(mut self, request: &Arc<HttpHead>, calls: Most) -> Self {
        self.opening = Some(Arc::clone(request));
        self.costs.count(calls);
        self
    }

    /// Serves until the client closes its side or `stop` is ready, then lets running handlers
    /// finish.
    ///
    /// # Errors
    /// When reading fails. A client that stops reading is not an error: it has disconnected.
    pub(crate) async fn run<R, W>(
        mut self,
        reader: R,
        writer: W,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut input = Input::new(reader, self.core.limits.line_length);
        let mut output = Output::new(writer);
        if let Some(kept) = self.costs.kept() {
            (input, output) = (input.keeping(kept), output.keeping(kept));
        }
        let mut stop = Rarely::new(stop);
        let end = poll_fn(|cx| self.poll(cx, &mut input, &mut output, &mut stop)).await;
        let (is_stopped, ended) = match end {
            End::Stopped => (true, Ok(())),
            End::Unread => (false, Ok(())),
            End::Read(ended) => (false, ended),
        };
        // A client that closes its side and tells us to stop, in any order, has lost patience.
        let hurry = async { if is_stopped { pending().await } else { stop.await } };
        self.end((&mut input, is_stopped), output, hurry).await;
        ended
    }

    /// Makes progress until there is nothing left to do for now.
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input<R>,
        output: &mut Output<W>,
        stop: &mut Rarely<impl Future<Output = ()>>,
    ) -> Poll<End>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.outbox.stay_awake();
        loop {
            // A client that never pauses must not starve other tasks.
            ready!(coop::poll_proceed(cx)).made_progress();
            // Checked first, or such a client would be served for ever.
            if Pin::new(&mut *stop).poll(cx).is_ready() {
                return Poll::Ready(End::Stopped);
            }
            let mut is_moving = false;
            if input.is_empty()
                && self.can_take_in()
                && let Poll::Ready(read) = input.poll_read(cx)
            {
                if read.is_err() || !input.is_open() {
                    return Poll::Ready(End::Read(read));
                }
                self.talk.note(Talk::Going);
                is_moving = true;
            }
            self.take_in(cx, input);
            while let Poll::Ready(Some(joined)) = self.tasks.poll_join_next_with_id(cx) {
                self.finish_task(joined);
                is_moving = true;
            }
            is_moving |= self.poll_changes(cx);
            while output.refill(&self.outbox) {
                match output.poll_write(cx) {
                    Poll::Ready(Ok(())) => {
                        is_moving = true;
                        self.talk.note(Talk::Answered);
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(End::Unread),
                    Poll::Pending => break,
                }
            }
            // A client that does not read the answers that it asks for is closed.
            if self.costs.hold_output(&self.outbox, output.length()).is_err() {
                return Poll::Ready(End::Unread);
            }
            // While writing is pending, more input is read.
            if !is_moving && (output.has_work() || self.outbox.poll_filled(cx).is_pending()) {
                self.talk.note(Talk::Paused);
                return Poll::Pending;
            }
        }
    }

    /// Whether the maximum number of requests is running.
    fn is_full(&self) -> bool {
        // Listen requests within middleware are tasks, but do not count.
        let working = self.working.len().saturating_sub(self.listening.load(Ordering::Relaxed));
        working >= self.core.limits.requests_in_flight.max(1)
    }

    /// Whether there is room for another frame.
    fn can_take_in(&self) -> bool {
        self.parked.has_room() && self.outbox.has_room()
    }

    /// Handles queued requests, then frames that have been read, as far as there is room.
    fn take_in<R: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, input: &mut Input<R>) {
        while !self.is_full() && self.outbox.has_room() {
            let Some(parked) = self.parked.pop() else { break };
            self.handle_parked(cx, &parked);
        }
        while !input.is_empty() && self.can_take_in() {
            match input.next_frame() {
                Some(Ok(frame)) => self.handle_frame(cx, frame),
                Some(Err(error)) => self.handle_too_long(&error),
                None => {}
            }
        }
    }

    /// Ends the connection: answers as many requests as possible within the grace period or until
    /// `hurry` is ready, or until the input ends if it hurries then, and stops everything.
    async fn end<R, W>(
        mut self,
        (input, hurries_at_end): (&mut Input<R>, bool),
        mut output: Output<W>,
        hurry: impl Future<Output = ()>,
    ) where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let limits = &self.core.limits;
        let has_gone = !input.is_open() && self.talk == Talk::Going;
        let time = if has_gone { limits.farewell.min(limits.grace) } else { limits.grace };
        let deadline = clock::now() + time;
        if has_gone {
            self.outbox.quieten();
        }
        self.take_in_last(input).await;
        // The client will not answer questions any more.
        self.session.close("closed");
        self.end_listens();
        let mut hurry = std::pin::pin!(hurry);
        while self.costs.hold_output(&self.outbox, output.length()).is_ok() {
            with_task(|cx| self.take_in(cx, input)).await;
            if input.is_empty() {
                self.intake = Intake::Closed;
            }
            output.refill(&self.outbox);
            let can_read = input.is_open() && input.is_empty() && self.can_take_in();
            let is_idle = self.tasks.is_empty() && self.parked.is_empty() && input.is_empty();
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => {
                    if has_gone {
                        self.forget_requests();
                    }
                    break;
                }
                () = &mut hurry => {
                    self.forget_requests();
                    break;
                }
                written = output.write(), if output.has_work() => {
                    if written.is_err() {
                        break;
                    }
                }
                Some(joined) = self.tasks.join_next_with_id() => self.finish_task(joined),
                () = self.outbox.filled(), if !output.has_work() => {}
                _ = input.read(), if can_read => {
                    self.take_in_last(input).await;
                    if hurries_at_end && !input.is_open() {
                        self.forget_requests();
                        break;
                    }
                }
                () = std::future::ready(()), if is_idle => break,
            }
        }
        self.abort_tasks();
        self.outbox.close();
        if self.costs.is_spent() {
            return;
        }
        // Neither a client that does not read nor a handler that does not yield may delay the end.
        let late = deadline + self.core.limits.grace;
        let _ = tokio::time::timeout_at(late, output.close(&self.outbox)).await;
        let _ = tokio::time::timeout_at(late, self.tasks.shutdown()).await;
        let _ = tokio::time::timeout_at(late, self.core.leftovers.finish()).await;
    }

    /// Leaves requests without an answer: nobody waits for it, and some clients fail on it.
    fn forget_requests(&mut self) {
        self.working.clear();
        self.parked.clear();
    }

    /// Handles the last line of a stream that has ended, which may lack its line break.
    async fn take_in_last<R: AsyncRead + Unpin>(&mut self, input: &mut Input<R>) {
        if !input.is_open()
            && let Some(frame) = input.last_frame()
        {
            with_task(|cx| self.handle_frame(cx, &frame)).await;
        }
    }
}

/// Calls a function with the context of the current task.
async fn with_task(mut work: impl FnMut(&mut Context<'_>)) {
    poll_fn(|cx| {
        work(cx);
        Poll::Ready(())
    })
    .await;
}
