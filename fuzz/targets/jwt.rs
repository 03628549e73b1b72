//! Tokens and keys: only genuine tokens are accepted, and no key has two readings.
//!
//! An input is a letter that selects the part: `t` a token, `k` a key, `s` a set of keys.

#![no_main]

use bowline_auth::jws::{Algorithm, Compact, Jwk, JwkSet};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The only key that ever signed anything. Its private half is gone.
const KEY: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"bwtVwiv9Bcy1NOwzxyhmqU-5NtcwieOHC_LpwbguTkw","kid":"a"}"#;

/// The start of the tokens signed with it, all of which are seeds.
const SIGNED: &[&str] =
    &[include_str!("../seeds/jwt/token"), include_str!("../seeds/jwt/token-with-key")];

const LIMIT: usize = 2048;

fuzz_target!(|input: &[u8]| {
    let Some((part, rest)) = input.split_first() else {
        return;
    };
    match part {
        b't' => token(rest),
        b'k' => key(rest),
        b's' => set(rest),
        _ => {}
    }
});

fn token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(compact) = Compact::parse(text, LIMIT) else {
        return;
    };
    assert!(text.len() <= LIMIT);
    assert_eq!(text.split('.').count(), 3, "a token of three parts");
    let known = Jwk::parse(KEY.as_bytes()).expect("the key is one");
    // Its own key proves nothing, but must not break anything either.
    let brought = compact.header().key.clone();
    let was_signed = SIGNED.iter().any(|seed| &seed[1..] == text);
    match compact.verify([&known]) {
        Ok(_) => assert!(was_signed, "a forged token is accepted"),
        Err(_) => assert!(!was_signed, "a genuine token is rejected"),
    }
    if let Some(brought) = brought {
        let _ = compact.verify([&brought]);
    }
}

fn key(input: &[u8]) {
    let Ok(key) = Jwk::parse(input) else { return };
    let value: Value = serde_json::from_slice(input).expect("a key is JSON");
    assert_eq!(key.kid(), value["kid"].as_str());
    assert!(value.get("d").is_none(), "a private key is accepted");
    assert_eq!(key.thumbprint().len(), 43);
    let fitting = Algorithm::ALL.iter().filter(|it| key.fits(**it)).count();
    let most = if value["kty"] == "RSA" { 6 } else { 1 };
    assert!(fitting <= most, "{fitting} algorithms");
    // The thumbprint does not depend on the key's optional members.
    let mut bare = value.clone();
    for name in ["kid", "use", "alg", "key_ops"] {
        bare.as_object_mut().expect("a key is an object").remove(name);
    }
    let bare = Jwk::parse(bare.to_string().as_bytes()).expect("the same key");
    assert_eq!(bare.thumbprint(), key.thumbprint());
}

fn set(input: &[u8]) {
    let Ok(set) = JwkSet::parse(input) else { return };
    let value: Value = serde_json::from_slice(input).expect("a set is JSON");
    let there = value["keys"].as_array().map_or(0, Vec::len);
    for algorithm in Algorithm::ALL {
        let all = set.candidates(None, *algorithm).count();
        assert!(all <= there);
        let named = set.candidates(Some("a"), *algorithm).count();
        assert!(named <= all);
    }
}
