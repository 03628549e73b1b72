//! Text to types and back to text.
//!
//! Every function returns what we would write after reading `text`, or why it cannot be read.

use bowline_proto::decode::{decode, decode_params};
use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Method, Notice};
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Outcome, Revision, decode_outcome};
use bowline_proto::wire::{
    Message, Response, encode_error, encode_notification, encode_request, encode_response,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is written after reading, or why it cannot be read.
pub(crate) type Written = Result<Value, String>;

/// A plain type of the model.
pub(crate) fn value<T: DeserializeOwned + Serialize>(text: &str) -> Written {
    let value: T =
        decode(std::any::type_name::<T>(), "it", text).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(value).unwrap())
}

/// The parameters of a request, without envelope.
pub(crate) fn params<M: Method>(text: &str) -> Written {
    let params: M::Params<'_> =
        decode(M::NAME, "params", text).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(params).unwrap())
}

/// A request, envelope included.
pub(crate) fn request<M: Method>(text: &str) -> Written {
    let message = Message::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let Message::Request(request) = message else { return Err("not a request".to_owned()) };
    if request.method != M::NAME {
        return Err(format!("{} is not {}", request.method, M::NAME));
    }
    let params: M::Params<'_> =
        decode_params(M::NAME, request.params.raw()).map_err(|error| error.to_string())?;
    // The caller decides whether to send empty parameters.
    let params = request.params.raw().map(|_| params);
    written(|out| encode_request(out, &request.id, M::NAME, params.as_ref()).unwrap())
}

/// A notification, envelope included.
pub(crate) fn notification<N: Notice>(text: &str) -> Written {
    let message = Message::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let Message::Notification(notice) = message else { return Err("no notification".to_owned()) };
    if notice.method != N::NAME {
        return Err(format!("{} is not {}", notice.method, N::NAME));
    }
    let params: N::Params =
        decode_params(N::NAME, notice.params).map_err(|error| error.to_string())?;
    let params = notice.params.map(|_| params);
    written(|out| encode_notification(out, N::NAME, params.as_ref()).unwrap())
}

/// A modern result, without envelope.
pub(crate) fn result<M: Method>(text: &str) -> Written {
    outcome::<M>(
        Revision::V2026_07_28,
        serde_json::from_str(text).map_err(|error| error.to_string())?,
    )
}

/// A modern response to `M`, envelope included.
pub(crate) fn response<M: Method>(text: &str) -> Written {
    response_in::<M>(Revision::V2026_07_28, text)
}

/// A response to `M` in a revision, envelope included.
pub(crate) fn response_in<M: Method>(revision: Revision, text: &str) -> Written {
    let message = Message::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let Message::Response(Response { id, outcome: Ok(raw) }) = message else {
        return Err("not a result".to_owned());
    };
    let result = outcome::<M>(revision, raw)?;
    written(|out| encode_response(out, &id, &result).unwrap())
}

/// A result of `M`, as the type that it claims to be.
fn outcome<M: Method>(revision: Revision, raw: Raw<'_>) -> Written {
    let written = match decode_outcome::<M>(revision, raw).map_err(|error| error.to_string())? {
        Outcome::Complete(result) => serde_json::to_value(result),
        Outcome::InputRequired(result) => serde_json::to_value(result),
        Outcome::Task(result) => serde_json::to_value(result),
    };
    Ok(written.unwrap())
}

/// A response that is an error, envelope included, with this code.
pub(crate) fn error_response<const CODE: i64>(text: &str) -> Written {
    let message = Message::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let Message::Response(Response { id, outcome: Err(error) }) = message else {
        return Err("not an error".to_owned());
    };
    check_code(&error, CODE)?;
    written(|out| encode_error(out, &id, &error))
}

/// An error, without envelope, with this code.
pub(crate) fn error<const CODE: i64>(text: &str) -> Written {
    let error: ErrorObject = decode("error", "error", text).map_err(|error| error.to_string())?;
    check_code(&error, CODE)?;
    Ok(serde_json::to_value(error).unwrap())
}

fn check_code(error: &ErrorObject, code: i64) -> Result<(), String> {
    if error.code.0 == code { Ok(()) } else { Err(format!("code {} is not {code}", error.code)) }
}

fn written(encode: impl FnOnce(&mut Vec<u8>)) -> Written {
    let mut out = Vec::new();
    encode(&mut out);
    serde_json::from_slice(&out).map_err(|error| error.to_string())
}
