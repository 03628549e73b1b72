//! The keywords of one schema object, read with errors that name the location.

use serde_json::{Map, Number, Value};

use crate::error::SchemaError;
use crate::node::Types;
use crate::words::{kind, shorten};

/// A schema object and its location.
#[derive(Clone, Copy)]
pub(super) struct Keywords<'s, 'l> {
    pub(super) map: &'s Map<String, Value>,
    pub(super) location: &'l str,
}

impl<'s> Keywords<'s, '_> {
    pub(super) fn find(self, keyword: &str) -> Option<&'s Value> {
        self.map.get(keyword)
    }

    pub(super) fn wrong(self, keyword: &str, value: &Value, expected: &str) -> SchemaError {
        let message = format!("is {}; expected {expected}", kind(value));
        SchemaError::malformed(format!("{}/{keyword}", self.location), message)
    }

    pub(super) fn text(self, keyword: &str) -> Result<Option<&'s str>, SchemaError> {
        match self.find(keyword) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(keyword, other, "a string")),
        }
    }

    pub(super) fn number(self, keyword: &str) -> Result<Option<&'s Number>, SchemaError> {
        match self.find(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong(keyword, other, "a number")),
        }
    }

    /// A count. The standard allows `2.0`.
    pub(super) fn count(self, keyword: &str) -> Result<Option<u64>, SchemaError> {
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        if let Some(count) = number.as_u64() {
            return Ok(Some(count));
        }
        let float = number.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0);
        let float = float.ok_or_else(|| {
            let message = format!("is {number}; expected a non-negative integer");
            SchemaError::malformed(format!("{}/{keyword}", self.location), message)
        })?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and not negative; a bigger one than fits counts as the biggest"
        )]
        Ok(Some(float as u64))
    }

    pub(super) fn flag(self, keyword: &str) -> Result<bool, SchemaError> {
        match self.find(keyword) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(keyword, other, "a boolean")),
        }
    }

    pub(super) fn array(self, keyword: &str) -> Result<Option<&'s [Value]>, SchemaError> {
        match self.find(keyword) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(keyword, other, "an array")),
        }
    }

    pub(super) fn object(
        self,
        keyword: &str,
    ) -> Result<Option<&'s Map<String, Value>>, SchemaError> {
        match self.find(keyword) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong(keyword, other, "an object")),
        }
    }

    pub(super) fn names(self, keyword: &str) -> Result<Option<Box<[Box<str>]>>, SchemaError> {
        let Some(items) = self.array(keyword)? else { return Ok(None) };
        self.read_names(keyword, items).map(Some)
    }

    pub(super) fn read_names(
        self,
        keyword: &str,
        items: &[Value],
    ) -> Result<Box<[Box<str>]>, SchemaError> {
        let name = |item: &Value| {
            item.as_str().map(Box::from).ok_or_else(|| self.wrong(keyword, item, "a string"))
        };
        items.iter().map(name).collect()
    }

    pub(super) fn types(self) -> Result<Types, SchemaError> {
        let with = |types: Types, name: &Value| {
            let known = name.as_str().and_then(|name| types.with(name));
            known.ok_or_else(|| {
                let message = match name {
                    Value::String(name) => format!("{} is not a type", shorten(name)),
                    other => format!("is {}; expected the name of a type", kind(other)),
                };
                SchemaError::malformed(format!("{}/type", self.location), message)
            })
        };
        match self.find("type") {
            None => Ok(Types::ANY),
            Some(Value::Array(names)) => names.iter().try_fold(Types::NONE, with),
            Some(name) => with(Types::NONE, name),
        }
    }
}
