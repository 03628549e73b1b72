//! Sets of JSON types.

use serde_json::Value;

/// A set of JSON types. Every integer is a number, so the set of numbers includes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const STRING: Self = Self(1);
    pub(crate) const INTEGER: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(2 | 4);
    pub(crate) const BOOLEAN: Self = Self(8);
    pub(crate) const NULL: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);

    const NAMES: [(&str, Self); 7] = [
        ("string", Self::STRING),
        ("integer", Self::INTEGER),
        ("number", Self::NUMBER),
        ("boolean", Self::BOOLEAN),
        ("null", Self::NULL),
        ("array", Self::ARRAY),
        ("object", Self::OBJECT),
    ];

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all types of another set are in this one.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Without `null`.
    pub(crate) const fn beside_null(self) -> Self {
        Self(self.0 & !Self::NULL.0)
    }

    /// The set that the member `type` of a schema names.
    pub(super) fn named(names: &Value) -> Self {
        match names {
            Value::String(name) => {
                let known = Self::NAMES.iter().find(|known| known.0 == name);
                known.map_or(Self::NONE, |known| known.1)
            }
            Value::Array(names) => names.iter().map(Self::named).fold(Self::NONE, Self::union),
            _ => Self::ANY,
        }
    }

    /// The names of the set, for the member `type` of a schema.
    pub(super) fn names(self) -> Value {
        Self::NAMES.iter().filter(|known| self.has(known.1)).map(|known| known.0).collect()
    }

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }
}
