//! Error codes: one neutral meaning, spelled as in each revision.

use super::Revision::{self, *};
use crate::error::{ErrorCode, ErrorObject};
use crate::method::{Method, ReadResource};

/// Adapts an error code to a revision.
///
/// Internally, a missing resource is always [`ErrorCode::RESOURCE_NOT_FOUND`]. A code that the
/// revision does not have becomes the closest one that it has; the message says the rest.
pub fn adapt_error(error: &mut ErrorObject, to: Revision) {
    error.code = match error.code {
        ErrorCode::RESOURCE_NOT_FOUND if to.is_modern() => ErrorCode::INVALID_PARAMS,
        ErrorCode::HEADER_MISMATCH
        | ErrorCode::MISSING_CLIENT_CAPABILITY
        | ErrorCode::UNSUPPORTED_VERSION
            if !to.is_modern() =>
        {
            ErrorCode::INVALID_REQUEST
        }
        ErrorCode::URL_ELICITATION_REQUIRED if to != V2025_11_25 => ErrorCode::INVALID_REQUEST,
        code => code,
    };
}

/// Whether an error of a peer says that a resource does not exist: it has a different code in each
/// era.
pub fn is_resource_not_found(error: &ErrorObject, method: &str) -> bool {
    let names_uri = || error.data.as_ref().is_some_and(|data| data.to_value().get("uri").is_some());
    method == ReadResource::NAME
        && match error.code {
            ErrorCode::RESOURCE_NOT_FOUND => true,
            ErrorCode::INVALID_PARAMS => names_uri(),
            _ => false,
        }
}

/// Converts an error of a peer to its neutral meaning, from which [`adapt_error`] makes that of
/// another revision. For errors that are passed on: callers get what came.
pub fn neutral_error(mut error: ErrorObject, method: &str) -> ErrorObject {
    if is_resource_not_found(&error, method) {
        error.code = ErrorCode::RESOURCE_NOT_FOUND;
    }
    error
}

/// Converts an error of a server of one revision for a caller of another, where the code means
/// something else: what the modern era has reserved since is an internal error with the original
/// beside it.
#[must_use]
pub fn crossed_error(error: ErrorObject, from: Revision, to: Revision) -> ErrorObject {
    let is_reserved = RESERVED.contains(&error.code.0);
    if from.is_modern() || !to.is_modern() || !is_reserved {
        return error;
    }
    let message = error.message.clone();
    let original = serde_json::json!({ "original": error });
    ErrorObject::internal(message).with_data(original.into())
}

/// The codes that 2026-07-28 gave meanings. In earlier revisions, servers use them as they like.
const RESERVED: std::ops::RangeInclusive<i64> = -32_099..=-32_020;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_resource_has_a_code_in_each_era() {
        let written = |to| {
            let mut error = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "none");
            adapt_error(&mut error, to);
            error.code.0
        };
        assert_eq!(Revision::ALL.map(written), [-32002, -32002, -32002, -32002, -32602]);
        let read = |code: i64, method: &str| {
            let error = ErrorObject::new(ErrorCode(code), "none");
            neutral_error(error.with_data(json!({ "uri": "a:b" }).into()), method).code
        };
        assert_eq!(read(-32602, "resources/read"), ErrorCode::RESOURCE_NOT_FOUND);
        assert_eq!(read(-32002, "resources/read"), ErrorCode::RESOURCE_NOT_FOUND);
        assert_eq!(read(-32602, "tools/call"), ErrorCode::INVALID_PARAMS);
        let bare = |code| {
            is_resource_not_found(&ErrorObject::new(ErrorCode(code), "none"), "resources/read")
        };
        assert_eq!([-32002, -32602, -32603].map(bare), [true, false, false]);
    }

    #[test]
    fn codes_that_got_a_meaning_later_do_not_keep_it() {
        for (code, is_reserved) in
            [(-32_019, false), (-32_020, true), (-32_050, true), (-32_099, true), (-32_100, false)]
        {
            let error = ErrorObject::new(ErrorCode(code), "x").with_data(json!(1).into());
            for (from, to) in [(V2025_11_25, V2026_07_28), (V2024_11_05, V2026_07_28)] {
                let crossed = crossed_error(error.clone(), from, to);
                assert_eq!(crossed != error, is_reserved, "{code}");
                if is_reserved {
                    assert_eq!(crossed.code, ErrorCode::INTERNAL_ERROR);
                    let original = crossed.data.unwrap().to_value()["original"].clone();
                    assert_eq!(original, json!({ "code": code, "message": "x", "data": 1 }));
                }
            }
            for (from, to) in [(V2025_11_25, V2025_11_25), (V2026_07_28, V2026_07_28)] {
                assert_eq!(crossed_error(error.clone(), from, to), error);
            }
        }
    }

    #[test]
    fn codes_of_another_revision_are_never_sent() {
        for to in Revision::ALL {
            for code in [-32020, -32021, -32022, -32042] {
                let mut error = ErrorObject::new(ErrorCode(code), "x");
                adapt_error(&mut error, to);
                let foreign = match code {
                    -32042 => to != V2025_11_25,
                    _ => !to.is_modern(),
                };
                assert_eq!(error.code.0 != code, foreign, "{code} to {to}");
            }
        }
    }
}
