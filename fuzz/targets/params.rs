//! Parameters and results of every method: what decodes can be expressed in a revision or is
//! rejected; what can be expressed reads back the same, and needs no second adaptation.
//!
//! An input is a byte that selects the type, then JSON.

#![no_main]

use bowline_proto::decode::{decode_params, decode_result};
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::method::*;
use bowline_proto::model::{CallToolParams, InputRequiredResult, task_extension};
use bowline_proto::params::Params;
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Adapt, Outcome, Revision, Unsupported, decode_outcome};
use bowline_proto::session::Claim;
use bowline_proto::wire::{Id, Message, encode_notification, encode_request, encode_response};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

type Check = fn(Raw<'_>);

/// A method's name, and the checks for its parameters and its result.
macro_rules! checks {
    (requests { $($request:ident)* } notifications { $($notice:ident)* }) => {
        const CHECKS: &[(&str, &[Check])] = &[
            $(($request::NAME, &[params::<$request>, result::<$request>]),)*
            $(($notice::NAME, &[notice::<$notice>]),)*
            ("", &[other::<InputRequiredResult>, other::<task_extension::CreateTaskResult>]),
        ];
    };
}

checks! {
    requests {
        Initialize Ping Discover ListTools CallTool ListPrompts GetPrompt ListResources
        ListResourceTemplates ReadResource Subscribe Unsubscribe Complete SetLevel
        SubscriptionsListen CreateMessage ListRoots ElicitationCreate GetTask GetTaskPayload
        ListTasks CancelTask GetTaskDetail UpdateTask StopTask ListSkills GetSkill ReadDirectory
    }
    notifications {
        Initialized Cancelled Progress LoggingMessage ToolListChanged PromptListChanged
        ResourceListChanged ResourceUpdated RootsListChanged ElicitationComplete
        TaskStatusChanged TaskChanged SubscriptionsAcknowledged
    }
}

fuzz_target!(
    init: {
        for row in METHODS {
            assert!(CHECKS.iter().any(|(name, _)| *name == row.name), "{} is not fuzzed", row.name);
        }
    },
    |input: &[u8]| {
        let Some((choice, json)) = input.split_first() else {
            return;
        };
        let Ok(raw) = serde_json::from_slice::<Raw<'_>>(json) else {
            return;
        };
        let checks: Vec<Check> = CHECKS.iter().flat_map(|(_, checks)| *checks).copied().collect();
        checks[usize::from(*choice) % checks.len()](raw);
    }
);

fn params<M: Method>(raw: Raw<'_>) {
    scanned(raw);
    let read = || match decode_params::<M::Params<'_>>(M::NAME, Some(raw)) {
        Ok(params) => Some(params),
        Err(error) => {
            refused(M::NAME, error.into());
            None
        }
    };
    for to in Revision::ALL {
        let Some(mut params) = read() else { return };
        let Some(text) = adapted(&mut params, to) else { continue };
        let id = Id::from(7_i64);
        let mut frame = Vec::new();
        encode_request(&mut frame, &id, M::NAME, Some(&params)).expect("it can be written as JSON");
        let Ok(Message::Request(request)) = Message::parse(&frame) else {
            panic!("not a request: {text}");
        };
        assert_eq!((&request.id, &*request.method), (&id, M::NAME));
        let again = decode_params::<M::Params<'_>>(M::NAME, request.params.raw());
        same(again.map_err(|error| error.to_string()), &text, to);
    }
}

fn notice<N: Notice>(raw: Raw<'_>) {
    for to in Revision::ALL {
        let mut params: N::Params = match decode_params(N::NAME, Some(raw)) {
            Ok(params) => params,
            Err(error) => return refused(N::NAME, error.into()),
        };
        let Some(text) = adapted(&mut params, to) else { continue };
        let mut frame = Vec::new();
        encode_notification(&mut frame, N::NAME, Some(&params)).expect("it can be written as JSON");
        let Ok(Message::Notification(notification)) = Message::parse(&frame) else {
            panic!("not a notification: {text}");
        };
        let again = decode_params::<N::Params>(N::NAME, notification.params);
        same(again.map_err(|error| error.to_string()), &text, to);
    }
}

