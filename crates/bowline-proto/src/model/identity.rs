//! Who a peer is, and the pictures it wants shown.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The name and version of a client or server, for people and logs; never a reason to trust.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name programs use.
    pub name: String,
    /// The name people see. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Any text; some peers leave it out, so it may be empty.
    #[serde(default)]
    pub version: String,
    /// What it does. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Pictures. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl Implementation {
    /// A name and a version, nothing else.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// One picture, by reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URL.
    pub src: String,
    /// The type, where the server of the picture may not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `48x48` and the like, or `any`. Early drafts had one string with blanks, which is read too.
    #[serde(default, deserialize_with = "sizes", skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it is made for.
    #[serde(default, deserialize_with = "known_or_none", skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background a picture is made for.
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

/// Reads a hint, which a peer of another time may have words for that we do not know. A whole list
/// must not fail for one of them.
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
