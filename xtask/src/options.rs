//! What may follow a command's name.

/// A target's name, in the menu's words.
pub(crate) const TARGET: &str = "[target]";
/// How long to fuzz a target. By default so short that all of them take a minute on two cores.
pub(crate) const SECONDS: &str = "[--seconds N]";
/// Also ask the advisory database.
pub(crate) const ADVISORIES: &str = "[--advisories]";
/// What to measure.
pub(crate) const PART: &str = "[part]";
/// Rough figures, quickly.
pub(crate) const QUICK: &str = "[--quick]";

/// At full size.
pub(crate) const FULL: &str = "[--full]";

/// The options of a command, or their defaults.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) target: Option<String>,
    pub(crate) seconds: u32,
    pub(crate) advisories: bool,
    pub(crate) quick: bool,
    pub(crate) full: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { target: None, seconds: 6, advisories: false, quick: false, full: false }
    }
}

impl Options {
    /// Reads arguments of which only those in `takes` are allowed.
    pub(crate) fn parse(
        takes: &[&str],
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let refused = || Err(format!("`{argument}` is not an option of this command"));
            let meant = match argument.as_str() {
                "--seconds" => SECONDS,
                "--advisories" => ADVISORIES,
                "--quick" => QUICK,
                "--full" => FULL,
                flag if flag.starts_with('-') => return refused(),
                _ if takes.contains(&PART) => PART,
                _ => TARGET,
            };
            let is_name = [TARGET, PART].contains(&meant);
            if !takes.contains(&meant) || (is_name && options.target.is_some()) {
                return refused();
            }
            match meant {
                SECONDS => options.seconds = seconds(arguments.next())?,
                ADVISORIES => options.advisories = true,
                QUICK => options.quick = true,
                FULL => options.full = true,
                _ => options.target = Some(argument),
            }
        }
        Ok(options)
    }
}

fn seconds(value: Option<String>) -> Result<u32, String> {
    // libFuzzer takes zero seconds for no limit at all.
    value
        .and_then(|value| value.parse().ok())
        .filter(|&seconds| seconds > 0)
        .ok_or_else(|| "--seconds takes a whole number above zero".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(takes: &[&str], line: &str) -> Result<Options, String> {
        Options::parse(takes, line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_allowed_is_taken() {
        let found = parse(&[TARGET, SECONDS], "wire --seconds 3").unwrap();
        assert_eq!((found.target.as_deref(), found.seconds), (Some("wire"), 3));
        assert!(parse(&[ADVISORIES], "--advisories").unwrap().advisories);
        let found = parse(&[PART, QUICK], "--quick scaling").unwrap();
        assert_eq!((found.target.as_deref(), found.quick), (Some("scaling"), true));
        assert_eq!(parse(&[], ""), Ok(Options::default()));
    }

    #[test]
    fn the_rest_is_refused() {
        for line in ["wire", "--seconds 3", "--quick", "--loud"] {
            assert!(parse(&[], line).is_err(), "{line}");
        }
        for line in ["--seconds", "--seconds 0", "--seconds x", "a b"] {
            assert!(parse(&[TARGET, SECONDS], line).is_err(), "{line}");
        }
    }
}
