//! The header of a message, in both formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::priority::Priority;
use crate::structured_data::{self, StructuredData, StructuredDataError};
use crate::timestamp::Timestamp;

/// The message format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `<PRI>Mmm dd hh:mm:ss HOST TAG[PID]: TEXT`, the old BSD format that every receiver accepts.
    #[default]
    Rfc3164,
    /// `<PRI>1 TIME HOST APP PROCID MSGID [STRUCTURED DATA] TEXT`.
    Rfc5424,
}

/// The header fields of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// The format.
    pub format: Format,
    /// Facility and severity.
    pub priority: Priority,
    /// The time. Optional in RFC 5424.
    pub timestamp: Option<Timestamp>,
    /// The machine. If absent, RFC 5424 writes `-`, and RFC 3164 nothing, as local sockets expect.
    pub hostname: Option<String>,
    /// The program.
    pub tag: String,
    /// The process.
    pub procid: Option<String>,
    /// The message type. RFC 5424 only.
    pub msgid: Option<String>,
    /// RFC 5424 only.
    pub structured_data: StructuredData,
    /// Who called: at most one element. RFC 3164 writes it between the tag and the text.
    pub caller: StructuredData,
}

/// Why a field is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Its value is invalid.
    #[error("{field} {value:?} must be 1 to {max} printable ASCII characters without {without}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// The maximum length.
        max: usize,
        /// The characters it must not contain.
        without: &'static str,
    },
    /// The format does not have this field.
    #[error("format rfc3164 has no {0} field; use format rfc5424, or leave it out")]
    NoField(&'static str),
    /// The format requires a timestamp.
    #[error("format rfc3164 requires a timestamp; use format rfc5424 to send none")]
    NoTimestamp,
    /// The structured data is invalid.
    #[error(transparent)]
    StructuredData(#[from] StructuredDataError),
}

/// What a field may contain.
struct Rule {
    field: &'static str,
    max: usize,
    /// The characters that end the field.
    ends: &'static [u8],
    without: &'static str,
}

const fn rule(field: &'static str, max: usize) -> Rule {
    Rule { field, max, ends: b"", without: "spaces" }
}

/// RFC 5424, section 6.
const HOSTNAME: Rule = rule("hostname", 255);
const APP_NAME: Rule = rule("tag", 48);
const PROCID: Rule = rule("procid", 128);
const MSGID: Rule = rule("msgid", 32);
/// RFC 3164, section 4.1.3, plus the `-`, `.`, `_` and `/` of real program names, which receivers
/// accept.
const TAG: Rule = Rule { ends: b":[]", without: "spaces, ':', '[' and ']'", ..rule("tag", 32) };
const OLD_PROCID: Rule = Rule { ends: b"]", without: "spaces and ']'", ..rule("procid", 128) };

impl Rule {
    fn check<'a>(&self, value: &'a str) -> Result<&'a str, FieldError> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !self.ends.contains(&byte);
        if (1..=self.max).contains(&value.len()) && value.bytes().all(is_plain) {
            return Ok(value);
        }
        let Self { field, max, without, .. } = *self;
        Err(FieldError::Invalid { field, value: value.to_owned(), max, without })
    }

    fn check_or_nil<'a>(&self, value: Option<&'a str>) -> Result<&'a str, FieldError> {
        value.map_or(Ok("-"), |value| self.check(value))
    }
}

impl Fields {
    /// The header, up to the start of the text.
    ///
    /// ASCII, except for the values of structured data.
    ///
    /// # Errors
    /// If a field is invalid in this format.
    pub fn header(&self) -> Result<String, FieldError> {
        match self.format {
            Format::Rfc3164 => self.rfc3164(),
            Format::Rfc5424 => self.rfc5424(),
        }
    }

    fn rfc3164(&self) -> Result<String, FieldError> {
        if self.msgid.is_some() {
            return Err(FieldError::NoField("msgid"));
        }
        if !self.structured_data.is_empty() {
            return Err(FieldError::NoField("structured_data"));
        }
        let time = self.timestamp.ok_or(FieldError::NoTimestamp)?.to_rfc3164();
        let mut header = format!("<{}>{time} ", self.priority.pri());
        if let Some(hostname) = &self.hostname {
            header += HOSTNAME.check(hostname)?;
            header.push(' ');
        }
        header += TAG.check(&self.tag)?;
        if let Some(procid) = &self.procid {
            header += &format!("[{}]", OLD_PROCID.check(procid)?);
        }
        header += ": ";
        if !self.caller.is_empty() {
            // In plain ASCII: the text has an encoding of its own.
            for character in structured_data::encode(&self.caller)?.chars() {
                match character {
                    ' '..='~' => header.push(character),
                    other => header += &format!("<U+{:04X}>", u32::from(other)),
                }
            }
            header.push(' ');
        }
        Ok(header)
    }

