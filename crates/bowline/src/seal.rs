//! Sealed tokens: state that travels through a client that can neither read nor change it.
//!
//! `requestState` and cursors go out to a client and come back, perhaps to another replica. A token
//! is encrypted and authenticated (ChaCha20-Poly1305), and bound to a purpose and to data of the
//! caller's choice, such as the principal and the parameters of the request. It does not expire: an
//! expiry date belongs in the sealed text.
//!
//! Nonces are 96 random bits, which is safe for 2^32 tokens under one key. A server that seals more
//! must rotate its keys.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bowline_proto::base64::URL;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// The keys that seal and open tokens: one that does both, and older ones that only open.
///
/// Replicas that share secrets open each other's tokens. Clones share their keys.
///
/// ```
/// use bowline::seal::{KeyRing, SealError};
///
/// let ring = KeyRing::from_secrets([[7; 32]])?;
/// let token = ring.seal("cursor", b"alice", b"page 3")?;
/// assert_eq!(ring.open("cursor", b"alice", &token)?, b"page 3");
/// assert_eq!(ring.open("cursor", b"bob", &token), Err(SealError::Refused));
///
/// ring.rotate(&[8; 32])?;
/// assert_eq!(ring.open("cursor", b"alice", &token)?, b"page 3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct KeyRing {
    /// Never empty; the first one seals.
    keys: Arc<RwLock<Vec<Key>>>,
    max_token: usize,
}

/// Why a token was not sealed or opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SealError {
    /// The token is longer than this ring allows. When sealing, store less or raise the limit.
    TooLong {
        /// The limit, in characters.
        limit: usize,
    },
    /// The token was not issued for this purpose and binding. The reason is not given, because it
    /// would only help attackers.
    Refused,
}

/// Why a key ring cannot be created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SecretError {
    /// There is no secret.
    Missing,
    /// A secret is too short to be hard to guess.
    TooShort {
        /// How many bytes it has.
        length: usize,
    },
}

bowline_proto::debug_as_sentence!(SealError, SecretError);

impl KeyRing {
    /// The minimum length of a secret, in bytes.
    pub const MIN_SECRET: usize = 32;

    /// How many keys [`rotate`](Self::rotate) keeps, the new one included.
    pub const MAX_KEYS: usize = 8;

    /// The default limit on the length of a token; see [`with_max_token`](Self::with_max_token).
    pub const DEFAULT_MAX_TOKEN: usize = 64 * 1024;

    /// Creates a ring with a random key. Only this process can open its tokens.
    ///
    /// # Panics
    /// When the operating system has no random bytes.
    pub fn random() -> Self {
        Self::new(vec![Key::derive(&random_bytes::<{ Self::MIN_SECRET }>())])
    }

