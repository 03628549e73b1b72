//! The desk: who is assigned, and the tools that come with it.
//!
//! There is one loudspeaker, so there is one desk, whoever is connected.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bowline::model::CallToolResult;
use bowline::{Context, HandlerError, Structured, server};
use schemars::JsonSchema;
use serde::Serialize;

use crate::STATUS_URI;
use crate::queue::{MAX_WAITING, NoTurn, Queue, Queued};
use crate::sentences::sentences;
use crate::voice::{Engine, Operator, Settings, Speech, Style, Voices};

/// Tools that are there while an operator is.
const WITH_OPERATOR: [&str; 5] =
    ["operator_release", "operator_styles", "say", "queue_status", "queue_clear"];

/// The longest text that is spoken at once, in characters.
const MAX_TEXT: usize = 5_000;

/// How many names an error lists.
const MAX_NAMES: usize = 20;

/// Who is assigned, and what they are to say.
pub(crate) struct Desk {
    voices: Voices,
    assigned: Mutex<Option<Assigned>>,
    queue: Queue,
}

#[derive(Clone)]
struct Assigned {
    operator: Operator,
    style: Style,
}

/// The operator's status.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// Who is assigned, if anybody
    operator: Option<String>,
    /// How they speak
    style: Option<String>,
    /// What makes their voice
    engine: Option<Engine>,
    /// What is spoken, and what waits to be
    queue: Vec<Queued>,
}

/// Who can be assigned.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Available {
    operators: Vec<Operator>,
}

/// The styles of the assigned operator.
#[derive(Serialize, JsonSchema)]
struct Styles {
    operator: String,
    /// The one that is used when none is said
    current: String,
    styles: Vec<Style>,
}

/// What was spoken.
#[derive(Serialize, JsonSchema)]
struct Spoken {
    operator: String,
    style: String,
    engine: Engine,
    /// How many sentences
    #[schemars(with = "i64")]
    sentences: usize,
    #[schemars(with = "i64")]
    characters: usize,
}

impl Desk {
    pub(crate) fn new(settings: Settings) -> Self {
        let voices = Voices::new(settings);
        Self { voices, assigned: Mutex::default(), queue: Queue::default() }
    }

    fn assigned(&self) -> MutexGuard<'_, Option<Assigned>> {
        self.assigned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is assigned; an error where nobody is, which only a race can bring about.
    fn on_duty(&self) -> Result<Assigned, HandlerError> {
        let assigned = self.assigned().clone();
        assigned.ok_or_else(|| {
            HandlerError::failed("no operator is assigned: call operator_assign first")
        })
    }

    fn status(&self) -> Status {
        let assigned = self.assigned().clone();
        let assigned = assigned.as_ref();
        Status {
            operator: assigned.map(|it| it.operator.name.clone()),
            style: assigned.map(|it| it.style.name.clone()),
            engine: assigned.map(|it| it.operator.engine),
            queue: self.queue.list(),
        }
    }

    pub(crate) fn status_answer(&self) -> Result<CallToolResult, HandlerError> {
        let status = self.status();
        let text = match (&status.operator, &status.style) {
            (Some(operator), Some(style)) => format!(
                "{operator} is assigned and speaks in the style {style}; {} in the queue",
                status.queue.len()
            ),
            _ => "no operator is assigned; operator_available tells who is free, and \
                  operator_assign takes one on"
                .to_owned(),
        };
        bowline_serve::answer(text, &status)
    }

    pub(crate) async fn available_answer(&self) -> Result<CallToolResult, HandlerError> {
        let operators = self.voices.operators().await.map_err(HandlerError::failed)?;
        let described: Vec<_> = operators
            .iter()
            .map(|operator| format!("{} ({})", operator.name, names(&operator.styles)))
            .collect();
        let text = format!("Operators, with their styles: {}", described.join("; "));
        bowline_serve::answer(text, &Available { operators })
    }

    /// Shows or hides the tools that come with an operator, and tells of the change.
    fn change(&self, context: &Context, assigned: Option<Assigned>) {
        let is_assigned = assigned.is_some();
        *self.assigned() = assigned;
        let registry = context.registry();
        for name in WITH_OPERATOR {
            if is_assigned {
                registry.enable_tool(name)
            } else {
                registry.disable_tool(name)
            };
        }
        registry.resource_updated(STATUS_URI);
    }

    /// Speaks one sentence after the other, once it is our turn.
    async fn speak(
        &self,
        context: &Context,
        assigned: &Assigned,
        speed: f64,
        parts: &[String],
    ) -> Result<(), HandlerError> {
        let mut place = self.queue.join(&parts.join(" ")).map_err(no_turn)?;
        let total = count(parts.len());
        context.registry().resource_updated(STATUS_URI);
        let _told = Told(context);
        context.progress(0.0, total, &format!("{} before this in the queue", place.before()));
        place.turn().await.map_err(no_turn)?;
        for (index, text) in parts.iter().enumerate() {
            let Assigned { operator, style } = assigned;
            let speech = Speech { operator, style, speed, text };
            self.voices.speak(speech).await.map_err(|reason| {
                HandlerError::failed(format!(
                    "{index} of {} sentences spoken: {reason}",
                    parts.len()
                ))
            })?;
            context.progress(count(index + 1), total, &format!("spoken: {text}"));
        }
        Ok(())
    }
}

/// Tells of a change when it is dropped, whatever the reason.
struct Told<'a>(&'a Context);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.registry().resource_updated(STATUS_URI);
    }
}

