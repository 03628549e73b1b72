//! A check: a command line, and what must come of it.
//!
//! A block of lines, between empty ones:
//!
//! - a name, and conditions behind it: `only` or `not`, and words of the server, transport or era;
//! - `$` the command, without a target; words are parted by blanks, `'` holds them together;
//! - `<` a line of standard input;
//! - `&` another command, started when the first says that it listens;
//! - `=` the exit code, unless it is 0;
//! - `>` what standard output has, `!` what standard error has;
//! - `/…` a pointer into standard output, which is one line of JSON, and the value there.
//!
//! Lines that begin with `#` say something to the reader.

use serde_json::Value;

use crate::run::Ran;

/// A command and what must come of it.
#[derive(Debug, Default)]
pub(crate) struct Check {
    pub(crate) name: String,
    only: Vec<String>,
    not: Vec<String>,
    pub(crate) command: Vec<String>,
    /// What is typed, or piped, into it.
    pub(crate) stdin: String,
    /// What is to be done while it runs.
    pub(crate) meanwhile: Option<Vec<String>>,
    code: i32,
    stdout: Vec<String>,
    stderr: Vec<String>,
    values: Vec<(String, Value)>,
}

/// Reads a file of checks.
pub(crate) fn parse(text: &str) -> Result<Vec<Check>, String> {
    let mut checks: Vec<Check> = Vec::new();
    let mut is_within = false;
    for (index, line) in text.lines().enumerate() {
        let said = |why: &str| format!("line {}: {why}", index + 1);
        match line.chars().next() {
            Some('#') => {}
            None => is_within = false,
            Some(_) if !is_within => {
                checks.push(Check::named(line).ok_or_else(|| said("only or not, and a word"))?);
                is_within = true;
            }
            Some(_) => {
                let check = checks.last_mut().expect("its name was before");
                check.take(line).map_err(|why| said(&why))?;
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
        let (kind, rest) = line.split_once(' ').ok_or("nothing behind it")?;
        match kind {
            "$" => self.command = words(rest),
            "&" => self.meanwhile = Some(words(rest)),
            "<" => self.stdin += &format!("{rest}\n"),
            "=" => self.code = rest.parse().map_err(|_| "no exit code")?,
            ">" => self.stdout.push(rest.to_owned()),
            "!" => self.stderr.push(rest.to_owned()),
            _ => return Err(format!("{kind:?} means nothing")),
        }
        Ok(())
    }

    /// Whether it is to be made where these words hold.
    pub(crate) fn is_for(&self, traits: &[&str]) -> bool {
        let has = |word: &String| traits.contains(&word.as_str());
        self.only.iter().all(has) && !self.not.iter().any(has)
    }

    /// Whether that is what must come of it, or what is not.
    pub(crate) fn judge(&self, ran: &Ran) -> Result<(), String> {
        if ran.code != Some(self.code) {
            return Err(format!("exit code {:?}, expected {}", ran.code, self.code));
        }
        for (what, said, wanted) in
            [("output", &ran.stdout, &self.stdout), ("error", &ran.stderr, &self.stderr)]
        {
            if let Some(missing) = wanted.iter().find(|it| !said.contains(it.as_str())) {
                return Err(format!("standard {what} lacks {missing:?}"));
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

/// Words as a shell would part them, with `'` alone.
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
    fn words_are_parted_by_blanks_and_held_together_by_quotes() {
        let parted = words("call x  --json '{\"a b\": 1}' name='two words' ''");
        assert_eq!(parted, ["call", "x", "--json", "{\"a b\": 1}", "name=two words", ""]);
    }

    #[test]
    fn a_check_holds_only_what_it_asks_for() {
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
    fn what_means_nothing_is_refused() {
        for text in
            ["", "a\n", "a maybe x\n$ b\n", "a\n$ b\n~ c\n", "a\n$ b\n/c {\n", "a\n$ b\n= x\n"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
