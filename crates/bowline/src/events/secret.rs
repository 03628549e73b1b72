//! Signatures by Standard Webhooks: HMAC-SHA256 over id, time and body.

use bowline_proto::base64;
use http::HeaderMap;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use crate::clock;

/// The headers of a webhook.
pub(super) const ID: &str = "webhook-id";
pub(super) const TIME: &str = "webhook-timestamp";
pub(super) const SIGNATURE: &str = "webhook-signature";

/// What every secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a secret has.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// How far the clocks of sender and receiver may be apart, in seconds.
const SKEW: u64 = 5 * 60;

/// The secret of a webhook, which its sender and its receiver share: `whsec_` and 24 to 64 bytes
/// in base64.
///
/// Receivers verify what they are sent:
///
/// ```
/// use bowline::events::WebhookSecret;
///
/// # fn example(headers: &http::HeaderMap, body: &[u8]) -> Option<()> {
/// let secret = WebhookSecret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")?;
/// if !secret.verify(headers, body) {
///     return None; // answer with 401
/// }
/// # Some(())
/// # }
/// ```
#[derive(Clone)]
pub struct WebhookSecret {
    text: String,
    key: Key,
}

impl WebhookSecret {
    /// Reads a secret; `None` if it does not have that form.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = base64::STANDARD.decode(text.strip_prefix(PREFIX)?)?;
        let key = Key::new(HMAC_SHA256, &bytes);
        LENGTHS.contains(&bytes.len()).then(|| Self { text: text.to_owned(), key })
    }

    /// The secret as it was read.
    pub(super) fn expose(&self) -> &str {
        &self.text
    }

    /// The value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, time: u64, body: &[u8]) -> String {
        let tag = sign(&self.key, &signed(id, &time.to_string(), body));
        format!("v1,{}", base64::STANDARD.encode(tag.as_ref()))
    }

    /// Compares texts without telling by the time it takes where they differ.
    pub(super) fn is_same(&self, one: &str, other: &str) -> bool {
        verify(&self.key, one.as_bytes(), sign(&self.key, other.as_bytes()).as_ref()).is_ok()
    }

    /// Whether a message is from someone who knows the secret, and was sent within the last five
    /// minutes. There may be several signatures, of which one must fit.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        self.verify_at(headers, body, clock::unix_seconds())
    }

    fn verify_at(&self, headers: &HeaderMap, body: &[u8], now: u64) -> bool {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let parts = [ID, TIME, SIGNATURE].map(header);
        let [Some(id), Some(time), Some(signatures)] = parts else { return false };
        let Ok(sent) = time.parse::<u64>() else { return false };
        let signed = signed(id, time, body);
        let fits = |signature: &str| {
            let tag = signature.strip_prefix("v1,").and_then(|it| base64::STANDARD.decode(it));
            tag.is_some_and(|tag| verify(&self.key, &signed, &tag).is_ok())
        };
        sent.abs_diff(now) <= SKEW && signatures.split(' ').any(fits)
    }
}

fn signed(id: &str, time: &str, body: &[u8]) -> Vec<u8> {
    [id.as_bytes(), b".", time.as_bytes(), b".", body].concat()
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(bytes: &[u8]) -> Option<WebhookSecret> {
        WebhookSecret::parse(&format!("whsec_{}", base64::STANDARD.encode(bytes)))
    }

    #[test]
    fn secrets_have_a_prefix_and_a_length() {
        assert!(secret(&[1; 24]).is_some());
        assert!(secret(&[1; 64]).is_some());
        for bad in ["whsec_", "whsec_!", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", ""] {
            assert!(WebhookSecret::parse(bad).is_none(), "{bad}");
        }
        assert!(secret(&[1; 23]).is_none());
        assert!(secret(&[1; 65]).is_none());
        assert_eq!(format!("{:?}", secret(&[1; 24]).unwrap()), "WebhookSecret");
    }

    #[test]
    fn signatures_are_those_of_hmac_sha256() {
        // Computed by Python's `hmac`.
        let secret = secret(b"0123456789abcdef01234567").unwrap();
        let signature = secret.sign("evt_1", 1_700_000_000, b"{\"a\":1}");
        assert_eq!(signature, "v1,Z/jkivYuQapEc+CETDjLa/ymTZQRCdBx0WzhKRfU5wI=");
    }

    #[test]
    fn only_what_was_signed_recently_verifies() {
        let secret = secret(&[7; 32]).unwrap();
        let signature = secret.sign("a", 1_000, b"body");
        let headers = |id: &str, time: &str, signature: &str| {
            let all = [(ID, id), (TIME, time), (SIGNATURE, signature)];
            let all = all.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            HeaderMap::from_iter(all)
        };
        let good = headers("a", "1000", &signature);
        assert!(secret.verify_at(&good, b"body", 1_000 + SKEW));
        let several = headers("a", "1000", &format!("v1,AAAA v2,x {signature}"));
        assert!(secret.verify_at(&several, b"body", 900));
        for (id, time, body, now) in [
            ("b", "1000", "body", 1_000),
            ("a", "1001", "body", 1_000),
            ("a", "1000", "Body", 1_000),
            ("a", "1000", "body", 1_001 + SKEW),
            ("a", "x", "body", 1_000),
        ] {
            let headers = headers(id, time, &signature);
            assert!(!secret.verify_at(&headers, body.as_bytes(), now), "{id} {time}");
        }
        assert!(!secret.verify(&good, b"body"), "it is old");
        assert!(!secret.verify_at(&HeaderMap::new(), b"body", 1_000));
        let other = WebhookSecret::parse(&format!("{PREFIX}{}", "B".repeat(32))).unwrap();
        assert!(!other.verify_at(&good, b"body", 1_000));
    }
}