    /// Creates a ring with a key for each secret. The first one seals, all of them open.
    ///
    /// A secret is at least 32 bytes from a good source of randomness; their encoding (hexadecimal,
    /// base64) does not matter. A passphrase is not a suitable secret.
    ///
    /// # Errors
    /// When there is no secret, or one is too short.
    pub fn from_secrets<S: AsRef<[u8]>>(
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, SecretError> {
        keys(secrets).map(Self::new)
    }

    /// Sets the limit on the length of a token, in characters.
    #[must_use]
    pub fn with_max_token(self, max_token: usize) -> Self {
        Self { max_token, ..self }
    }

    /// Seals with a new key from now on. The last [`MAX_KEYS`](Self::MAX_KEYS) keys still open.
    ///
    /// Replicas that rotate one after the other reject each other's tokens in between. To avoid
    /// that, first [`reload`](Self::reload) the new secret everywhere, after the old one.
    ///
    /// # Errors
    /// When the secret is too short. The ring is then unchanged.
    pub fn rotate(&self, secret: &[u8]) -> Result<(), SecretError> {
        let mut new = keys([secret])?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        new.append(&mut keys);
        new.truncate(Self::MAX_KEYS);
        *keys = new;
        Ok(())
    }

    /// Replaces all keys, as [`from_secrets`](Self::from_secrets) creates them.
    ///
    /// # Errors
    /// When there is no secret, or one is too short. The ring is then unchanged.
    pub fn reload<S: AsRef<[u8]>>(
        &self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<(), SecretError> {
        let new = keys(secrets)?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Seals a text into a token that opens only for the same purpose and binding.
    ///
    /// # Errors
    /// When the token would be too long to open.
    ///
    /// # Panics
    /// When the operating system has no random bytes.
    pub fn seal(
        &self,
        purpose: &str,
        binding: &[u8],
        plaintext: &[u8],
    ) -> Result<String, SealError> {
        let length = HEAD + plaintext.len() + CHACHA20_POLY1305.tag_len();
        if URL.encoded_length(length) > self.max_token {
            return Err(SealError::TooLong { limit: self.max_token });
        }
        let nonce = random_bytes::<NONCE_LEN>();
        let keys = self.keys();
        let key = &keys[0];
        let mut token = Vec::with_capacity(length);
        token.push(FORMAT);
        token.extend(key.id);
        token.extend(nonce);
        token.extend(plaintext);
        let tag = key
            .secret
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                associated(purpose, key.id, binding),
                &mut token[HEAD..],
            )
            .expect("a text that fits into a token is far below the cipher's limit");
        token.extend(tag.as_ref());
        Ok(URL.encode(&token))
    }

    /// Opens a token.
    ///
    /// # Errors
    /// When the token is too long, or was not issued for this purpose and binding.
    pub fn open(&self, purpose: &str, binding: &[u8], token: &str) -> Result<Vec<u8>, SealError> {
        if token.len() > self.max_token {
            return Err(SealError::TooLong { limit: self.max_token });
        }
        let token = URL.decode(token).ok_or(SealError::Refused)?;
        let head = token.first_chunk::<HEAD>().ok_or(SealError::Refused)?;
        let [FORMAT, head @ ..] = head else {
            return Err(SealError::Refused);
        };
        let (id, nonce) = head.split_first_chunk().expect("a head holds an id");
        let nonce = nonce.try_into().expect("a head ends with a nonce");
        let keys = self.keys();
        // Ids are short, so two keys may share one.
        keys.iter()
            .filter(|key| key.id == *id)
            .find_map(|key| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let mut text = token[HEAD..].to_vec();
                let associated = associated(purpose, key.id, binding);
                let length = key.secret.open_in_place(nonce, associated, &mut text).ok()?.len();
                text.truncate(length);
                Some(text)
            })
            .ok_or(SealError::Refused)
    }

    fn new(keys: Vec<Key>) -> Self {
        Self { keys: Arc::new(RwLock::new(keys)), max_token: Self::DEFAULT_MAX_TOKEN }
    }

    fn keys(&self) -> RwLockReadGuard<'_, Vec<Key>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { limit } => write!(f, "the token has more than {limit} characters"),
            Self::Refused => f.write_str("invalid token"),
        }
    }
}

impl std::error::Error for SealError {}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a key ring needs a secret"),
            Self::TooShort { length } => {
                write!(
                    f,
                    "the secret has {length} bytes; expected at least {}",
                    KeyRing::MIN_SECRET
                )
            }
        }
    }
}

impl std::error::Error for SecretError {}

/// The first byte of a token, which identifies its layout.
const FORMAT: u8 = 1;

const ID: usize = 4;

/// Format, id of the key, nonce.
const HEAD: usize = 1 + ID + NONCE_LEN;

struct Key {
    /// Derived from the secret like the key, so that replicas agree on it.
    id: [u8; ID],
    secret: LessSafeKey,
}

impl Key {
    fn derive(secret: &[u8]) -> Self {
        let mut bytes = [0; ID + 32];
        Salt::new(HKDF_SHA256, b"bowline sealed tokens")
            .extract(secret)
            .expand(&[b"format 1"], Derived)
            .and_then(|derived| derived.fill(&mut bytes))
            .expect("36 bytes are asked for, and HKDF gives up to 8160");
        let (id, key) = bytes.split_first_chunk().expect("the id comes first");
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("its keys have 32 bytes");
        Self { id: *id, secret: LessSafeKey::new(key) }
    }
}

/// The number of bytes that are derived from a secret: an id and a key.
struct Derived;

impl KeyType for Derived {
    fn len(&self) -> usize {
        ID + 32
    }
}

fn keys<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Result<Vec<Key>, SecretError> {
    let key = |secret: S| match secret.as_ref() {
        short if short.len() < KeyRing::MIN_SECRET => {
            Err(SecretError::TooShort { length: short.len() })
        }
        secret => Ok(Key::derive(secret)),
    };
    let keys = secrets.into_iter().map(key).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err(SecretError::Missing) } else { Ok(keys) }
}

