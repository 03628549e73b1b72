//! Two ways to check a host's certificate: with exceptions for certificates that the user named,
//! and not at all.
//!
//! A certificate that the user named needs no authority to vouch for it. The usual check rejects
//! such a certificate when it may sign others (`CA:TRUE`), as `openssl req -x509` makes it.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme,
};
use webpki::EndEntityCert;

/// Accepts what the usual check accepts, and the given certificates themselves.
#[derive(Debug)]
pub(super) struct GivenOrVerified {
    given: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl GivenOrVerified {
    pub(super) fn new(
        given: Vec<CertificateDer<'static>>,
        usual: Arc<WebPkiServerVerifier>,
    ) -> Self {
        Self { given, usual }
    }
}

impl ServerCertVerifier for GivenOrVerified {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if self.given.contains(end_entity) => {
                excuse(end_entity, server_name, error)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Whether a given certificate may be used although the usual check rejects it.
fn excuse(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    error: Error,
) -> Result<(), Error> {
    match &error {
        // `webpki` checks the dates before this, and the name after it.
        Error::InvalidCertificate(CertificateError::Other(OtherError(cause)))
            if cause.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
                .or_else(|error| excuse_name(certificate, name, error))
        }
        _ => excuse_name(certificate, name, error),
    }
}

/// Whether the name is only missing because the certificate has the old place for it.
fn excuse_name(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    error: Error,
) -> Result<(), Error> {
    let has_no_names = matches!(
        &error,
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })
            if presented.is_empty()
    );
    let parsed = EndEntityCert::try_from(certificate).ok().filter(|_| has_no_names);
    let common = parsed.as_ref().and_then(|parsed| common_name(parsed.subject()));
    match common {
        Some(common) if common.eq_ignore_ascii_case(&name.to_str()) => Ok(()),
        _ => Err(error),
    }
}

/// The common name in a subject. A byte search is enough: the user named this very certificate.
fn common_name(subject: &[u8]) -> Option<&str> {
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let at = subject.windows(COMMON_NAME.len()).position(|bytes| bytes == COMMON_NAME)?;
    let [_kind, length @ 0..=0x7f, text @ ..] = subject.get(at + COMMON_NAME.len()..)? else {
        return None;
    };
    std::str::from_utf8(text.get(..usize::from(*length))?).ok()
}

/// Accepts every certificate. The handshake itself is still checked: the host has the key of the
/// certificate that it presents, whatever that is worth.
#[derive(Debug)]
pub(super) struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    pub(super) fn new() -> Self {
        Self(ring::default_provider().signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names() {
        let set = |value: &[u8]| [&[0x31, 0x30, 0x06, 0x03, 0x55, 0x04, 0x03], value].concat();
        assert_eq!(common_name(&set(b"\x0c\x09localhost")), Some("localhost"));
        assert_eq!(common_name(&set(b"\x13\x04a.bcd")), Some("a.bc"));
        for broken in [&b""[..], b"\x0c", b"\x0c\x09local", b"\x0c\x81\x01a", b"\x0c\x01\xff"] {
            assert_eq!(common_name(&set(broken)), None, "{broken:?}");
        }
        assert_eq!(common_name(b"no such thing"), None);
    }
}
