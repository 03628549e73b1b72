//! Names that nobody can guess, and chance.

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

/// Between 0 and 1. Without randomness always the same: for waits, which then are merely alike.
#[cfg(feature = "client")]
pub(crate) fn fraction() -> f64 {
    let mut bytes = [0; 2];
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}
