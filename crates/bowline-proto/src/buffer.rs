//! A reusable byte buffer that neither outgrows its limit nor stays huge.

/// The capacity that a buffer may keep when it is cleared.
///
/// Enough that messages of a megabyte do not allocate every time, which costs more than they do;
/// little enough that one huge message does not occupy its size for the rest of a connection.
pub(crate) const KEPT: usize = 2 << 20;

/// From this capacity on, a buffer grows to four times its size: pages that are not written to take
/// no memory, while each step leaves a buffer behind that an allocator may keep for a while.
const WIDE: usize = 64 << 10;

/// Appends, growing in steps that double the capacity or more, but not beyond `limit` unless
/// necessary.
pub(crate) fn append(buffer: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    reserve(buffer, bytes.len(), limit);
    buffer.extend_from_slice(bytes);
}

/// Reserves room for this many more bytes, in the same way.
pub(crate) fn reserve(buffer: &mut Vec<u8>, count: usize, limit: usize) {
    let needed = buffer.len() + count;
    if needed > buffer.capacity() {
        let factor = if buffer.capacity() < WIDE { 2 } else { 4 };
        let grown = buffer.capacity().saturating_mul(factor).max(1024);
        // A last step that is small would copy everything for little.
        let capacity = if grown > limit / 2 { limit } else { grown };
        buffer.reserve_exact(capacity.max(needed) - buffer.len());
    }
}

/// Clears, and releases the capacity beyond what is kept.
pub(crate) fn clear(buffer: &mut Vec<u8>, kept: usize) {
    buffer.clear();
    buffer.shrink_to(kept);
}

/// Splits a stream into chunks of these lengths; the last chunk is the rest.
#[cfg(test)]
pub(crate) fn cut<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for &length in lengths {
        let (chunk, rest) = stream.split_at(length.min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks.push(stream);
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_stops_at_the_limit_and_shrinks_back() {
        let limit = 3 * KEPT + 5;
        let mut buffer = Vec::new();
        while buffer.len() + 1000 <= limit {
            append(&mut buffer, &[b'x'; 1000], limit);
            assert!(buffer.capacity() <= limit);
        }
        clear(&mut buffer, KEPT);
        assert!(buffer.capacity() <= KEPT);
    }
}
