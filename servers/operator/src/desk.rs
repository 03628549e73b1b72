//! The desk: the assigned operator, and the tools that come with it.
//!
//! There is one loudspeaker, so all clients share one desk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bowline::{Context, Described, HandlerError, Structured, server};
use schemars::JsonSchema;
use serde::Serialize;

use crate::STATUS_URI;
use crate::outcome::{Outcome, Said};
use crate::queue::{MAX_WAITING, NoTurn, Queue, Queued};
use crate::sentences::sentences;
use crate::voice::{Engine, Operator, Settings, Speech, Style, Voices};

/// Tools that exist only while an operator is assigned.
const WITH_OPERATOR: [&str; 5] =
    ["operator_release", "operator_styles", "say", "queue_status", "queue_clear"];

/// The longest text of one call, in characters.
const MAX_TEXT: usize = 5_000;

/// How many names an error message lists.
const MAX_NAMES: usize = 20;

/// The assigned operator, and the queue of what to say.
pub(crate) struct Desk {
    voices: Voices,
    /// How many bytes of sound a result may have.
    attach: usize,
    assigned: Mutex<Option<Assigned>>,
    queue: Queue,
}

#[derive(Clone)]
struct Assigned {
    operator: Operator,
    style: Style,
}

/// The status of the operator.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The assigned operator, if any
    operator: Option<String>,
    /// The speaking style
    style: Option<String>,
    /// The speech engine
    engine: Option<Engine>,
    /// What is being spoken, and what is waiting
    queue: Vec<Queued>,
}

/// The operators that can be assigned.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Available {
    operators: Vec<Operator>,
}

/// The styles of the assigned operator.
#[derive(Serialize, JsonSchema)]
struct Styles {
    operator: String,
    /// The style used by default
    current: String,
    styles: Vec<Style>,
}

impl Desk {
    pub(crate) fn new(settings: Settings) -> Self {
        let attach = settings.attach;
        let voices = Voices::new(settings);
        Self { voices, attach, assigned: Mutex::default(), queue: Queue::default() }
    }

    fn assigned(&self) -> MutexGuard<'_, Option<Assigned>> {
        self.assigned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The assigned operator. Only a race can make this fail, because the tools that call it exist
    /// only while an operator is assigned.
    fn on_duty(&self) -> Result<Assigned, HandlerError> {
        let assigned = self.assigned().clone();
        assigned.ok_or_else(|| {
            HandlerError::failed("no operator is assigned; call operator_assign first")
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

    pub(crate) fn described_status(&self) -> Described<Status> {
        let status = self.status();
        let text = match (&status.operator, &status.style) {
            (Some(operator), Some(style)) => format!(
                "{operator} is assigned, with the style {style}; {} in the queue",
                status.queue.len()
            ),
            _ => "no operator is assigned; operator_available lists operators, and \
                  operator_assign assigns one"
                .to_owned(),
        };
        Structured(status).with_text(text)
    }

    pub(crate) async fn available(&self) -> Result<Described<Available>, HandlerError> {
        let operators = self.voices.operators().await.map_err(HandlerError::failed)?;
        let described: Vec<_> = operators
            .iter()
            .map(|operator| format!("{} ({})", operator.name, names(&operator.styles)))
            .collect();
        let text = format!("Operators and their styles: {}", described.join("; "));
        Ok(Structured(Available { operators }).with_text(text))
    }

    /// Sets the operator, and enables or disables the tools that come with it.
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

    /// Waits for its turn, then speaks one sentence after another. When a sentence cannot be
    /// played, the sound of it and of all that follow is kept for the result.
    async fn speak(
        &self,
        context: &Context,
        assigned: &Assigned,
        speed: f64,
        parts: &[String],
    ) -> Result<Outcome, HandlerError> {
        let mut ticket = self.queue.join(&parts.join(" ")).map_err(no_turn)?;
        let total = count(parts.len());
        context.registry().resource_updated(STATUS_URI);
        let _announced = AnnounceOnDrop(context);
        context.progress(0.0, total, &format!("{} ahead in the queue", ticket.before()));
        ticket.turn().await.map_err(no_turn)?;
        let mut outcome = Outcome::default();
        for (index, text) in parts.iter().enumerate() {
            let Assigned { operator, style } = assigned;
            let speech = Speech { operator, style, speed, text };
            let uttered = self.utter(speech, &mut outcome).await;
            uttered.map_err(|reason| {
                let (spoken, of) = (outcome.spoken, parts.len());
                HandlerError::failed(format!("{spoken} of {of} sentences spoken: {reason}"))
            })?;
            let how = if outcome.reason.is_none() { "spoken" } else { "attached" };
            context.progress(count(index + 1), total, &format!("{how}: {text}"));
        }
        Ok(outcome)
    }

    async fn utter(&self, speech: Speech<'_>, outcome: &mut Outcome) -> Result<(), String> {
        let sound = self.voices.synthesise(speech).await?;
        let reason = match outcome.reason.take() {
            Some(reason) => reason,
            None => match self.voices.play(&sound).await {
                Ok(()) => {
                    outcome.spoken += 1;
                    return Ok(());
                }
                Err(reason) => reason,
            },
        };
        if outcome.size() + sound.len() > self.attach {
            return Err(match self.attach {
                0 => reason,
                most => format!("{reason}; the sound is larger than the {most} bytes of --attach"),
            });
        }
        outcome.sounds.push(sound);
        outcome.reason = Some(reason);
        Ok(())
    }
}

/// Announces a change of the status on drop, whatever the reason.
struct AnnounceOnDrop<'a>(&'a Context);

impl Drop for AnnounceOnDrop<'_> {
    fn drop(&mut self) {
        self.0.registry().resource_updated(STATUS_URI);
    }
}

#[server]
impl Desk {
    /// オペレータを割り当てる (Assign an operator. This also enables the tools for speaking.)
    #[tool(title = "Assign an operator", destructive = false, idempotent, open_world = false)]
    async fn operator_assign(
        &self,
        /// Name or id of an operator listed by `operator_available`; the first one by default
        operator: Option<String>,
        /// Speaking style, as listed by `operator_available`; the operator's first one by default
        style: Option<String>,
        context: Context,
    ) -> Result<String, HandlerError> {
        let operators = self.voices.operators().await.map_err(HandlerError::failed)?;
        let operator = find_operator(operators, operator.as_deref())?;
        let style = find_style(&operator, style.as_deref(), &operator.styles[0])?.clone();
        let text = format!(
            "{} is assigned, with the style {}; call say to speak",
            operator.name, style.name
        );
        self.change(&context, Some(Assigned { operator, style }));
        Ok(text)
    }

