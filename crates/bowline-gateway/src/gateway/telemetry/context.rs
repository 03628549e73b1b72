//! W3C trace context: `traceparent`, read and written.

use ring::rand::{SecureRandom, SystemRandom};

/// Where a span is: its trace, itself, and whether anyone wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) is_sampled: bool,
}

impl SpanContext {
    /// Reads a `traceparent` (W3C Trace Context, 3.2). Later versions may have more at the end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let [version] = bytes::<1>(version)?;
        let has_more = parts.next().is_some();
        if version == 0xff || version == 0 && has_more {
            return None;
        }
        let (trace, span, [flags]) = (bytes(trace)?, bytes(span)?, bytes::<1>(flags)?);
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// A new span, in the trace of its parent or in one of its own.
    pub(super) fn below(parent: Option<&Self>) -> Self {
        let trace = parent.map_or_else(random, |it| it.trace);
        Self { trace, span: random(), is_sampled: parent.is_none_or(|it| it.is_sampled) }
    }

    pub(super) fn traceparent(&self) -> String {
        let flags = u8::from(self.is_sampled);
        format!("00-{}-{}-{flags:02x}", hex(&self.trace), hex(&self.span))
    }
}

/// Bytes in lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    crate::gateway::audit::hex(bytes)
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
    if !is_hex || text.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, at) in out.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// Never all zero, which would mean that there is no id.
fn random<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    while out == [0; N] {
        if SystemRandom::new().fill(&mut out).is_err() {
            out[N - 1] = 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_context_is_read_as_the_standard_says() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = SpanContext::parse(good).unwrap();
        assert_eq!((read.traceparent().as_str(), read.is_sampled), (good, true));
        let later = format!("cc{}-what", &good[2..]);
        assert_eq!(SpanContext::parse(&later), Some(read));
        let unsampled = good.replace("-01", "-00");
        assert!(!SpanContext::parse(&unsampled).unwrap().is_sampled);
        for wrong in [
            "",
            "00-1-2-01",
            &good.replace("00-4b", "ff-4b"),
            &good.replace("4bf9", "4BF9"),
            &format!("{good}-more"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(wrong), None, "{wrong}");
        }
        let below = SpanContext::below(Some(&read));
        assert!(below.trace == read.trace && below.span != read.span && below.is_sampled);
        assert_ne!(SpanContext::below(None).trace, SpanContext::below(None).trace);
    }
}
