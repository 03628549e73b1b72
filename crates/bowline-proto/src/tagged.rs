//! Objects whose kind is given by one of their own members, such as `type` or `mode`.
//!
//! Serde's derived implementation buffers the whole object first. This one reads on directly if the
//! tag comes first, as nearly every encoder writes it. Otherwise it keeps what came before the tag
//! as text: a tree would lose the order of members and the notation of numbers.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::decode::without_position;
use crate::wire::Text;

/// A union that is discriminated by a member.
pub(crate) trait Tagged: Sized {
    /// The name of that member.
    const TAG: &'static str;
    /// What the union is, for messages.
    const WHAT: &'static str;

    /// Reads the members other than the tag. `kind` is `None` if the tag is absent.
    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error>;
}

/// The members of the object, without its tag.
pub(crate) type Rest<'de, A> = MapAccessDeserializer<Untagged<'de, A>>;

/// Reads a union; the body of its `Deserialize`.
pub(crate) fn read_tagged<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Tagged,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

/// The error for a kind that is not one of `known`.
pub(crate) fn unknown_kind<E: de::Error>(tag: &str, kind: Option<&str>, known: &str) -> E {
    match kind {
        Some(kind) => E::custom(format!("{tag} is {kind:?}, expected {known}")),
        None => E::custom(format!("{tag} is missing, expected {known}")),
    }
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut before = Vec::new();
        let mut kind = None;
        while let Some(Text(key)) = map.next_key()? {
            if key == T::TAG {
                kind = Some(map.next_value::<Text<'_>>()?.0);
                break;
            }
            before.push((key, map.next_value::<Box<RawValue>>()?));
        }
        let rest = Untagged { before: before.into_iter(), value: None, map, tag: T::TAG };
        T::read(kind.as_deref(), MapAccessDeserializer::new(rest))
    }
}

/// What came before the tag, then what comes after it.
pub(crate) struct Untagged<'de, A> {
    before: std::vec::IntoIter<(Cow<'de, str>, Box<RawValue>)>,
    value: Option<Box<RawValue>>,
    map: A,
    tag: &'static str,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Untagged<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error>
    where
        K: DeserializeSeed<'de>,
    {
        if let Some((key, value)) = self.before.next() {
            self.value = Some(value);
            return seed.deserialize(key.into_deserializer()).map(Some);
        }
        let seed = NotTheTag { seed, tag: self.tag };
        self.map.next_key_seed(seed)
    }

    fn next_value_seed<V>(&mut self, seed: V) -> Result<V::Value, A::Error>
    where
        V: DeserializeSeed<'de>,
    {
        let Some(value) = self.value.take() else {
            return self.map.next_value_seed(seed);
        };
        // Read as a stream, because nothing can be borrowed from text that is dropped here.
        let mut reader = serde_json::Deserializer::from_reader(value.get().as_bytes());
        seed.deserialize(&mut reader)
            .map_err(|error| de::Error::custom(without_position(&error.to_string())))
    }
}

/// Rejects a second tag.
struct NotTheTag<K> {
    seed: K,
    tag: &'static str,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for NotTheTag<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let key = Text::deserialize(deserializer)?;
        if key.0 == self.tag {
            return Err(de::Error::duplicate_field(self.tag));
        }
        match key.0 {
            Cow::Borrowed(key) => {
                self.seed.deserialize(de::value::BorrowedStrDeserializer::new(key))
            }
            Cow::Owned(key) => self.seed.deserialize(StrDeserializer::new(&key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::decode;
    use crate::model::{ElicitParams, SamplingContent};

    fn written<T: serde::de::DeserializeOwned + serde::Serialize>(text: &str) -> String {
        serde_json::to_string(&decode::<T>("x", "params", text).unwrap()).unwrap()
    }

    #[test]
    fn fields_of_a_form_keep_their_order_without_a_mode() {
        let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"second":{"type":"string"},"first":{"type":"boolean"}}}}"#;
        assert_eq!(written::<ElicitParams>(form), form);
    }

    #[test]
    fn members_before_the_tag_are_kept_verbatim() {
        let late = r#"{"id":"1","name":"n","input":{"b":1.50,"a":123456789012345678901234567890},"type":"tool_use"}"#;
        let first = r#"{"type":"tool_use","id":"1","name":"n","input":{"b":1.50,"a":123456789012345678901234567890}}"#;
        assert_eq!(written::<SamplingContent>(late), first);
        assert_eq!(written::<SamplingContent>(first), first);
    }

    #[test]
    fn an_error_before_the_tag_has_one_position() {
        let error = decode::<SamplingContent>("x", "params", r#"{"text":7,"type":"text"}"#);
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("is 7, not a string"), "{error}");
    }
}
