//! A byte buffer that is reused, and neither outgrows its limit nor stays giant.

/// What a buffer may keep when it is emptied.
///
/// Enough that messages of a megabyte do not allocate each time anew, which costs more than they
/// do; little enough that one giant does not occupy its size for the rest of a connection.
pub(crate) const KEPT: usize = 2 << 20;

/// Appends, doubling the capacity as a `Vec` does, but not beyond `limit` unless it must.
pub(crate) fn append(buffer: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    reserve(buffer, bytes.len(), limit);
    buffer.extend_from_slice(bytes);
}

/// Makes room for this many more bytes, in the same way.
pub(crate) fn reserve(buffer: &mut Vec<u8>, count: usize, limit: usize) {
    let needed = buffer.len() + count;
    if needed > buffer.capacity() {
        let doubled = buffer.capacity().saturating_mul(2).max(1024);
        let capacity = doubled.min(limit).max(needed);
        buffer.reserve_exact(capacity - buffer.len());
    }
}

/// Empties, and gives back what only a giant needed.
pub(crate) fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT);
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
        clear(&mut buffer);
        assert!(buffer.capacity() <= KEPT);
    }
}
