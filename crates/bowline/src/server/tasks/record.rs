//! A task as a store keeps it: everything that another process needs to go on with it.
//!
//! All rules about what may happen to a task are here, as functions of the record and the time.
//! Stores only keep records, and the rest of this module only carries out what these functions say.

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{ClientCapabilities, Implementation, InputRequests};
use bowline_proto::revision::Revision;
use serde::{Deserialize, Serialize};

use super::super::rounds::Past;
use super::outline::Outline;
use super::size::{info_size, written};

/// A task as a [store](super::TaskStore) keeps it.
///
/// Stores read what they need for their indexes, and keep the rest as bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskRecord {
    pub(crate) id: String,
    pub(crate) version: u64,
    /// The name of the principal that started it.
    pub(crate) owner: Option<String>,
    /// Where it came from if there is no principal, as a digest: whom it counts against then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) party: Option<String>,
    /// The revision of the call that became a task. It is visible only in that one.
    pub(crate) revision: Revision,
    pub(crate) tool: String,
    pub(crate) arguments: Option<Json>,
    pub(crate) client: TaskClient,
    pub(crate) state: State,
    pub(crate) message: Option<String>,
    /// In milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// How long it is kept, in milliseconds from its creation.
    pub(crate) ttl: u64,
    /// The questions, answers and kept values so far.
    pub(crate) past: Past,
    pub(crate) lease: Lease,
    /// Whether the handler waits for its turn: this run of it has not begun.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_queued: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// What a later run of the handler knows about the client. No tokens, and no headers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TaskClient {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) info: Option<Implementation>,
    pub(crate) traceparent: Option<String>,
}

impl TaskClient {
    fn size(&self) -> usize {
        let ClientCapabilities { experimental, extensions, extra, .. } = &self.capabilities;
        let traceparent = self.traceparent.as_ref().map_or(0, String::len);
        // The others have no members to speak of.
        let extra = if extra.is_empty() { 0 } else { written(extra) };
        let named = experimental.as_ref().map_or(0, written);
        let extensions = extensions.as_ref().map_or(0, written);
        traceparent + extra + named + extensions + self.info.as_ref().map_or(0, info_size)
    }
}

/// How far a task is. The last three are final.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum State {
    /// Its handler runs, or is about to run.
    Working,
    /// It waits for answers, without a handler.
    Waiting {
        open: InputRequests,
    },
    /// Its handler has returned, and the work goes on outside the server.
    Elsewhere,
    Completed {
        result: Json,
        is_error: bool,
    },
    Failed {
        error: ErrorObject,
    },
    Cancelled,
}

impl State {
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled)
    }
}

/// Who runs the handler. Each run has a fence of its own: a process that was too slow to renew its
/// lease cannot write what it finds out after another one has taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    /// The process.
    pub(crate) holder: String,
    pub(crate) fence: u64,
    pub(crate) until: u64,
}

/// How long an outcome is kept at least, and how long a task is remembered after its time is over,
/// in milliseconds.
pub(crate) const KEPT: u64 = 5 * 60_000;
/// How often to poll a new task, and an old one, in milliseconds.
const POLL: (u64, u64) = (1_000, 5_000);

/// What became of answers to a task's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Nothing has changed: the keys are unknown, answered already, or the task does not wait.
    Ignored,
    /// Other questions are still open.
    Partly,
    /// The handler runs again.
    Fully,
}

/// What is to be done about a task whose time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// Its process is gone; its handler may run again, or it fails.
    Orphaned,
    /// Its time to live is over before it has ended.
    Expired,
    /// Nobody needs to know about it any more.
    Forgotten,
}

#[cfg(any(feature = "events", feature = "http"))]
impl TaskRecord {
    /// Something else that a store keeps like a task, until a time: it has an owner, and nobody
    /// here runs it.
    pub(crate) fn kept(
        kind: &str,
        id: &str,
        owner: Option<&str>,
        until: u64,
        content: Json,
    ) -> Self {
        Self {
            id: id.to_owned(),
            version: 0,
            owner: owner.map(str::to_owned),
            party: None,
            revision: Revision::LATEST,
            tool: kind.to_owned(),
            arguments: Some(content),
            client: TaskClient::default(),
            state: State::Elsewhere,
            message: None,
            created: 0,
            updated: 0,
            ttl: until,
            past: Past::default(),
            lease: Lease { holder: String::new(), fence: 0, until: 0 },
            is_queued: false,
        }
    }

