//! Facilities, severities, and the number they combine to: PRI.
//!
//! Names and aliases are those of syslog.conf(5) and RFC 5424, section 6.2.1. An unknown name is
//! rejected with a list of the known ones: a guess would file the message where nobody looks.

use std::fmt;
use std::str::FromStr;

/// A facility or severity; its number is its index in the table.
#[derive(Debug)]
pub struct Word {
    /// The name to display.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// What it means.
    pub about: &'static str,
}

const fn word(name: &'static str, aliases: &'static [&'static str], about: &'static str) -> Word {
    Word { name, aliases, about }
}

/// The facilities by number: the parts of a system that log.
pub const FACILITIES: [Word; 24] = [
    word("kern", &["kernel"], "kernel messages"),
    word("user", &[], "user-level messages"),
    word("mail", &[], "mail system"),
    word("daemon", &["system"], "system daemons"),
    word("auth", &["security"], "security and authorization"),
    word("syslog", &[], "the syslog daemon itself"),
    word("lpr", &[], "printing"),
    word("news", &[], "network news"),
    word("uucp", &[], "UUCP"),
    word("cron", &[], "clock daemon"),
    word("authpriv", &[], "security and authorization, private"),
    word("ftp", &[], "FTP daemon"),
    word("ntp", &[], "NTP subsystem"),
    word("audit", &["logaudit"], "log audit"),
    word("alert", &["console", "logalert"], "log alert"),
    word("clock", &["solaris-cron"], "second clock daemon"),
    word("local0", &[], "local use 0"),
    word("local1", &[], "local use 1"),
    word("local2", &[], "local use 2"),
    word("local3", &[], "local use 3"),
    word("local4", &[], "local use 4"),
    word("local5", &[], "local use 5"),
    word("local6", &[], "local use 6"),
    word("local7", &[], "local use 7"),
];

/// The severities by number, most severe first.
pub const SEVERITIES: [Word; 8] = [
    word("emerg", &["panic", "emergency"], "the system is unusable"),
    word("alert", &[], "action must be taken immediately"),
    word("crit", &["critical"], "critical conditions"),
    word("error", &["err"], "error conditions"),
    word("warning", &["warn"], "warning conditions"),
    word("notice", &[], "normal but significant"),
    word("info", &["information", "informational"], "informational"),
    word("debug", &[], "debugging"),
];

/// The part of a system that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facility(u8);

/// The severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Severity(u8);

/// A facility and a severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// The part of a system that logs.
    pub facility: Facility,
    /// The severity.
    pub severity: Severity,
}

/// An unknown facility or severity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} {word:?}; expected {}, or a number from 0 to {}", list(.table), .table.len() - 1)]
pub struct UnknownWord {
    kind: &'static str,
    word: String,
    table: &'static [Word],
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Word {}

impl Facility {
    /// The default.
    pub const USER: Self = Self(1);

    /// Its number, 0 to 23.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        FACILITIES[usize::from(self.0)].name
    }
}

impl Severity {
    /// The default: nothing is wrong.
    pub const INFO: Self = Self(6);

    /// Its number, 0 to 7; 0 is the most severe.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        SEVERITIES[usize::from(self.0)].name
    }
}

impl Priority {
    /// The number at the beginning of a message, 0 to 191.
    pub fn pri(self) -> u8 {
        self.facility.0 * 8 + self.severity.0
    }

    /// The priority with this number, if there is one.
    pub fn from_pri(pri: u8) -> Option<Self> {
        let priority = Self { facility: Facility(pri / 8), severity: Severity(pri % 8) };
        (usize::from(priority.facility.0) < FACILITIES.len()).then_some(priority)
    }
}

impl FromStr for Facility {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        find("facility", &FACILITIES, text).map(Self)
    }
}

impl FromStr for Severity {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        find("severity", &SEVERITIES, text).map(Self)
    }
}

/// `facility.severity` or a severity alone, as in logger(1).
impl FromStr for Priority {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Ok(match text.split_once('.') {
            Some((facility, severity)) => {
                Self { facility: facility.parse()?, severity: severity.parse()? }
            }
            None => Self { facility: Facility::USER, severity: text.parse()? },
        })
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.facility.name(), self.severity.name())
    }
}

fn find(kind: &'static str, table: &'static [Word], text: &str) -> Result<u8, UnknownWord> {
    let wanted = text.trim();
    let is_it = |word: &Word| {
        word.name.eq_ignore_ascii_case(wanted)
            || word.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(wanted))
    };
    let named = table.iter().position(is_it);
    let number = || wanted.parse().ok().filter(|number| *number < table.len());
    named.or_else(number).and_then(|number| u8::try_from(number).ok()).ok_or_else(|| UnknownWord {
        kind,
        word: text.to_owned(),
        table,
    })
}

fn list(table: &[Word]) -> String {
    let shown = table.iter().map(|word| match word.aliases {
        [] => word.name.to_owned(),
        aliases => format!("{} ({})", word.name, aliases.join(", ")),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_aliases_and_numbers_are_accepted() {
        fn check(text: &str, pri: u8) {
            assert_eq!(text.parse::<Priority>().unwrap().pri(), pri, "{text}");
        }
        check("local0.error", 131);
        check("local0.err", 131);
        check("LOCAL7.Debug", 191);
        check("kern.emerg", 0);
        check("kern.panic", 0);
        check("16.3", 131);
        check("security.warn", 36);
        check("console.crit", 114);
        check("solaris-cron.information", 126);
        check("notice", 13);
        check(" daemon . 2 ", 26);
    }

    #[test]
    fn unknown_names_are_rejected_with_the_known_ones() {
        let error = "loud".parse::<Severity>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown severity \"loud\"; expected emerg (panic, emergency), alert, \
             crit (critical), error (err), warning (warn), notice, info (information, \
             informational), debug, or a number from 0 to 7"
        );
        for wrong in ["", "24", "-1", "local8", "256", "1.5", "９"] {
            let error = wrong.parse::<Facility>().unwrap_err().to_string();
            assert!(error.contains("local7, or a number from 0 to 23"), "{error}");
        }
    }

    #[test]
    fn every_number_round_trips_through_its_name() {
        for pri in 0..=191 {
            let priority = Priority::from_pri(pri).unwrap();
            assert_eq!(priority.to_string().parse::<Priority>().unwrap().pri(), pri);
        }
        assert_eq!(Priority::from_pri(192), None);
    }
}