    /// オペレータを解放する (Release the operator. This clears the queue and disables the tools for
    /// speaking.)
    #[tool(title = "Release the operator", disabled, destructive = false, open_world = false)]
    async fn operator_release(&self, context: Context) -> Result<String, HandlerError> {
        let assigned = self.on_duty()?;
        let cleared = self.queue.clear();
        self.change(&context, None);
        let note = if cleared > 0 {
            format!("; {cleared} in the queue were not spoken")
        } else {
            String::new()
        };
        Ok(format!("{} is released{note}", assigned.operator.name))
    }

    /// 割り当てたオペレータのスタイル一覧を取得 (List the styles of the assigned operator.)
    #[tool(title = "Styles", disabled, read_only, open_world = false)]
    async fn operator_styles(&self) -> Result<Structured<Styles>, HandlerError> {
        let Assigned { operator, style } = self.on_duty()?;
        Ok(Structured(Styles {
            operator: operator.name,
            current: style.name,
            styles: operator.styles,
        }))
    }

    /// 割り当てたオペレータの声で話す (Speak aloud with the assigned operator's voice. Returns when
    /// everything has been spoken; concurrent calls are spoken one after another. Where nothing can
    /// play sound, the result says so and has the sound attached.)
    #[tool(title = "Say", disabled, destructive = false, timeout = "30m", open_world = false)]
    async fn say(
        &self,
        /// What to say, in the language of the operator's voice
        #[schemars(length(min = 1, max = MAX_TEXT))]
        text: String,
        /// Speaking style, as listed by `operator_styles`; the assigned one by default
        style: Option<String>,
        /// Speed: 1 is normal, 0.5 half as fast, 2 twice as fast
        #[arg(default = 1.0)]
        #[schemars(range(min = 0.5, max = 2.0))]
        speed: f64,
        context: Context,
    ) -> Result<Described<Said>, HandlerError> {
        let mut assigned = self.on_duty()?;
        let wanted = find_style(&assigned.operator, style.as_deref(), &assigned.style)?;
        assigned.style = wanted.clone();
        let parts = sentences(&text);
        if parts.is_empty() {
            return Err(HandlerError::failed("text is blank; there is nothing to say"));
        }
        let outcome = self.speak(&context, &assigned, speed, &parts).await?;
        let said = Said {
            operator: assigned.operator.name,
            style: assigned.style.name,
            engine: assigned.operator.engine,
            sentences: parts.len(),
            characters: text.chars().count(),
            spoken: outcome.spoken,
            not_played: outcome.reason,
        };
        Ok(said.with_sounds(&outcome.sounds))
    }

    /// 音声キューの状態を取得 (Show what is being spoken, and what is waiting.)
    #[tool(title = "Queue status", disabled, read_only, open_world = false)]
    async fn queue_status(&self) -> Structured<Status> {
        Structured(self.status())
    }

    /// 音声キューをクリア (Drop everything that is waiting. What is being spoken continues.)
    #[tool(title = "Clear the queue", disabled, idempotent, open_world = false)]
    async fn queue_clear(&self, context: Context) -> String {
        let cleared = self.queue.clear();
        context.registry().resource_updated(STATUS_URI);
        format!("{cleared} dropped from the queue")
    }

    /// The assigned operator, what is being spoken, and what is waiting
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
        HandlerError::failed(format!("no operator is named {wanted:?}; expected one of: {all}"))
    })
}

fn find_style<'a>(
    operator: &'a Operator,
    wanted: Option<&str>,
    default: &'a Style,
) -> Result<&'a Style, HandlerError> {
    let Some(wanted) = wanted else { return Ok(default) };
    let is_it = |style: &&Style| is_same(&style.name, wanted) || style.id.to_string() == wanted;
    operator.styles.iter().find(is_it).ok_or_else(|| {
        let all = names(&operator.styles);
        let name = &operator.name;
        HandlerError::failed(format!("{name} has no style {wanted:?}; expected one of: {all}"))
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

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
fn no_turn(reason: NoTurn) -> HandlerError {
    HandlerError::failed(match reason {
        NoTurn::Full => format!(
            "the queue is full ({MAX_WAITING} waiting); try again later, or call queue_clear"
        ),
        NoTurn::Cleared => "not spoken: the queue was cleared".to_owned(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "texts are short")]
fn count(number: usize) -> f64 {
    number as f64
}
