//! Names that nobody can guess.

use ring::rand::{SecureRandom, SystemRandom};

/// 128 random bits, in hexadecimal.
///
/// # Panics
/// When the system has no randomness to give, without which nothing here is safe.
pub(crate) fn token() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
