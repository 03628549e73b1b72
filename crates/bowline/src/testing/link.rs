//! The wire between a test client and the server: frames in memory, answers to whoever waits.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::line;
use bowline_proto::wire::{
    Id, Message, Request, encode_error, encode_notification, encode_request, encode_response,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::answers::Answers;
use super::{Notified, TestError};
use crate::ServeError;
use crate::server::Core;

/// One client's end.
pub(super) struct Link {
    writer: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
    server: JoinHandle<Result<(), ServeError>>,
    next_id: AtomicI64,
}

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    answers: HashMap<Id, Result<Json, ErrorObject>>,
    questions: VecDeque<Vec<u8>>,
    notifications: VecDeque<Notified>,
    is_closed: bool,
}

impl Link {
    pub(super) fn open(core: Arc<Core>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let server = tokio::spawn(async move {
            crate::server::serve_core(core, theirs).await.map_err(ServeError::from)
        });
        let (read, write) = tokio::io::split(ours);
        let shared = Arc::new(Shared::default());
        let reader = tokio::spawn(read_all(read, Arc::clone(&shared)));
        Self {
            writer: tokio::sync::Mutex::new(write),
            shared,
            reader,
            server,
            next_id: AtomicI64::new(1),
        }
    }

    pub(super) fn next_token(&self) -> i64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer, answering what the server asks meanwhile.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &Value,
        answers: &Answers,
    ) -> Result<Json, TestError> {
        let id = Id::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut frame = Vec::new();
        // A tree of JSON values always has a JSON form.
        let _ = encode_request(&mut frame, &id, method, Some(params));
        self.send_line(&frame).await?;
        loop {
            let changed = self.shared.changed.notified();
            let (answer, question, is_closed) = {
                let mut inner = self.shared.lock();
                (inner.answers.remove(&id), inner.questions.pop_front(), inner.is_closed)
            };
            if let Some(question) = question {
                self.respond(&question, answers).await?;
            }
            match answer {
                Some(answer) => return Ok(answer?),
                None if is_closed => return Err(TestError::Closed),
                None => {}
            }
            if self.shared.lock().is_idle(&id) {
                changed.await;
            }
        }
    }

    async fn respond(&self, frame: &[u8], answers: &Answers) -> Result<(), TestError> {
        let Ok(Message::Request(request)) = Message::parse(frame) else { return Ok(()) };
        let mut out = Vec::new();
        write_answer(&mut out, &request, answers.respond(&request));
        self.send_line(&out).await
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) -> Result<(), TestError> {
        let mut frame = Vec::new();
        let _ = encode_notification(&mut frame, method, Some(params));
        self.send_line(&frame).await
    }

    pub(super) async fn send_line(&self, line: &[u8]) -> Result<(), TestError> {
        let mut writer = self.writer.lock().await;
        let line = [line, b"\n"].concat();
        writer.write_all(&line).await.map_err(|_| TestError::Closed)
    }

    pub(super) fn take_notifications(&self) -> Vec<Notified> {
        self.shared.lock().notifications.drain(..).collect()
    }

    pub(super) async fn notified(&self, method: &str) -> Result<Notified, TestError> {
        loop {
            let changed = self.shared.changed.notified();
            let (found, is_closed) = {
                let mut inner = self.shared.lock();
                (inner.take_notified(method), inner.is_closed)
            };
            match found {
                Some(notified) => return Ok(notified),
                None if is_closed => return Err(TestError::Closed),
                None => changed.await,
            }
        }
    }

    pub(super) async fn close(mut self) -> Result<(), TestError> {
        let _ = self.writer.get_mut().shutdown().await;
        match (&mut self.server).await {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(TestError::Closed),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reader.abort();
        self.server.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether there is nothing to do for whoever waits for this answer.
    fn is_idle(&self, id: &Id) -> bool {
        !self.answers.contains_key(id) && self.questions.is_empty() && !self.is_closed
    }

    /// The next notification of a kind; those before it are forgotten.
    fn take_notified(&mut self, method: &str) -> Option<Notified> {
        let place = self.notifications.iter().position(|notified| notified.method == method);
        match place {
            Some(place) => self.notifications.drain(..=place).next_back(),
            None => {
                self.notifications.clear();
                None
            }
        }
    }

    fn take_in(&mut self, frame: &[u8]) {
        match Message::parse(frame) {
            Ok(Message::Response(response)) => {
                self.answers.insert(response.id, response.outcome.map(Json::copy_of));
            }
            Ok(Message::Request(_)) => self.questions.push_back(frame.to_vec()),
            Ok(Message::Notification(notification)) => {
                let params = notification.params.map(|raw| Json::copy_of(raw).to_value());
                let method = notification.method.into_owned();
                self.notifications
                    .push_back(Notified { method, params: params.unwrap_or_default() });
            }
            Ok(Message::Fault(error)) => {
                tracing::warn!(%error, "the server could not read something");
            }
            Err(error) => tracing::error!(%error, "the server sent what is no message"),
        }
    }
}

async fn read_all(mut read: ReadHalf<DuplexStream>, shared: Arc<Shared>) {
    let mut parser = line::Parser::default();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = read.read(&mut chunk).await {
        let mut rest = &chunk[..count];
        while let Some(frame) = parser.next_frame(&mut rest) {
            if let Ok(frame) = frame {
                shared.lock().take_in(frame);
            }
        }
        shared.changed.notify_waiters();
    }
    shared.lock().is_closed = true;
    shared.changed.notify_waiters();
}

fn write_answer(out: &mut Vec<u8>, request: &Request<'_>, answer: Result<Json, ErrorObject>) {
    match answer {
        Ok(result) => {
            let _ = encode_response(out, &request.id, &result);
        }
        Err(error) => encode_error(out, &request.id, &error),
    }
}
