//! What lists and results share: pages, cache hints, result types.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Meta, RequestMeta, request_params, result_body};
use crate::json::Sparse;
use crate::wire::Text;

/// The parameters of every list request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PaginatedParams<'a> {
    /// The cursor from the previous page. An empty string is a cursor too; only absence means the
    /// first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The parameters of a request without any of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EmptyParams<'a> {
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// An empty result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

request_params!(PaginatedParams, EmptyParams);
result_body!(EmptyResult);

/// Defines the result of a list request: a page of items, with its cursor and cache hints.
macro_rules! list_result {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$about_items:meta])*
            pub $items:ident: $list:ty,
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// The kind of result. Since 2026-07-28.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub result_type: Option<$crate::model::ResultType>,
            $(#[$about_items])*
            pub $items: $list,
            /// The cursor of the next page; absent on the last page.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
            /// How long the result stays fresh, in milliseconds. Since 2026-07-28.
            #[serde(
                default,
                deserialize_with = "crate::model::page::millis",
                skip_serializing_if = "Option::is_none"
            )]
            pub ttl_ms: Option<u64>,
            /// Who may reuse the cached result. Since 2026-07-28.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cache_scope: Option<$crate::model::CacheScope>,
            /// Metadata.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<$crate::model::Meta>,
            /// Members that the specification does not define.
            #[serde(flatten)]
            pub extra: $crate::json::Sparse,
        }

        $crate::model::result_body!($name);
    };
}
pub(super) use list_result;

/// The kind of a modern result. Legacy results have none, and are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultType {
    /// The result itself.
    Complete,
    /// Input requests that must be answered first.
    InputRequired,
    /// A task that will have the result. Only for clients that declare the tasks extension.
    Task,
    /// A kind we do not know: the response cannot be used.
    Other(String),
}

impl ResultType {
    /// Its name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for ResultType {
    fn from(word: &str) -> Self {
        match word {
            "complete" => Self::Complete,
            "input_required" => Self::InputRequired,
            "task" => Self::Task,
            _ => Self::Other(word.to_owned()),
        }
    }
}

// Both by hand, because every modern result has one and the derived forms copy it.
impl Serialize for ResultType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(word)| Self::from(&*word))
    }
}

/// Who may reuse a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anyone: it is the same for all.
    Public,
    /// Only the same caller, with the same authorization.
    #[default]
    Private,
}

/// Reads `ttlMs` leniently: some peers send negative or fractional numbers.
pub(super) fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    Ok(number.map(|number| {
        // `as` saturates: below zero is zero, NaN is zero.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let rounded = number.as_f64().unwrap_or(0.0) as u64;
        number.as_u64().unwrap_or(rounded)
    }))
}
