//! As much of a certificate as tells whether it is signed by itself.

use tokio_rustls::rustls::pki_types::CertificateDer;

/// Whether one certificate was shown, and its issuer is its subject.
pub(super) fn is_self_signed(shown: &[CertificateDer<'_>]) -> bool {
    match shown {
        [only] => names(only.as_ref()).is_some_and(|(issuer, subject)| issuer == subject),
        _ => false,
    }
}

/// The issuer and the subject, as they are written (RFC 5280, 4.1).
fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut certificate = Reader(certificate);
    let mut outer = Reader(certificate.next()?.1);
    let mut inner = Reader(outer.next()?.1);
    let (tag, _) = inner.next()?;
    // The version is optional, and the serial number comes after it.
    if tag == 0xa0 {
        inner.next()?;
    }
    let _algorithm = inner.next()?;
    let issuer = inner.next()?.1;
    let _validity = inner.next()?;
    let subject = inner.next()?.1;
    Some((issuer, subject))
}

/// Values in DER, one after another.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_vouches_for_itself_is_told_from_others() {
        let own = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        assert!(is_self_signed(&[own.cert.der().clone()]));
        let twice = [own.cert.der().clone(), own.cert.der().clone()];
        assert!(!is_self_signed(&twice));
        assert!(!is_self_signed(&[]));
        for bytes in
            [&b""[..], b"0", b"0\x84\xff\xff\xff\xff", b"0\x03\x02\x01\x01", &own.cert.der()[..40]]
        {
            assert!(!is_self_signed(&[bytes.to_vec().into()]), "{bytes:?}");
        }
    }
}
