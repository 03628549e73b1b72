//! What we send conforms to the official schema of its revision, and contains nothing that the
//! revision does not define.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::method::{METHODS, MethodKind};
use bowline_proto::model::{
    ClientCapabilities, ElicitFormParams, InputRequiredResult, task_extension,
};
use bowline_proto::revision::Revision::{self, *};
use bowline_proto::revision::{Adapt, Unsupported, adapt_error};
use bowline_proto::wire::{Id, encode_error};
use proptest::prop_assert;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::rules::Rules;
use crate::shared::same;

/// The number of values tried for each kind.
const TRIES: u32 = 256;

/// Revisions whose sampling has no tools and only single-block messages.
const BEFORE_R11: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18];
const LEGACY: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const MODERN: &[Revision] = &[V2026_07_28];

/// What a revision cannot express: the method, the words of the error, the revisions.
type Rejected = (&'static str, &'static str, &'static [Revision]);

/// The definition of the envelope in a revision.
#[derive(Clone, Copy)]
enum Envelope {
    Request,
    Notification,
    Result,
    /// None: a response that the modern era embeds in parameters.
    Embedded,
}

impl Envelope {
    fn definition(self, revision: Revision) -> Option<&'static str> {
        match self {
            Self::Request => Some("JSONRPCRequest"),
            Self::Notification => Some("JSONRPCNotification"),
            Self::Result if revision < V2025_11_25 => Some("JSONRPCResponse"),
            Self::Result => Some("JSONRPCResultResponse"),
            Self::Embedded => None,
        }
    }

    /// The part of a message that the definition of its method describes.
    fn payload(self, mut message: Value, revision: Revision) -> Value {
        match self {
            Self::Result | Self::Embedded => message["result"].take(),
            // Later definitions of requests and notifications include the envelope.
            Self::Request | Self::Notification if revision < V2025_11_25 => {
                let members = message.as_object_mut().unwrap();
                members.remove("jsonrpc");
                members.remove("id");
                message
            }
            Self::Request | Self::Notification => message,
        }
    }

    /// Where the generated value is in the message.
    fn body(self) -> &'static str {
        match self {
            Self::Request | Self::Notification => "params",
            Self::Result | Self::Embedded => "result",
        }
    }
}

/// The schemas of each revision, if the official texts are available.
type AllRules = BTreeMap<Revision, Option<Rules>>;

/// Tries many values of a case in all its revisions, and returns what was rejected.
fn check(case: &Case, envelope: Envelope, rules: &AllRules) -> BTreeSet<(&'static str, Revision)> {
    let config = Config { cases: TRIES, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let rejected = RefCell::new(BTreeSet::new());
    let outcome = runner.run(&case.value, |value| {
        let neutral = (case.encode)(&value, None).unwrap();
        let body = &neutral[envelope.body()];
        prop_assert!(same(body, &value), "read {value}\nwritten {body}");
        for &revision in &case.revisions {
            let fit = Fit { case, envelope, revision, rules: rules[&revision].as_ref() };
            match (case.encode)(&value, Some(revision)) {
                Ok(message) => fit.check(&neutral, &message).map_err(TestCaseError::fail)?,
                Err(Unsupported { what, .. }) => {
                    rejected.borrow_mut().insert((what, revision));
                }
            }
        }
        Ok(())
    });
    if let Err(TestError::Fail(why, value)) = outcome {
        panic!("{}: {why}\nfrom {value}", case.name);
    }
    rejected.into_inner()
}

/// A message and the revision it must conform to.
struct Fit<'a> {
    case: &'a Case,
    envelope: Envelope,
    revision: Revision,
    rules: Option<&'a Rules>,
}

