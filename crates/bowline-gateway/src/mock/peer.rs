//! The recorded server on a byte stream: it speaks the recorded revision, asks what was asked, and
//! reports what was reported.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_proto::model::meta_key;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::attribute::progress_token;
use super::script::{Part, PartKind, Script, Take};

/// How many messages may wait for the client to read them.
const WAITING: usize = 64;

/// Answers until the client closes the stream.
pub(super) async fn serve(script: &Arc<Script>, stream: impl AsyncRead + AsyncWrite) {
    let (input, mut output) = tokio::io::split(stream);
    let (say, mut said) = mpsc::channel::<Value>(WAITING);
    let scene = Arc::new(Scene {
        script: Arc::clone(script),
        say,
        questions: Mutex::default(),
        asked: AtomicU64::new(0),
    });
    let mut writing = std::pin::pin!(async {
        while let Some(message) = said.recv().await {
            let written = output.write_all(format!("{message}\n").as_bytes()).await;
            if written.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    let mut lines = BufReader::new(input).lines();
    let (mut running, mut handles) = (JoinSet::new(), HashMap::new());
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { break };
                if let Ok(message) = serde_json::from_str(&line) {
                    scene.hear(message, &mut running, &mut handles);
                }
            }
            Some(ended) = running.join_next() => {
                if let Ok(id) = ended {
                    handles.remove(&id);
                }
            }
            () = &mut writing => return,
        }
    }
    // What is being said is still said; nobody answers questions any more.
    scene.questions().clear();
    drop(scene);
    tokio::select! {
        () = async { while running.join_next().await.is_some() {} writing.await } => {}
        () = tokio::time::sleep(Duration::from_secs(5)) => {}
    }
}

/// One connection.
struct Scene {
    script: Arc<Script>,
    say: mpsc::Sender<Value>,
    /// Questions that wait for the client's answer.
    questions: Mutex<HashMap<String, oneshot::Sender<()>>>,
    asked: AtomicU64,
}

impl Scene {
    fn hear(
        self: &Arc<Self>,
        message: Value,
        running: &mut JoinSet<String>,
        handles: &mut HashMap<String, AbortHandle>,
    ) {
        let id = message["id"].to_string();
        match (message["method"].as_str(), message.get("id").is_some()) {
            (Some(_), true) => {
                let (scene, own) = (Arc::clone(self), id.clone());
                let handle = running.spawn(async move {
                    scene.perform(&message).await;
                    own
                });
                handles.insert(id, handle);
            }
            (Some("notifications/cancelled"), false) => {
                let cancelled = message["params"]["requestId"].to_string();
                if let Some(handle) = handles.remove(&cancelled) {
                    handle.abort();
                }
            }
            (None, true) => {
                if let Some(answered) = self.questions().remove(&id) {
                    // The request may have been cancelled.
                    let _ = answered.send(());
                }
            }
            _ => {}
        }
    }

    /// Says everything that was said to such a request.
    async fn perform(&self, request: &Value) {
        let Some(take) = self.script.take(request) else {
            return self.answer(self.script.unrecorded(request), request).await;
        };
        let begun = Instant::now();
        for part in &take.parts {
            if self.script.is_timed
                && let Ok(after) = Duration::try_from_secs_f64(part.after)
            {
                tokio::time::sleep_until(begun + after).await;
            }
            match part.kind {
                PartKind::Answer => self.answer(part.message.clone(), request).await,
                PartKind::Question => self.ask(part.message.clone()).await,
                PartKind::Notification => {
                    if let Some(message) = redirected(part, take, request) {
                        self.say(message).await;
                    }
                }
            }
        }
    }

    async fn answer(&self, mut answer: Value, request: &Value) {
        answer["id"] = request["id"].clone();
        self.say(answer).await;
    }

    /// Asks, and waits for the answer, whatever it is.
    async fn ask(&self, mut question: Value) {
        let id = Value::from(format!("asked-{}", self.asked.fetch_add(1, Ordering::Relaxed)));
        let (answered, is_answered) = oneshot::channel();
        self.questions().insert(id.to_string(), answered);
        question["id"] = id;
        self.say(question).await;
        // It fails when the connection ends.
        let _ = is_answered.await;
    }

    async fn say(&self, message: Value) {
        // Nobody listens if the connection has ended.
        let _ = self.say.send(message).await;
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A notification with the progress token and the subscription of this request; `None` if the
/// request wants no progress.
fn redirected(part: &Part, take: &Take, request: &Value) -> Option<Value> {
    let mut message = part.message.clone();
    if message["method"] == "notifications/progress" {
        let recorded = message.pointer("/params/progressToken");
        if recorded == progress_token(&take.request) {
            message["params"]["progressToken"] = progress_token(request)?.clone();
        }
    }
    if let Some(meta) = message.pointer_mut("/params/_meta").and_then(Value::as_object_mut)
        && let Some(subscription) = meta.get_mut(meta_key::SUBSCRIPTION_ID)
        && *subscription == take.request["id"]
    {
        *subscription = request["id"].clone();
    }
    Some(message)
}
