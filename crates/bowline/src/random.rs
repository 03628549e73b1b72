//! Random tokens and numbers.

use ring::rand::{SecureRandom, SystemRandom};

/// 128 random bits, in hexadecimal.
///
/// # Panics
/// When the operating system has no random bytes.
pub(crate) fn token() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random bytes");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// A number between 0 and 1, for jitter. Constant if the operating system has no random bytes.
#[cfg(feature = "client")]
pub(crate) fn fraction() -> f64 {
    let mut bytes = [0; 2];
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}