    /// The same as its later version.
    pub(crate) fn at_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// What was kept.
    pub(crate) fn into_content(self) -> Option<Json> {
        self.arguments
    }
}

impl TaskRecord {
    /// The id, which is hard to guess.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The version, which grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whom it counts against: the principal that it belongs to, or a digest of the address that
    /// it came from if nobody is known.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref().or(self.party.as_deref())
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.state.is_final()
    }

    /// When it was created, in milliseconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// When something has to be done about it, in milliseconds since 1970: its lease lapses, it
    /// expires, or it can be forgotten.
    pub fn due(&self) -> u64 {
        match self.state {
            State::Working => self.lease.until.min(self.expires()),
            State::Waiting { .. } | State::Elsewhere => self.expires(),
            _ => self.expires().saturating_add(KEPT),
        }
    }

    /// What changes whenever a client could see that the task has changed, and stays the same when
    /// only its lease is renewed: the time of the latest change, in milliseconds since 1970 and
    /// times 8, and below that how far the task is.
    pub fn mark(&self) -> u64 {
        let state = match self.state {
            State::Working => 0,
            State::Waiting { .. } => 1,
            State::Elsewhere => 2,
            State::Completed { .. } | State::Failed { .. } | State::Cancelled => 3,
        };
        self.updated.saturating_mul(8).saturating_add(state)
    }

    /// The bytes that it takes, roughly.
    pub fn size(&self) -> usize {
        let text = |it: &Option<Json>| it.as_ref().map_or(0, |it| it.as_str().len());
        let string = |it: &Option<String>| it.as_ref().map_or(0, String::len);
        let payload = match &self.state {
            State::Completed { result, .. } => result.as_str().len(),
            State::Waiting { open } => written(open),
            State::Failed { error } => written(error),
            _ => 0,
        };
        let names = self.id.len() + self.tool.len() + self.lease.holder.len();
        let texts = names
            + string(&self.owner)
            + string(&self.party)
            + string(&self.message)
            + text(&self.arguments);
        size_of::<Self>() + texts + payload + self.past.size() + self.client.size()
    }

    /// Writes it.
    ///
    /// # Errors
    /// Never for a record that was made by a server.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads what [`encode`](Self::encode) has written. A record of another release that has
    /// something this one does not know becomes a task that has failed, and says so: its client
    /// learns that, and it is forgotten like others.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes).or_else(|error| {
            let outline: Outline = serde_json::from_slice(bytes)?;
            tracing::warn!(task = %outline.id, %error, "the record of a task is of another release");
            Ok(outline.into_record())
        })
    }

    pub(crate) fn expires(&self) -> u64 {
        self.created.saturating_add(self.ttl)
    }

    /// How often to poll it, in milliseconds: less often with age.
    pub(crate) fn poll(&self, now: u64) -> u64 {
        let age = now.saturating_sub(self.created);
        (POLL.0 + age / 30).min(POLL.1)
    }

    /// Whether a run with this fence may still write.
    pub(crate) fn is_run_by(&self, holder: &str, fence: u64) -> bool {
        matches!(self.state, State::Working)
            && self.lease.fence == fence
            && self.lease.holder == holder
    }

    /// Begins another run.
    pub(crate) fn claim(&mut self, holder: &str, now: u64, until: u64, is_queued: bool) {
        self.is_queued = is_queued;
        self.state = State::Working;
        self.touch(now);
        self.lease = Lease { holder: holder.to_owned(), fence: self.lease.fence + 1, until };
    }

    /// Ends it, unless it has ended. Returns whether it did. What is no longer needed is dropped,
    /// and the outcome is kept for a while even if the task took all of its time.
    pub(crate) fn finish(&mut self, now: u64, end: State) -> bool {
        if self.state.is_final() {
            return false;
        }
        self.message = match &end {
            State::Failed { error } => Some(error.message.clone()),
            State::Cancelled => Some("the task was cancelled".to_owned()),
            _ => self.message.take(),
        };
        self.state = end;
        self.touch(now);
        self.ttl = self.ttl.max(now.saturating_sub(self.created).saturating_add(KEPT));
        self.arguments = None;
        self.past = Past::default();
        self.is_queued = false;
        true
    }

    /// Lets it wait for answers.
    pub(crate) fn park(&mut self, now: u64, past: Past, open: InputRequests) {
        self.state = State::Waiting { open };
        self.past = past;
        self.touch(now);
    }

    /// Lets it wait for another run, which whoever has the lease until then begins.
    pub(crate) fn queue(&mut self, now: u64, past: Past, until: u64) {
        self.is_queued = true;
        self.past = past;
        self.lease.until = until;
        self.touch(now);
    }

    /// Lets it wait for work outside the server.
    pub(crate) fn leave(&mut self, now: u64) {
        self.state = State::Elsewhere;
        self.touch(now);
    }

    /// Says what it is doing.
    pub(crate) fn describe(&mut self, now: u64, message: String) {
        self.message = Some(message);
        self.touch(now);
    }

    /// Notes a change that clients can see. No two of them have the same time, so that each has a
    /// [mark](Self::mark) of its own.
    fn touch(&mut self, now: u64) {
        self.updated = now.max(self.updated.saturating_add(1));
    }

    /// Takes in answers to open questions. Answers under other keys are ignored, as the extension
    /// demands; the caller begins the next run when all are there.
    ///
    /// # Errors
    /// When an answer lacks the shape or the form that its question requires. None is taken then.
    pub(crate) fn answer<'a>(
        &mut self,
        now: u64,
        answers: impl IntoIterator<Item = (&'a str, Json)>,
    ) -> Result<Answered, ErrorObject> {
        let State::Waiting { open } = &self.state else { return Ok(Answered::Ignored) };
        let mut given = Vec::new();
        for (key, answer) in answers {
            let Some(question) = open.get(key) else { continue };
            self.past.check_answer(key, question, &answer)?;
            given.push((key.to_owned(), answer));
        }
        if given.is_empty() {
            return Ok(Answered::Ignored);
        }
        let mut rest = InputRequests::default();
        for (key, question) in open.iter() {
            if !given.iter().any(|(given, _)| given == key) {
                rest.insert(key, question.clone());
            }
        }
        self.past.record(given);
        self.touch(now);
        if rest.is_empty() {
            return Ok(Answered::Fully);
        }
        self.state = State::Waiting { open: rest };
        Ok(Answered::Partly)
    }

    /// What is to be done about it now. `is_alive` says whether the process that holds the lease
    /// still runs it.
    pub(crate) fn due_now(&self, now: u64, is_alive: bool) -> Due {
        match self.state {
            _ if self.state.is_final() => match now >= self.due() {
                true => Due::Forgotten,
                false => Due::Nothing,
            },
            _ if now >= self.expires() => Due::Expired,
            State::Working if !is_alive => Due::Orphaned,
            _ => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::model::{ElicitFormParams, ElicitParams, InputRequest};

    use super::*;

    /// Records as the first release has written them: later ones must be able to read them.
    const WRITTEN: &str = include_str!("../../../testdata/tasks/records.jsonl");

    /// One record in every state.
    fn records() -> Vec<TaskRecord> {
        let json = |text: &str| Json::from_text(text.to_owned()).unwrap();
        let mut open = InputRequests::default();
        let form = ElicitFormParams { message: "Which?".to_owned(), ..Default::default() };
        open.insert("elicit-1", InputRequest::Elicit(ElicitParams::Form(form)));
        let states = [
            State::Working,
            State::Waiting { open },
            State::Elsewhere,
            State::Completed { result: json(r#"{"content":[]}"#), is_error: true },
            State::Failed { error: ErrorObject::internal("broken").with_data(json("[1]")) },
            State::Cancelled,
        ];
        let client = r#"{
            "capabilities": { "elicitation": { "form": {} }, "extensions": { "a/b": { "c": 1 } } },
            "info": { "name": "ink", "version": "1.0" },
            "traceparent": "00-1-2-00"
        }"#;
        let past = r#"{
            "expires": 0, "round": 2, "asked": { "elicit-1": "f00d" },
            "answers": { "elicit-0": { "question": "beef", "answer": { "action": "decline" } } },
            "memo": { "id": 7 }, "own": { "step": 1 }
        }"#;
        let record = |(at, state): (usize, State)| TaskRecord {
            id: format!("task-{at}"),
            version: 3,
            owner: (at > 0).then(|| "ada".to_owned()),
            party: (at == 0).then(|| "anonymous f00d".to_owned()),
            revision: if at % 2 == 0 { Revision::LATEST } else { Revision::REQUESTED_TASKS },
            tool: "build".to_owned(),
            arguments: Some(json(r#"{"release":true}"#)),
            client: serde_json::from_str(client).unwrap(),
            state,
            message: Some("compiling".to_owned()),
            created: 1_000,
            updated: 2_000,
            ttl: 3_600_000,
            past: serde_json::from_str(past).unwrap(),
            lease: Lease { holder: "boot".to_owned(), fence: 2, until: u64::MAX },
            is_queued: at == 0,
        };
        states.into_iter().enumerate().map(record).collect()
    }

    #[test]
    fn records_stay_readable() {
        let text = |record: &TaskRecord| String::from_utf8(record.encode().unwrap()).unwrap();
        let now: Vec<_> = records().iter().map(text).collect();
        if std::env::var_os("UPDATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/tasks/records.jsonl");
            std::fs::write(path, now.join("\n") + "\n").unwrap();
            return;
        }
        let written: Vec<_> = WRITTEN.lines().collect();
        assert_eq!(now, written, "the format has changed; help: can earlier records be read?");
        for line in written {
            let read = TaskRecord::decode(line.as_bytes()).unwrap();
            assert_eq!(text(&read), line);
        }
    }

    #[test]
    fn a_record_of_another_release_is_a_task_that_has_failed() {
        let later = WRITTEN.lines().next().unwrap().replace("\"Working\"", "{\"Paused\":{}}");
        let read = TaskRecord::decode(later.as_bytes()).unwrap();
        assert_eq!(
            (read.id(), read.version(), read.owner()),
            ("task-0", 3, Some("anonymous f00d"))
        );
        let State::Failed { error } = &read.state else { panic!("{read:?}") };
        assert!(error.message.contains("another release"), "{error}");
        assert_eq!(read.due_now(1_000 + 3_600_000 + KEPT, false), Due::Forgotten);
        TaskRecord::decode(b"{\"id\":").unwrap_err();
    }

    #[test]
    fn changes_in_the_same_millisecond_have_different_marks() {
        let mut record = records()[1].clone();
        let mut open = InputRequests::default();
        for key in ["a", "b", "c"] {
            let form = ElicitFormParams::default();
            open.insert(key, InputRequest::Elicit(ElicitParams::Form(form)));
        }
        record.park(3_000, Past::default(), open);
        let mut marks = vec![record.mark()];
        for key in ["a", "b", "c"] {
            let answer = Json::from_text(r#"{"action":"decline"}"#.to_owned()).unwrap();
            record.answer(3_000, [(key, answer)]).unwrap();
            marks.push(record.mark());
        }
        record.claim("boot", 3_000, u64::MAX, false);
        marks.push(record.mark());
        record.describe(2_999, "done".to_owned());
        marks.push(record.mark());
        assert!(marks.is_sorted_by(|one, next| one < next), "{marks:?}");
        let mark = record.mark();
        record.lease.until = 4_000;
        assert_eq!(record.mark(), mark, "nobody sees that");
    }

    #[test]
    fn everything_a_client_sends_counts() {
        let small = &records()[1];
        let mut large = small.clone();
        let long = "x".repeat(1_000);
        large.client.info = Some(Implementation::new(long.as_str(), "1.0"));
        assert!(large.size() > small.size() + 900);
        let settings = format!(r#"{{"extensions":{{"a/b":{{"c":"{long}"}}}}}}"#);
        large.client.capabilities = serde_json::from_str(&settings).unwrap();
        assert!(large.size() > small.size() + 1_900);
        let State::Waiting { open } = &mut large.state else { panic!("it waits") };
        let form = ElicitFormParams { message: long, ..Default::default() };
        open.insert("elicit-2", InputRequest::Elicit(ElicitParams::Form(form)));
        assert!(large.size() > small.size() + 2_900);
    }
}