    fn rfc5424(&self) -> Result<String, FieldError> {
        let pri = self.priority.pri();
        let time = self.timestamp.map_or_else(|| "-".to_owned(), Timestamp::to_rfc5424);
        let host = HOSTNAME.check_or_nil(self.hostname.as_deref())?;
        let app = APP_NAME.check(&self.tag)?;
        let procid = PROCID.check_or_nil(self.procid.as_deref())?;
        let msgid = MSGID.check_or_nil(self.msgid.as_deref())?;
        let mut data = self.structured_data.clone();
        data.extend(self.caller.clone());
        let data = structured_data::encode(&data)?;
        Ok(format!("<{pri}>1 {time} {host} {app} {procid} {msgid} {data} "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(format: Format) -> Fields {
        Fields {
            format,
            priority: "local0.error".parse().unwrap(),
            timestamp: Some("2026-11-05T09:30:00.25+09:00".parse().unwrap()),
            hostname: Some("web1".to_owned()),
            tag: "deploy".to_owned(),
            procid: Some("42".to_owned()),
            msgid: None,
            structured_data: StructuredData::new(),
            caller: StructuredData::new(),
        }
    }

    #[test]
    fn headers_follow_the_rfcs() {
        fn check(fields: &Fields, header: &str) {
            assert_eq!(fields.header().unwrap(), header);
        }
        let old = fields(Format::Rfc3164);
        check(&old, "<131>Nov  5 09:30:00 web1 deploy[42]: ");
        check(&Fields { procid: None, ..old.clone() }, "<131>Nov  5 09:30:00 web1 deploy: ");
        check(&Fields { hostname: None, ..old }, "<131>Nov  5 09:30:00 deploy[42]: ");
        let new = fields(Format::Rfc5424);
        check(&new, "<131>1 2026-11-05T09:30:00.250000+09:00 web1 deploy 42 - - ");
        let nil = Fields { timestamp: None, hostname: None, procid: None, ..new };
        check(&nil, "<131>1 - - deploy - - - ");
        let parameters = [("k".to_owned(), "v".to_owned())].into();
        let structured_data = [("x@1".to_owned(), parameters)].into();
        let full = Fields { msgid: Some("ID47".to_owned()), structured_data, ..nil };
        check(&full, "<131>1 - - deploy - ID47 [x@1 k=\"v\"] ");
        let who = || [("principal".to_owned(), "Zoë \"]".to_owned())].into();
        let caller = StructuredData::from([("who@1".to_owned(), who())]);
        let full = Fields { caller: caller.clone(), ..full };
        check(&full, "<131>1 - - deploy - ID47 [who@1 principal=\"Zoë \\\"\\]\"][x@1 k=\"v\"] ");
        let old = Fields { caller, ..fields(Format::Rfc3164) };
        let element = "[who@1 principal=\"Zo<U+00EB> \\\"\\]\"] ";
        check(&old, &format!("<131>Nov  5 09:30:00 web1 deploy[42]: {element}"));
    }

    #[test]
    fn invalid_fields_are_rejected() {
        fn check(fields: &Fields, part: &str) {
            let error = fields.header().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let (old, new) = (fields(Format::Rfc3164), fields(Format::Rfc5424));
        for tag in ["", "a b", "a:b", "a[1]", "日本", "a\n", &"a".repeat(33)] {
            check(&Fields { tag: tag.to_owned(), ..old.clone() }, "tag");
        }
        check(&Fields { tag: "a".repeat(49), ..new.clone() }, "1 to 48");
        check(&Fields { hostname: Some("a b".to_owned()), ..new.clone() }, "hostname \"a b\"");
        check(&Fields { procid: Some("1] x".to_owned()), ..old.clone() }, "procid");
        check(&Fields { msgid: Some("m".repeat(33)), ..new }, "1 to 32");
        check(&Fields { msgid: Some("m".to_owned()), ..old.clone() }, "no msgid field");
        check(&Fields { timestamp: None, ..old }, "requires a timestamp");
    }
}
