//! Equality as JSON defines it: numbers by value, members in any order. Each comparison costs
//! steps.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::Value;

use super::{Evaluation, Stop};
use crate::number::{canonical_bits, compare};

/// How many bytes of text are compared or counted in one step.
const BYTES_PER_STEP: u64 = 256;

impl Evaluation<'_> {
    /// Spends the steps for reading all of a text.
    pub(super) fn spend_on_text(&mut self, text: &str) -> Result<(), Stop> {
        self.spend(text.len() as u64 / BYTES_PER_STEP)
    }

    /// Whether two values are equal. Both must stay within the limit on nesting.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, Stop> {
        Ok(match (left, right) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => compare(left, right).is_eq(),
            (Value::String(left), Value::String(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                self.spend_on_text(left)?;
                left == right
            }
            (Value::Array(left), Value::Array(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right) {
                    self.spend(1)?;
                    if !self.deeper(|own| own.equal(left, right))? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (name, left) in left {
                    let Some(right) = right.get(name) else { return Ok(false) };
                    self.spend(1)?;
                    if !self.deeper(|own| own.equal(left, right))? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    /// Two items that are equal, if there are any.
    ///
    /// Sorting by a keyed hash keeps this from being quadratic; equal hashes are compared in full.
    pub(super) fn twins(&mut self, items: &[Value]) -> Result<Option<(usize, usize)>, Stop> {
        let keys = RandomState::new();
        let mut hashes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            hashes.push((self.hash(item, &keys)?, index));
        }
        hashes.sort_unstable();
        for (at, (hash, first)) in hashes.iter().enumerate() {
            for (other, second) in &hashes[at + 1..] {
                if other != hash {
                    break;
                }
                self.spend(1)?;
                if self.equal(&items[*first], &items[*second])? {
                    return Ok(Some((*first, *second)));
                }
            }
        }
        Ok(None)
    }

    fn hash(&mut self, value: &Value, keys: &RandomState) -> Result<u64, Stop> {
        let mut hasher = keys.build_hasher();
        match value {
            Value::Null => hasher.write_u8(0),
            Value::Bool(flag) => hasher.write_u8(1 + u8::from(*flag)),
            Value::Number(number) => {
                hasher.write_u8(3);
                hasher.write_u64(canonical_bits(number));
            }
            Value::String(text) => {
                self.spend_on_text(text)?;
                hasher.write_u8(4);
                hasher.write(text.as_bytes());
            }
            Value::Array(items) => {
                hasher.write_u8(5);
                for item in items {
                    hasher.write_u64(self.deeper(|own| own.hash(item, keys))?);
                }
            }
            Value::Object(map) => {
                hasher.write_u8(6);
                // A sum does not depend on the order of the members.
                let mut sum = 0_u64;
                for (name, member) in map {
                    let mut pair = keys.build_hasher();
                    pair.write(name.as_bytes());
                    pair.write_u64(self.deeper(|own| own.hash(member, keys))?);
                    sum = sum.wrapping_add(pair.finish());
                }
                hasher.write_u64(sum);
            }
        }
        self.spend(2)?;
        Ok(hasher.finish())
    }
}