impl Fit<'_> {
    fn check(&self, neutral: &Value, message: &Value) -> Result<(), String> {
        self.check_era(message)?;
        let Some(rules) = self.rules else { return Ok(()) };
        if let Some(definition) = self.envelope.definition(self.revision) {
            rules.check_published(definition, message)?;
        }
        let payload = self.envelope.payload(message.clone(), self.revision);
        match (self.case.definition, self.envelope) {
            (Some(definition), _) => {
                rules.check(definition, &payload)?;
                self.check_kept(rules, definition, neutral, &payload)?;
            }
            (None, Envelope::Result) => rules.check_published("Result", &payload)?,
            (None, _) => {}
        }
        // Extensions have no definitions, but the input requests in them do.
        match message[self.envelope.body()].get("inputRequests") {
            Some(questions) => rules.check("InputRequests", questions),
            None => Ok(()),
        }
    }

    /// Nothing modern is sent to a legacy peer, not even where the schema is open.
    fn check_era(&self, message: &Value) -> Result<(), String> {
        let text = message.to_string();
        let sent = |key: &&&str| text.contains(&format!("io.modelcontextprotocol/{key}"));
        match MODERN_KEYS.iter().find(sent).filter(|_| !self.revision.is_modern()) {
            Some(key) => Err(format!("{key} is sent to {}: {text}", self.revision)),
            None => Ok(()),
        }
    }

    /// What conforms is sent unchanged.
    fn check_kept(
        &self,
        rules: &Rules,
        definition: &str,
        neutral: &Value,
        sent: &Value,
    ) -> Result<(), String> {
        let changes = CHANGES.iter().any(|(name, _)| *name == definition);
        let mut before = self.envelope.payload(neutral.clone(), self.revision);
        if changes || rules.check(definition, &before).is_err() {
            return Ok(());
        }
        let mut after = sent.clone();
        if !self.revision.is_modern() {
            forget_modern_keys(&mut before);
            forget_modern_keys(&mut after);
        }
        if same(&before, &after) {
            return Ok(());
        }
        Err(format!("changed for {}\n  from {before}\n    to {after}", self.revision))
    }
}

/// Reserved keys of `_meta` that came with the modern era.
const MODERN_KEYS: &[&str] =
    &["serverInfo", "clientInfo", "clientCapabilities", "protocolVersion", "logLevel"];

/// Messages that are changed although they would conform, and why.
const CHANGES: &[(&str, &str)] = &[
    ("InitializeRequest", "members of a capability are newer than the open capability"),
    ("CompleteResult", "at most 100 values, which older schemas do not enforce"),
    ("ElicitRequest", "the mode is sent to peers that know two"),
    ("InputRequiredResult", "the same"),
    ("GetTaskPayloadResult", "a modern `resultType` would conform, like everything else"),
];

/// Removes from `_meta` what is never sent to a legacy peer.
fn forget_modern_keys(payload: &mut Value) {
    let body = if payload["params"].is_object() { &mut payload["params"] } else { payload };
    let Some(Value::Object(meta)) = body.get_mut("_meta") else { return };
    meta.retain(|key, _| !MODERN_KEYS.iter().any(|modern| key.ends_with(modern)));
    if meta.is_empty() {
        body.as_object_mut().unwrap().remove("_meta");
    }
}

/// Checks all cases. Exactly the expected ones are rejected.
fn check_all(cases: &[Case], envelope: Envelope, expected: &[Rejected]) {
    let rules = Revision::ALL.map(|revision| (revision, Rules::load(revision))).into();
    let mut rejected = BTreeSet::new();
    for case in cases {
        let found = check(case, envelope, &rules);
        rejected.extend(found.into_iter().map(|(what, revision)| (case.name, what, revision)));
    }
    let each = |(name, what, revisions): &Rejected| {
        let (name, what) = (*name, *what);
        revisions.iter().map(move |revision| (name, what, *revision))
    };
    let expected: BTreeSet<_> = expected.iter().flat_map(each).collect();
    assert_eq!(rejected, expected);
}

#[test]
fn requests_conform() {
    check_all(
        &cases::requests(),
        Envelope::Request,
        &[
            ("sampling/createMessage", "tools in sampling", BEFORE_R11),
            ("sampling/createMessage", "message of several blocks", BEFORE_R11),
            ("sampling/createMessage", "such content in sampling", LEGACY),
            ("elicitation/create", "form field with several values", &[V2025_06_18]),
            ("elicitation/create", "elicitation by URL", &[V2025_06_18]),
            ("elicitation/create", "elicitation by URL without an id", &[V2025_11_25]),
        ],
    );
}

#[test]
fn results_conform() {
    check_all(
        &cases::results(),
        Envelope::Result,
        &[
            ("sampling/createMessage", "tools in sampling", BEFORE_R11),
            ("sampling/createMessage", "message of several blocks", BEFORE_R11),
            ("sampling/createMessage", "such content in sampling", LEGACY),
            ("elicitation/create", "form field with several values", &[V2025_06_18]),
            ("tasks/get", "such content in sampling", MODERN),
        ],
    );
}

