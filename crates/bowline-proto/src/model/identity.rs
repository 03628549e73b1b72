//! The name, version and icons of a peer.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The name and version of a client or server, for people and logs; never a basis for trust.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The display name. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Any text. Some peers omit it, so it may be empty.
    #[serde(default)]
    pub version: String,
    /// What it does. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Icons. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl Implementation {
    /// A name and a version, nothing else.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// An icon, by reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URL.
    pub src: String,
    /// The MIME type, in case the icon's server does not provide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`. Early drafts used one string with spaces, which is accepted
    /// too.
    #[serde(default, deserialize_with = "sizes", skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it is designed for.
    #[serde(default, deserialize_with = "known_or_none", skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl From<&str> for Icon {
    fn from(src: &str) -> Self {
        Self::from(src.to_owned())
    }
}

impl From<String> for Icon {
    fn from(src: String) -> Self {
        Self { src, ..Self::default() }
    }
}

/// The background an icon is designed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.split_whitespace().map(str::to_owned).collect())),
        value => serde_json::from_value(value).map(Some).map_err(serde::de::Error::custom),
    }
}

/// Reads a hint. A newer peer may use a value that we do not know, which must not make a whole list
/// fail.
pub(super) fn known_or_none<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: serde::de::DeserializeOwned,
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_icon_does_not_spoil_a_list() {
        let icon: Icon =
            serde_json::from_str(r#"{"src":"data:,","sizes":"16x16 any","theme":"sepia"}"#)
                .unwrap();
        let sizes = vec!["16x16".to_owned(), "any".to_owned()];
        assert_eq!((icon.sizes, icon.theme), (Some(sizes), None));
    }
}