/// The data that a token is bound to. The length keeps the end of a purpose apart from the start of
/// a binding.
fn associated(purpose: &str, id: [u8; ID], binding: &[u8]) -> Aad<Vec<u8>> {
    let mut bytes = vec![FORMAT];
    bytes.extend(id);
    bytes.extend((purpose.len() as u64).to_be_bytes());
    bytes.extend(purpose.as_bytes());
    bytes.extend(binding);
    Aad::from(bytes)
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: [u8; 32] = [1; 32];
    const NEW: [u8; 32] = [2; 32];

    fn ring() -> KeyRing {
        KeyRing::from_secrets([OLD]).unwrap()
    }

    #[test]
    fn what_is_sealed_opens() {
        for text in [&b""[..], b"a", b"page 3", &[0; 4000]] {
            let token = ring().seal("cursor", b"alice", text).unwrap();
            assert!(token.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));
            assert_eq!(ring().open("cursor", b"alice", &token).unwrap(), text);
        }
    }

    #[test]
    fn no_two_tokens_are_alike_and_none_shows_its_text() {
        let ring = KeyRing::random();
        let text = [b'x'; 64];
        let one = ring.seal("cursor", b"", &text).unwrap();
        assert_ne!(one, ring.seal("cursor", b"", &text).unwrap());
        assert!(!URL.decode(&one).unwrap().windows(4).any(|window| window == b"xxxx"));
    }

    #[test]
    fn a_changed_token_is_refused() {
        let token = ring().seal("cursor", b"alice", b"page 3").unwrap();
        let bytes = URL.decode(&token).unwrap();
        let refused = |token: &str| {
            assert_eq!(ring().open("cursor", b"alice", token), Err(SealError::Refused), "{token}");
        };
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                refused(&URL.encode(&changed));
            }
            refused(&URL.encode(&bytes[..at]));
            refused(&URL.encode(&bytes[at + 1..]));
        }
        for at in 0..token.len() {
            refused(&token[..at]);
        }
        for more in ["A", "AA", "AAA", "AAAA", "=", "\n"] {
            refused(&format!("{token}{more}"));
        }
        for other in ["", "null", "page 3", "é", "AQ"] {
            refused(other);
        }
    }

    #[test]
    fn a_token_serves_one_purpose_and_binding() {
        let token = ring().seal("state", b"alice", b"x").unwrap();
        for (purpose, binding) in
            [("cursor", "alice"), ("state", "bob"), ("state", ""), ("statea", "lice"), ("", "")]
        {
            let opened = ring().open(purpose, binding.as_bytes(), &token);
            assert_eq!(opened, Err(SealError::Refused), "{purpose} {binding}");
        }
    }

    #[test]
    fn keys_rotate() {
        let ring = ring();
        let old = ring.seal("p", b"", b"old").unwrap();
        ring.rotate(&NEW).unwrap();
        let new = ring.seal("p", b"", b"new").unwrap();
        assert_eq!(ring.open("p", b"", &old).unwrap(), b"old");
        assert_eq!(ring.open("p", b"", &new).unwrap(), b"new");

        let behind = KeyRing::from_secrets([OLD]).unwrap();
        assert_eq!(behind.open("p", b"", &new), Err(SealError::Refused));
        behind.reload([OLD, NEW]).unwrap();
        assert_eq!(behind.open("p", b"", &new).unwrap(), b"new");

        ring.reload([NEW]).unwrap();
        assert_eq!(ring.open("p", b"", &old), Err(SealError::Refused));
        assert_eq!(KeyRing::random().open("p", b"", &new), Err(SealError::Refused));
    }

    #[test]
    fn rotation_forgets_the_oldest() {
        let ring = ring();
        let token = ring.seal("p", b"", b"x").unwrap();
        for n in 0..KeyRing::MAX_KEYS {
            assert!(ring.open("p", b"", &token).is_ok());
            ring.rotate(&[u8::try_from(n).unwrap() + 10; 32]).unwrap();
        }
        assert_eq!(ring.open("p", b"", &token), Err(SealError::Refused));
    }

    #[test]
    fn long_tokens_are_neither_made_nor_read() {
        let ring = ring().with_max_token(100);
        let token = ring.seal("p", b"", &[0; 42]).unwrap();
        assert_eq!(token.len(), 100);
        assert!(ring.open("p", b"", &token).is_ok());
        let too_long = Err(SealError::TooLong { limit: 100 });
        assert_eq!(ring.seal("p", b"", &[0; 43]).map(|_| ()), too_long);
        assert_eq!(ring.open("p", b"", &"A".repeat(101)).map(|_| ()), too_long);
    }

    #[test]
    fn weak_secrets_are_refused() {
        let short = Some(SecretError::TooShort { length: 31 });
        assert_eq!(KeyRing::from_secrets([[0; 31]]).err(), short);
        assert_eq!(
            KeyRing::from_secrets([[]; 0] as [[u8; 0]; 0]).err(),
            Some(SecretError::Missing)
        );
        assert_eq!(ring().rotate(&[0; 31]).err(), short);
        assert_eq!(ring().reload([[0; 31]]).err(), short);
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", ring()), "KeyRing { .. }");
    }

    /// Replicas of different releases must agree: a change of the derivation is a new format.
    #[test]
    fn tokens_of_earlier_releases_open() {
        let token = "AVHOrfOYiaMpU5fX8yeLSGX3MqOwKCulnKW79LV1_WEA2fmoxI6g";
        assert_eq!(ring().open("cursor", b"alice", token).unwrap(), b"page 3");
    }
}
