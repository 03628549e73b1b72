//! A check: a command line and the expected outcome.
//!
//! A block of lines, separated by empty lines:
//!
//! - a name, then conditions: `only` or `not` with a server, transport or era;
//! - `$` the command, without a target; words are separated by spaces and quoted with `'`;
//! - `<` a line of standard input;
//! - `&` another command, started when the first reports that it is listening;
//! - `=` the exit code, if it is not 0;
//! - `>` text in standard output, `!` text in standard error;
//! - `/…` a JSON pointer and the value there; standard output must be one line of JSON.
//!
//! Lines that begin with `#` are comments.

use serde_json::Value;

use crate::run::Ran;

/// A command and its expected outcome.
#[derive(Debug, Default)]
pub(crate) struct Check {
    pub(crate) name: String,
    only: Vec<String>,
    not: Vec<String>,
    pub(crate) command: Vec<String>,
    /// Its standard input.
    pub(crate) stdin: String,
    /// A command to run in the meantime.
    pub(crate) meanwhile: Option<Vec<String>>,
    code: i32,
    stdout: Vec<String>,
    stderr: Vec<String>,
    values: Vec<(String, Value)>,
}

/// Parses a file of checks.
pub(crate) fn parse(text: &str) -> Result<Vec<Check>, String> {
    let mut checks: Vec<Check> = Vec::new();
    let mut is_within = false;
    for (index, line) in text.lines().enumerate() {
        let at_line = |why: &str| format!("line {}: {why}", index + 1);
        match line.chars().next() {
            Some('#') => {}
            None => is_within = false,
            Some(_) if !is_within => {
                checks.push(
                    Check::named(line)
                        .ok_or_else(|| at_line("expected only or not, and a word"))?,
                );
                is_within = true;
            }
            Some(_) => {
                let check = checks.last_mut().expect("its name was before");
                check.take(line).map_err(|why| at_line(&why))?;
            }
        }
    }
    match checks.iter().find(|check| check.command.is_empty()) {
        Some(check) => Err(format!("{}: no command", check.name)),
        None if checks.is_empty() => Err("no checks".to_owned()),
        None => Ok(checks),
    }
}

impl Check {
    fn named(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut check = Self { name: words.next()?.to_owned(), ..Self::default() };
        while let Some(word) = words.next() {
            let conditions = match word {
                "only" => &mut check.only,
                "not" => &mut check.not,
                _ => return None,
            };
            conditions.push(words.next()?.to_owned());
        }
        Some(check)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('/') {
            let (pointer, value) = line.split_once(' ').ok_or("a pointer without a value")?;
            let value = serde_json::from_str(value).map_err(|error| error.to_string())?;
            self.values.push((pointer.to_owned(), value));
            return Ok(());
        }
        let (kind, rest) = line.split_once(' ').ok_or("expected a value")?;
        match kind {
            "$" => self.command = words(rest),
            "&" => self.meanwhile = Some(words(rest)),
            "<" => self.stdin += &format!("{rest}\n"),
            "=" => self.code = rest.parse().map_err(|_| "not an exit code")?,
            ">" => self.stdout.push(rest.to_owned()),
            "!" => self.stderr.push(rest.to_owned()),
            _ => return Err(format!("unknown kind of line {kind:?}")),
        }
        Ok(())
    }

    /// Whether the check applies to this server, transport and era.
    pub(crate) fn is_for(&self, traits: &[&str]) -> bool {
        let has = |word: &String| traits.contains(&word.as_str());
        self.only.iter().all(has) && !self.not.iter().any(has)
    }

    /// Compares the outcome with the expected one.
    pub(crate) fn judge(&self, ran: &Ran) -> Result<(), String> {
        if ran.code != Some(self.code) {
            return Err(format!("exit code {:?}, expected {}", ran.code, self.code));
        }
        for (what, said, wanted) in
            [("output", &ran.stdout, &self.stdout), ("error", &ran.stderr, &self.stderr)]
        {
            if let Some(missing) = wanted.iter().find(|it| !said.contains(it.as_str())) {
                return Err(format!("standard {what} does not contain {missing:?}"));
            }
        }
        if self.values.is_empty() {
            return Ok(());
        }
        if ran.stdout.lines().count() != 1 {
            return Err("standard output is not one line".to_owned());
        }
        let json: Value = serde_json::from_str(&ran.stdout).map_err(|error| error.to_string())?;
        for (pointer, wanted) in &self.values {
            let found = json.pointer(pointer);
            if found != Some(wanted) {
                return Err(format!("{pointer} is {found:?}, expected {wanted}"));
            }
        }
        Ok(())
    }
}

/// Splits a line into words like a shell, but with `'` as the only quote.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            word.get_or_insert_default().push_str(part);
            continue;
        }
        let mut pieces = part.split(' ');
        if let Some(first) = pieces.next().filter(|it| !it.is_empty()) {
            word.get_or_insert_default().push_str(first);
        }
        for piece in pieces {
            words.extend(word.take());
            word = Some(piece.to_owned()).filter(|it| !it.is_empty());
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, stdout: &str) -> Ran {
        Ran { code: Some(code), stdout: stdout.to_owned(), ..Ran::default() }
    }

    #[test]
    fn words_are_separated_by_spaces_and_quoted() {
        let split = words("call x  --json '{\"a b\": 1}' name='two words' ''");
        assert_eq!(split, ["call", "x", "--json", "{\"a b\": 1}", "name=two words", ""]);
    }

    #[test]
    fn a_check_compares_everything_it_lists() {
        let text = "# A remark.\nsum only http not fastmcp\n$ call sum\n= 5\n> 3\n/a/b 3\n";
        let checks = parse(text).expect("it is right");
        let [check] = &checks[..] else { panic!("{checks:?}") };
        assert!(check.is_for(&["rmcp", "http"]));
        assert!(!check.is_for(&["rmcp", "stdio"]) && !check.is_for(&["fastmcp", "http"]));
        assert_eq!(check.judge(&ran(5, "{\"a\":{\"b\":3}}\n")), Ok(()));
        for (code, stdout) in [
            (0, "{\"a\":{\"b\":3}}\n"),
            (5, "{\"a\":{\"b\":4},\"c\":3}\n"),
            (5, "{\"a\":{\"b\":3}}\nmore\n"),
            (5, "{\"a\":{\"b\":33\n"),
            (5, "{}\n"),
        ] {
            assert!(check.judge(&ran(code, stdout)).is_err(), "{code} {stdout}");
        }
    }

    #[test]
    fn invalid_checks_are_rejected() {
        for text in
            ["", "a\n", "a maybe x\n$ b\n", "a\n$ b\n~ c\n", "a\n$ b\n/c {\n", "a\n$ b\n= x\n"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
