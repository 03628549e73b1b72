//! The parts of a certificate that tell whether it is self-signed.

use tokio_rustls::rustls::pki_types::CertificateDer;

/// Whether only one certificate was presented, and its issuer is its subject.
pub(super) fn is_self_signed(presented: &[CertificateDer<'_>]) -> bool {
    match presented {
        [only] => names(only.as_ref()).is_some_and(|(issuer, subject)| issuer == subject),
        _ => false,
    }
}

/// The encoded issuer and subject (RFC 5280, 4.1).
fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut certificate = Der(certificate);
    let mut outer = Der(certificate.next()?.1);
    let mut inner = Der(outer.next()?.1);
    let (tag, _) = inner.next()?;
    // The version is optional; the serial number follows it.
    if tag == 0xa0 {
        inner.next()?;
    }
    let _algorithm = inner.next()?;
    let issuer = inner.next()?.1;
    let _validity = inner.next()?;
    let subject = inner.next()?.1;
    Some((issuer, subject))
}

/// A sequence of DER values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
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
    fn only_self_signed_certificates_are() {
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