#[test]
fn tasks_and_input_requests_conform() {
    check_all(
        &cases::other_results(),
        Envelope::Result,
        &[
            ("tools/call", "such content in sampling", MODERN),
            ("prompts/get", "such content in sampling", MODERN),
            ("resources/read", "such content in sampling", MODERN),
        ],
    );
}

#[test]
fn responses_inside_parameters_conform() {
    check_all(
        &cases::embedded_answers(),
        Envelope::Embedded,
        &[("sampling/createMessage", "such content in sampling", MODERN)],
    );
}

#[test]
fn notifications_conform() {
    check_all(
        &cases::notifications(),
        Envelope::Notification,
        &[
            ("notifications/cancelled", "cancellation without a request id", BEFORE_R11),
            ("notifications/cancelled", "cancellation without a request id", MODERN),
            ("notifications/tasks", "such content in sampling", MODERN),
        ],
    );
}

#[test]
fn every_method_has_a_case_in_every_revision() {
    let has = |cases: &[Case], name: &str, revision: Revision| {
        cases.iter().filter(|case| case.name == name).any(|case| case.revisions.contains(&revision))
    };
    let (requests, results) = (cases::requests(), cases::results());
    let notifications = cases::notifications();
    for revision in Revision::ALL {
        for row in METHODS.iter().filter(|row| row.holds_in(revision)) {
            let covered = match row.kind {
                MethodKind::Request => {
                    has(&requests, row.name, revision) && has(&results, row.name, revision)
                }
                MethodKind::Notification => has(&notifications, row.name, revision),
            };
            assert!(covered, "{} in {revision} is not tested", row.name);
        }
    }
}

#[test]
fn values_a_revision_lacks_are_rejected_with_a_reason() {
    let check = |value: &mut dyn Adapt, to: Revision, what: &str| {
        let rejected = value.adapt(to).unwrap_err();
        assert_eq!(rejected.to_string(), format!("protocol revision {to} has no {what}"));
    };
    for to in [V2024_11_05, V2025_03_26] {
        check(&mut ElicitFormParams::default(), to, "elicitation");
    }
    for to in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
        let mut asks = InputRequiredResult::default();
        check(&mut asks, to, "question inside an answer");
        let mut task = task_extension::CreateTaskResult::default();
        check(&mut task, to, "task that the server decides on");
    }
}

/// Older revisions leave capabilities open, so their schemas do not show how a peer of that time
/// would interpret a newer member.
#[test]
fn capabilities_promise_nothing_newer() {
    let check = |declared: Value, to: Revision, expected: Value| {
        let mut capabilities: ClientCapabilities = serde_json::from_value(declared).unwrap();
        capabilities.adapt(to).unwrap();
        assert_eq!(serde_json::to_value(capabilities).unwrap(), expected, "{to}");
    };
    let both = || json!({ "elicitation": { "form": {}, "url": {} } });
    let url = || json!({ "elicitation": { "url": {} } });
    check(both(), V2025_11_25, both());
    check(both(), V2025_06_18, json!({ "elicitation": {} }));
    check(both(), V2025_03_26, json!({}));
    // `{}` would promise forms.
    check(url(), V2025_06_18, json!({}));
    check(url(), V2025_11_25, url());
    let sampling = || json!({ "sampling": { "context": {}, "tools": {} } });
    check(sampling(), V2025_06_18, json!({ "sampling": {} }));
    check(sampling(), V2026_07_28, sampling());
}

#[test]
fn errors_conform() {
    let codes = [-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022, 7];
    for revision in Revision::ALL {
        let Some(rules) = Rules::load(revision) else { continue };
        let definition =
            if revision < V2025_11_25 { "JSONRPCError" } else { "JSONRPCErrorResponse" };
        for code in codes {
            let mut error = ErrorObject::new(ErrorCode(code), "a \"word\"");
            adapt_error(&mut error, revision);
            let mut out = Vec::new();
            encode_error(&mut out, &Id::from("1"), &error);
            let message = serde_json::from_slice(&out).unwrap();
            rules.check(definition, &message).unwrap();
        }
    }
}
