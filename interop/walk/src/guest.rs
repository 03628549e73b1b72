//! A connected client, and its answers to the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::client::{Client, ClientLimits, Fault, FormAnswer, Timeouts, Verdicts};
use bowline::model::{CreateMessageParams, CreateMessageResult, ElicitFormParams};
use bowline::{ErrorObject, Revision};
use serde_json::{Value, json};

use crate::Mode;
use crate::check::{Outcome, PATIENCE};
use crate::site::Site;

pub(crate) const ROOTS: [&str; 2] = ["file:///srv/one", "file:///srv/two"];

/// A connected client.
pub(crate) struct Guest {
    pub(crate) client: Client,
    pub(crate) mode: Mode,
    pub(crate) revision: Revision,
    form: Arc<Mutex<Form>>,
    faults: Arc<Mutex<Vec<Fault>>>,
}

/// The user's next answer, and the last form.
struct Form {
    answer: FormAnswer,
    asked: Option<ElicitFormParams>,
}

impl Guest {
    pub(crate) async fn connect(site: &Site<'_>, mode: Mode) -> Outcome<Self> {
        // An interpreter on a busy machine takes a while to exit.
        Self::connect_with(site, mode, Duration::from_secs(15)).await
    }

    /// Connects to a server that may take this long to exit before it gets SIGTERM.
    pub(crate) async fn connect_with(
        site: &Site<'_>,
        mode: Mode,
        exit_grace: Duration,
    ) -> Outcome<Self> {
        let form = Arc::new(Mutex::new(Form { answer: FormAnswer::Decline, asked: None }));
        let faults = Arc::new(Mutex::new(Vec::new()));
        let (asked, hear) = (Arc::clone(&form), Arc::clone(&faults));
        let client = Client::builder("walk", "1.0.0")
            .on_form(move |params| {
                let answer = fill_in(&asked, params);
                async move { Ok(answer) }
            })
            .on_sampling(async |params| repeat(&params))
            .roots(ROOTS)
            .on_fault(move |fault| lock(&hear).push(fault.clone()))
            .preference(mode.preference)
            // Each walk negotiates the revision anew.
            .verdicts(Verdicts::new())
            .timeouts(Timeouts {
                connect: PATIENCE,
                probe: Duration::from_secs(20),
                ..Timeouts::default()
            })
            .limits(ClientLimits { exit_grace, ..ClientLimits::default() })
            .connect(site.target())
            .await?;
        site.begin();
        let revision = client.peer().ok_or("no peer")?.revision;
        Ok(Self { client, mode, revision, form, faults })
    }

    /// Closes the connection. The server must not have sent anything invalid.
    pub(crate) async fn close(self, site: &Site<'_>) -> Outcome {
        let is_busy = !self.client.pending().is_empty();
        self.client.close().await;
        site.end(is_busy).await?;
        match lock(&self.faults).first() {
            Some(fault) => Err(format!("the server sent {fault:?}").into()),
            None => Ok(()),
        }
    }

    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> Outcome<String> {
        Ok(self.client.call_tool(tool, arguments).text().await?)
    }

    /// Sets the user's answer.
    pub(crate) fn answer(&self, answer: FormAnswer) {
        *lock(&self.form) = Form { answer, asked: None };
    }

    /// The last form that the user was shown.
    pub(crate) fn asked(&self) -> Outcome<ElicitFormParams> {
        Ok(lock(&self.form).asked.clone().ok_or("nothing was asked")?)
    }
}

fn fill_in(form: &Mutex<Form>, asked: ElicitFormParams) -> FormAnswer {
    let mut form = lock(form);
    form.asked = Some(asked);
    form.answer.clone()
}

/// A model that repeats everything.
fn repeat(params: &CreateMessageParams) -> Result<CreateMessageResult, ErrorObject> {
    let wrong = |error: serde_json::Error| ErrorObject::internal(error.to_string());
    let messages = serde_json::to_value(&params.messages).map_err(wrong)?;
    let text = messages[0]["content"]["text"].as_str().unwrap_or_default();
    let content = json!({ "type": "text", "text": format!("{text}, {text}") });
    let result = json!({ "role": "assistant", "content": content, "model": "parrot" });
    serde_json::from_value(result).map_err(wrong)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