fn result<M: Method>(raw: Raw<'_>) {
    let read = decode_result::<M::Result>(M::NAME, raw);
    let is_read = read.is_ok();
    // The fast path agrees with `serde_json`.
    let book = serde_json::from_str::<M::Result>(raw.get()).ok();
    let text = |result| serde_json::to_string(&result).expect("it can be written as JSON");
    assert_eq!(read.ok().map(text), book.map(text));
    for to in Revision::ALL {
        let outcome = decode_outcome::<M>(to, raw);
        if !to.is_modern() {
            assert_eq!(matches!(outcome, Ok(Outcome::Complete(_))), is_read);
        }
        let Ok(Outcome::Complete(mut result)) = outcome else { continue };
        let Some(text) = adapted(&mut result, to) else { continue };
        answered(&result, &text);
        // A caller in this revision reads the answer as what it is.
        let again = serde_json::from_str::<Raw<'_>>(&text).expect("JSON");
        let again = match decode_outcome::<M>(to, again) {
            Ok(Outcome::Complete(result)) => Ok(result),
            Ok(_) => Err("another kind of outcome".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        same(again, &text, to);
    }
}

/// The scan of parameters agrees with `serde_json`.
fn scanned(raw: Raw<'_>) {
    let params = Params::of(Some(raw));
    assert_eq!(params.claim(), Claim::read(Some(raw)));
    let book = serde_json::from_str::<CallToolParams<'_>>(raw.get()).ok();
    assert_eq!(params.call_tool().ok(), book);
    assert_eq!(decode_params("tools/call", Some(raw)).ok(), book);
}

/// Results that can replace the declared one.
fn other<T: Serialize + DeserializeOwned + Adapt>(raw: Raw<'_>) {
    for to in Revision::ALL {
        let Ok(mut result) = decode_result::<T>("tools/call", raw) else { return };
        let Some(text) = adapted(&mut result, to) else { continue };
        answered(&result, &text);
        same(serde_json::from_str::<T>(&text).map_err(|error| error.to_string()), &text, to);
    }
}

/// The text for a revision, if it can be expressed there. Adapting twice changes nothing.
fn adapted<T: Serialize + Adapt>(value: &mut T, to: Revision) -> Option<String> {
    if let Err(Unsupported { what, revision }) = value.adapt(to) {
        assert!(!what.is_empty() && revision == to);
        return None;
    }
    let text = serde_json::to_string(value).expect("it can be written as JSON");
    assert_eq!(value.adapt(to), Ok(()), "{text}");
    let again = serde_json::to_string(value).expect("it can be written as JSON");
    assert_eq!(text, again, "adapted twice to {to}");
    Some(text)
}

/// A peer reads what was written, without adapting it.
fn same<T: Serialize + Adapt>(again: Result<T, String>, text: &str, to: Revision) {
    let mut again = again.unwrap_or_else(|error| panic!("{error}, in {to}: {text}"));
    assert_eq!(adapted(&mut again, to).as_deref(), Some(text), "read again in {to}");
}

fn answered<T: Serialize>(result: &T, text: &str) {
    let mut frame = Vec::new();
    let id = Id::from("seven");
    encode_response(&mut frame, &id, result).expect("it can be written as JSON");
    let Ok(Message::Response(response)) = Message::parse(&frame) else {
        panic!("not a response: {text}");
    };
    assert_eq!(response.id, id);
    assert_eq!(response.outcome.map(Raw::get), Ok(text));
}

/// An error names the method and can be sent.
fn refused(method: &str, error: ErrorObject) {
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.starts_with(method));
}
