//! Tokens and keys: only the token that was signed is believed, and no key is read in two ways.
//!
//! An input is a letter for the part: `t` a token, `k` a key, `s` a set of keys.

#![no_main]

use bowline_auth::jws::{Algorithm, Compact, Jwk, JwkSet};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The only key that anything was ever signed with. Its private half is gone.
const KEY: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"bwtVwiv9Bcy1NOwzxyhmqU-5NtcwieOHC_LpwbguTkw","kid":"a"}"#;

/// Begins the tokens that were signed with it, all of which are seeds.
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
    // Its own key proves nothing about it, but must not break anything either.
    let brought = compact.header().key.clone();
    let was_signed = SIGNED.iter().any(|seed| &seed[1..] == text);
    match compact.verify([&known]) {
        Ok(_) => assert!(was_signed, "a forgery is believed"),
        Err(_) => assert!(!was_signed, "an honest token is refused"),
    }
    if let Some(brought) = brought {
        let _ = compact.verify([&brought]);
    }
}

fn key(input: &[u8]) {
    let Ok(key) = Jwk::parse(input) else { return };
    let value: Value = serde_json::from_slice(input).expect("a key is JSON");
    assert_eq!(key.kid(), value["kid"].as_str());
    assert!(value.get("d").is_none(), "a private key is taken");
    assert_eq!(key.thumbprint().len(), 43);
    let fitting = Algorithm::ALL.iter().filter(|it| key.fits(**it)).count();
    let most = if value["kty"] == "RSA" { 6 } else { 1 };
    assert!(fitting <= most, "{fitting} algorithms");
    // Whatever a key says of itself, what stands for it does not depend on that.
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
