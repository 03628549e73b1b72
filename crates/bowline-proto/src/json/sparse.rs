//! An object that is usually empty.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Extra;

/// An object that is usually empty, such as the members that the specification does not define.
///
/// It is used like the [`Extra`] that it holds. While it is empty it is a null pointer: cheap to
/// create, to move and to drop, unlike a map.
#[derive(Clone, Default)]
pub struct Sparse(Option<Box<Extra>>);

static EMPTY: LazyLock<Extra> = LazyLock::new(Extra::new);

impl Sparse {
    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|members| members.is_empty())
    }

    /// The members, as a map.
    pub fn into_inner(self) -> Extra {
        self.0.map(|members| *members).unwrap_or_default()
    }
}

impl Deref for Sparse {
    type Target = Extra;

    fn deref(&self) -> &Extra {
        self.0.as_deref().unwrap_or_else(|| &EMPTY)
    }
}

impl DerefMut for Sparse {
    fn deref_mut(&mut self) -> &mut Extra {
        self.0.get_or_insert_default()
    }
}

impl From<Extra> for Sparse {
    fn from(members: Extra) -> Self {
        Self((!members.is_empty()).then(|| Box::new(members)))
    }
}

impl FromIterator<(String, Value)> for Sparse {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self::from(Extra::from_iter(members))
    }
}

impl PartialEq for Sparse {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl PartialEq<Extra> for Sparse {
    fn eq(&self, other: &Extra) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Sparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Sparse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sparse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Extra::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_used_like_a_map() {
        let mut members = Sparse::default();
        assert!(members.is_empty() && members.get("a").is_none());
        assert_eq!(members, Sparse::from(Extra::new()));
        members.insert("a".to_owned(), json!(1));
        assert_eq!(members["a"], 1);
        assert_eq!(serde_json::to_string(&members).unwrap(), r#"{"a":1}"#);
        assert_eq!(serde_json::from_str::<Sparse>(r#"{"a":1}"#).unwrap(), members);
        members.remove("a");
        assert!(members.is_empty());
        assert_eq!(members, Sparse::default());
        assert_eq!(format!("{members:?}"), format!("{:?}", members.clone().into_inner()));
    }
}
