//! Deserializes values that arrive as text: prompt arguments and variables of URIs.
//!
//! The protocol only has strings there. A handler may still expect a number, a boolean, an
//! enumeration or an option; the text is parsed as that type.

use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};

/// Deserializes named texts into a struct. `known` lists the names of its fields, if it is an error
/// to send others.
///
/// # Errors
/// When a text is missing, unknown, or does not fit its type; the error names it.
pub(crate) fn read<T: DeserializeOwned>(
    texts: Vec<(String, String)>,
    known: Option<&str>,
) -> Result<T, String> {
    let texts = texts.into_iter().map(|(name, text)| (name.clone(), Text { name, text, known }));
    T::deserialize(MapDeserializer::new(texts)).map_err(|error: Problem| error.0)
}

#[derive(Debug)]
struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("{field} is missing"))
    }
}

struct Text<'k> {
    name: String,
    text: String,
    known: Option<&'k str>,
}

impl Text<'_> {
    fn parse<T: std::str::FromStr>(&self, what: &str) -> Result<T, Problem> {
        let wrong = |_| Problem(format!("{} is {:?}, not {what}", self.name, self.text));
        self.text.trim().parse().map_err(wrong)
    }
}

impl IntoDeserializer<'_, Problem> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Numbers and booleans, parsed on demand.
macro_rules! parsed {
    ($($method:ident $visit:ident $what:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            let value = self.parse($what)?;
            visitor.$visit(value)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Text<'_> {
    type Error = Problem;

    parsed! {
        deserialize_bool visit_bool "true or false"
        deserialize_i8 visit_i8 "an integer that fits"
        deserialize_i16 visit_i16 "an integer that fits"
        deserialize_i32 visit_i32 "an integer that fits"
        deserialize_i64 visit_i64 "an integer that fits"
        deserialize_u8 visit_u8 "a positive integer that fits"
        deserialize_u16 visit_u16 "a positive integer that fits"
        deserialize_u32 visit_u32 "a positive integer that fits"
        deserialize_u64 visit_u64 "a positive integer that fits"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_string(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if !words.contains(&self.text.as_str()) {
            let known = words.join(", ");
            let message = format!("{} is {:?}; expected one of {known}", self.name, self.text);
            return Err(Problem(message));
        }
        visitor.visit_enum(self.text.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.known {
            None => visitor.visit_unit(),
            Some("") => Err(Problem(format!("{} is unknown; there are no arguments", self.name))),
            Some(known) => {
                Err(Problem(format!("{} is unknown; the known names are {known}", self.name)))
            }
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
        Blue,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wanted {
        name: String,
        #[serde(default)]
        count: Option<u8>,
        #[serde(default)]
        color: Option<Color>,
    }

    fn check(texts: &[(&str, &str)]) -> Result<Wanted, String> {
        check_known(texts, Some("name, count, color"))
    }

    fn check_known(texts: &[(&str, &str)], known: Option<&str>) -> Result<Wanted, String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        read(texts.iter().map(own).collect(), known)
    }

    #[test]
    fn text_becomes_what_is_asked_for() {
        let wanted = check(&[("name", "7"), ("count", "7"), ("color", "blue")]);
        let expected = Wanted { name: "7".to_owned(), count: Some(7), color: Some(Color::Blue) };
        assert_eq!(wanted, Ok(expected));
    }

    #[test]
    fn errors_name_the_argument() {
        assert_eq!(check(&[]).unwrap_err(), "name is missing");
        let error = check(&[("name", ""), ("count", "many")]).unwrap_err();
        assert_eq!(error, r#"count is "many", not a positive integer that fits"#);
        let error = check(&[("name", ""), ("color", "pink")]).unwrap_err();
        assert_eq!(error, r#"color is "pink"; expected one of red, blue"#);
        let error = check(&[("name", ""), ("size", "1")]).unwrap_err();
        assert_eq!(error, "size is unknown; the known names are name, count, color");
        assert!(check_known(&[("name", ""), ("size", "1")], None).is_ok());
    }
}
