//! Challenges: what was parsed can be written and parses to the same, and nothing is invented.

#![no_main]

use bowline_auth::client::Challenge;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let challenges = Challenge::parse(text);
    for challenge in &challenges {
        made_of(challenge, text);
    }
    let written: Vec<_> = challenges.iter().map(write).collect();
    let again = Challenge::parse(&written.join(", "));
    assert_eq!(challenges, again, "{written:?}");
    // A header alone means the same as among others.
    for (challenge, text) in challenges.iter().zip(&written) {
        assert_eq!(Challenge::parse(text), [challenge.clone()]);
    }
});

/// Every word of a challenge appears in the text, and is valid for its kind.
fn made_of(challenge: &Challenge, text: &str) {
    assert!(is_token(&challenge.scheme) && text.contains(&challenge.scheme));
    if let Some(token) = &challenge.token {
        assert!(challenge.parameters.is_empty() && text.contains(token.as_str()));
        let body = token.trim_end_matches('=');
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        assert!(!body.is_empty() && body.chars().all(is_part));
    }
    let lower = text.to_ascii_lowercase();
    for (name, value) in &challenge.parameters {
        assert!(is_token(name) && lower.contains(name.as_str()));
        assert_eq!(*name, name.to_ascii_lowercase());
        assert!(value.chars().all(|character| text.contains(character)));
        let first = challenge.parameters.iter().find(|(known, _)| known == name);
        assert_eq!(challenge.parameter(name), first.map(|(_, value)| value.as_str()));
    }
}

fn is_token(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !word.is_empty() && word.chars().all(is_part)
}

fn write(challenge: &Challenge) -> String {
    let quote = |(name, value): &(String, String)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{value}\"")
    };
    let rest = match &challenge.token {
        Some(token) => token.clone(),
        None => challenge.parameters.iter().map(quote).collect::<Vec<_>>().join(", "),
    };
    format!("{} {rest}", challenge.scheme).trim_end().to_owned()
}