#[server]
impl Desk {
    /// オペレータを割り当てる (Take on an operator. The tools to speak with come with it.)
    #[tool(title = "Assign an operator", destructive = false, idempotent, open_world = false)]
    async fn operator_assign(
        &self,
        /// Name or id of an operator that `operator_available` lists; any, if left out
        operator: Option<String>,
        /// How to speak, as `operator_available` lists it; the usual way, if left out
        style: Option<String>,
        context: Context,
    ) -> Result<String, HandlerError> {
        let operators = self.voices.operators().await.map_err(HandlerError::failed)?;
        let operator = find_operator(operators, operator.as_deref())?;
        let style = find_style(&operator, style.as_deref(), &operator.styles[0])?.clone();
        let text = format!(
            "{} is assigned and speaks in the style {}; speak with say",
            operator.name, style.name
        );
        self.change(&context, Some(Assigned { operator, style }));
        Ok(text)
    }

    /// オペレータを解放する (Give the operator back. What waits in the queue is not spoken, and the
    /// tools to speak with go.)
    #[tool(title = "Release the operator", disabled, destructive = false, open_world = false)]
    async fn operator_release(&self, context: Context) -> Result<String, HandlerError> {
        let assigned = self.on_duty()?;
        let cleared = self.queue.clear();
        self.change(&context, None);
        let note = if cleared > 0 { format!("; {cleared} unspoken") } else { String::new() };
        Ok(format!("{} is released{note}", assigned.operator.name))
    }

    /// 割り当てたオペレータのスタイル一覧を取得 (The styles that the assigned operator can speak in.)
    #[tool(title = "Styles", disabled, read_only, open_world = false)]
    async fn operator_styles(&self) -> Result<Structured<Styles>, HandlerError> {
        let Assigned { operator, style } = self.on_duty()?;
        Ok(Structured(Styles {
            operator: operator.name,
            current: style.name,
            styles: operator.styles,
        }))
    }

    /// 割り当てたオペレータの声で話す (Speak aloud with the assigned operator's voice. Answers when
    /// all is spoken; several calls at once are spoken one after the other.)
    #[tool(title = "Say", disabled, destructive = false, timeout_secs = 1800, open_world = false)]
    async fn say(
        &self,
        /// What to say, in the language of the operator's voice
        #[schemars(length(min = 1, max = MAX_TEXT))]
        text: String,
        /// How to say it, as `operator_styles` lists it; as assigned, if left out
        style: Option<String>,
        /// How fast: 1 is usual, 0.5 half as fast, 2 twice as fast
        #[arg(default = 1.0)]
        #[schemars(range(min = 0.5, max = 2.0))]
        speed: f64,
        context: Context,
    ) -> Result<Structured<Spoken>, HandlerError> {
        let mut assigned = self.on_duty()?;
        let wanted = find_style(&assigned.operator, style.as_deref(), &assigned.style)?;
        assigned.style = wanted.clone();
        let parts = sentences(&text);
        if parts.is_empty() {
            return Err(HandlerError::failed("text is blank: there is nothing to say"));
        }
        self.speak(&context, &assigned, speed, &parts).await?;
        Ok(Structured(Spoken {
            operator: assigned.operator.name,
            style: assigned.style.name,
            engine: assigned.operator.engine,
            sentences: parts.len(),
            characters: text.chars().count(),
        }))
    }

    /// 音声キューの状態を取得 (What is spoken, and what waits to be.)
    #[tool(title = "Queue status", disabled, read_only, open_world = false)]
    async fn queue_status(&self) -> Structured<Status> {
        Structured(self.status())
    }

    /// 音声キューをクリア (Drop what waits to be spoken. What is being spoken goes on.)
    #[tool(title = "Clear the queue", disabled, idempotent, open_world = false)]
    async fn queue_clear(&self, context: Context) -> String {
        let cleared = self.queue.clear();
        context.registry().resource_updated(STATUS_URI);
        format!("{cleared} dropped from the queue")
    }

    /// Who is assigned, what is spoken, and what waits
    #[resource("operator://status", title = "Operator status", mime_type = "application/json")]
    async fn operator_state(&self) -> Structured<Status> {
        Structured(self.status())
    }
}

fn find_operator(operators: Vec<Operator>, wanted: Option<&str>) -> Result<Operator, HandlerError> {
    let all = names_of(operators.iter().map(|operator| operator.name.as_str()));
    let is_it = |operator: &Operator| match wanted {
        Some(wanted) => is_same(&operator.name, wanted) || is_same(&operator.id, wanted),
        None => true,
    };
    operators.into_iter().find(is_it).ok_or_else(|| {
        let wanted = wanted.unwrap_or_default();
        HandlerError::failed(format!("no operator is called {wanted:?}; there are: {all}"))
    })
}

fn find_style<'a>(
    operator: &'a Operator,
    wanted: Option<&str>,
    usual: &'a Style,
) -> Result<&'a Style, HandlerError> {
    let Some(wanted) = wanted else { return Ok(usual) };
    let is_it = |style: &&Style| is_same(&style.name, wanted) || style.id.to_string() == wanted;
    operator.styles.iter().find(is_it).ok_or_else(|| {
        let all = names(&operator.styles);
        let name = &operator.name;
        HandlerError::failed(format!("{name} has no style {wanted:?}; there are: {all}"))
    })
}

fn is_same(one: &str, two: &str) -> bool {
    one.to_lowercase() == two.trim().to_lowercase()
}

fn names(styles: &[Style]) -> String {
    names_of(styles.iter().map(|style| style.name.as_str()))
}

fn names_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = names.collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    all.truncate(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", all.join(", "))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn no_turn(reason: NoTurn) -> HandlerError {
    HandlerError::failed(match reason {
        NoTurn::Full => format!(
            "{MAX_WAITING} wait to be spoken already: wait for some, or drop them with queue_clear"
        ),
        NoTurn::Cleared => "not spoken: the queue was cleared".to_owned(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "texts are short")]
fn count(number: usize) -> f64 {
    number as f64
}
