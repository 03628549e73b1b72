//! JSON that is passed on unparsed.
//!
//! A tool's schema, its arguments, structured content, an error's data: their types belong to
//! someone else. [`Json`] keeps their exact text (order of members, big numbers, unknown keywords)
//! in one allocation until its owner asks for it.

mod sparse;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub use self::sparse::Sparse;
use crate::raw::Raw;

/// An object as a tree.
pub type Extra = serde_json::Map<String, Value>;

/// A JSON value as text, known to be well formed.
///
/// Two values are equal if they mean the same: white space and the order of members do not count.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Encodes a value.
    ///
    /// # Errors
    /// If `value` cannot be written as JSON, such as a map whose keys are not strings.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(Self)
    }

    /// Takes ownership of text that is already JSON.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }

    /// Copies a borrowed value.
    pub fn copy_of(raw: Raw<'_>) -> Self {
        Self(RawValue::from_string(raw.get().to_owned()).expect("a raw value is JSON"))
    }

    /// The value `null`, as opposed to no value.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self::from(&Value::Object(Extra::new()))
    }

    /// Parses the value as a type of the caller's.
    ///
    /// # Errors
    /// If it does not have that type.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Parses the value as a tree.
    pub fn to_value(&self) -> Value {
        // Well formed, but perhaps nested too deeply, or with a number that a tree cannot hold.
        self.parse().unwrap_or(Value::Null)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The text, borrowed.
    pub fn as_raw(&self) -> Raw<'_> {
        Raw::from(&*self.0)
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::new(value).expect("a tree of JSON values has string keys and finite numbers")
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.to_value() == other.to_value()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// For `Option` members in which `null` is a value, distinct from absence.
///
/// Serde reads both as `None`. Used as `deserialize_with`, together with `default`.
///
/// # Errors
/// If the value does not have type `T`.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder {
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        value: Option<Json>,
    }

    #[test]
    fn null_is_a_value_and_absence_is_not() {
        for text in ["{}", r#"{"value":null}"#, r#"{"value":[1, 2]}"#] {
            let holder: Holder = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&holder).unwrap(), text);
        }
        assert!(serde_json::from_str::<Holder>("{}").unwrap().value.is_none());
    }

    #[test]
    fn text_survives_verbatim() {
        let text = r#"{"z":1,"a":123456789012345678901234567890,"f":1.10}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn equal_means_the_same_value() {
        let one: Json = serde_json::from_str(r#"{"a":1, "b":2}"#).unwrap();
        let two: Json = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(one, two);
        assert_ne!(one, Json::null());
    }
}
