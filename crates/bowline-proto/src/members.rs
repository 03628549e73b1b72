//! Objects whose keys are data: in their original order, each key once.
//!
//! The order matters to people (the fields of a form are shown in it). A duplicate key is rejected,
//! because two readers could see two different objects.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use crate::raw::Raw;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::Text;

/// An object from keys to values of one type, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Members<T>(Vec<(String, T)>);

impl<T> Members<T> {
    /// An empty object.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a member at the end, or replaces the value of an existing one.
    pub fn insert(&mut self, key: impl Into<String>, value: T) {
        let key = key.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((key, value)),
        }
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Removes a member, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<T> {
        let at = self.0.iter().position(|(other, _)| other == key)?;
        Some(self.0.remove(at).1)
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// All values, in order, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Into<String>, T> FromIterator<(K, T)> for Members<T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(items: I) -> Self {
        let mut members = Self::new();
        for (key, value) in items {
            members.insert(key, value);
        }
        members
    }
}

impl<T> IntoIterator for Members<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Serialize> Serialize for Members<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = deserializer.deserialize_map(Pairs::<String, T>(PhantomData))?;
        Ok(Self(members))
    }
}

/// An object from keys to JSON that is not parsed yet, borrowed from the frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawMembers<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> RawMembers<'a> {
    /// Adds a member at the end.
    pub fn push(&mut self, key: impl Into<Cow<'a, str>>, value: Raw<'a>) {
        self.0.push((key.into(), value));
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for RawMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = deserializer.deserialize_map(Pairs::<Text<'de>, Raw<'de>>(PhantomData))?;
        Ok(Self(pairs.into_iter().map(|(Text(key), value)| (key, value)).collect()))
    }
}

struct Pairs<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for Pairs<K, V>
where
    K: Deserialize<'de> + AsRef<str>,
    V: Deserialize<'de>,
{
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs: Vec<(K, V)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<K>()? {
            if is_duplicate(&pairs, &mut seen, key.as_ref()) {
                return Err(de::Error::custom(format!("duplicate member `{}`", key.as_ref())));
            }
            pairs.push((key, map.next_value()?));
        }
        Ok(pairs)
    }
}

/// Objects usually have few members, which are compared one by one without copies; a long list gets
/// a set, so that no peer can make it slow.
fn is_duplicate<K: AsRef<str>, V>(pairs: &[(K, V)], seen: &mut HashSet<String>, key: &str) -> bool {
    const FEW: usize = 16;
    if pairs.len() < FEW {
        return pairs.iter().any(|(other, _)| other.as_ref() == key);
    }
    if seen.is_empty() {
        seen.extend(pairs.iter().map(|(other, _)| other.as_ref().to_owned()));
    }
    !seen.insert(key.to_owned())
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_and_duplicates_are_rejected() {
        let text = r#"{"z":1,"a":2,"m":3}"#;
        let members: Members<u8> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&members).unwrap(), text);
        let error = serde_json::from_str::<Members<u8>>(r#"{"a":1,"a":2}"#).unwrap_err();
        assert!(error.to_string().contains("duplicate member `a`"));
    }

    #[test]
    fn duplicates_are_rejected_in_a_long_list() {
        for (first, again) in [(0, 15), (0, 16), (0, 40), (16, 17), (39, 40)] {
            let key = |n: usize| if n == again { first } else { n };
            let members: Vec<_> = (0..=40).map(|n| format!(r#""{}":0"#, key(n))).collect();
            let text = format!("{{{}}}", members.join(","));
            let error = serde_json::from_str::<Members<u8>>(&text).unwrap_err();
            assert!(error.to_string().contains(&format!("duplicate member `{first}`")), "{text}");
        }
    }

    #[test]
    fn raw_members_borrow() {
        let text = r#"{"a":{"deep":[1, 2]},"b":null}"#;
        let members: RawMembers<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(members.get("a").unwrap().get(), r#"{"deep":[1, 2]}"#);
        assert_eq!(members.get("c").map(Raw::get), None);
        assert_eq!(serde_json::to_string(&members).unwrap(), text);
    }
}
