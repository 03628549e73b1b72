//! Finds the next byte in a JSON string that needs attention.

use memchr::memchr2;

const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// How many bytes are scanned word by word before switching to whole blocks.
const SHORT: usize = 64;

/// The size of a block in a long string.
const BLOCK: usize = 4096;

/// The offset of the first quote, backslash or control character: the bytes that end a string, need
/// an escape or are not allowed.
#[inline]
pub(crate) fn find_stop(bytes: &[u8]) -> Option<usize> {
    let Some((word, rest)) = bytes.split_first_chunk() else { return find_in_short(bytes) };
    let stops = stops(*word);
    if stops == 0 {
        return find_later(rest).map(|offset| word.len() + offset);
    }
    // Most strings are short names and end here.
    Some(first(stops))
}

/// Searches what follows the first bytes.
#[inline(never)]
fn find_later(bytes: &[u8]) -> Option<usize> {
    let (near, far) = bytes.split_at(bytes.len().min(SHORT));
    let (words, rest) = near.as_chunks::<8>();
    let mut offset = 0;
    for word in words {
        let stops = stops(*word);
        if stops != 0 {
            return Some(offset + first(stops));
        }
        offset += word.len();
    }
    if far.is_empty() {
        return find_in_short(rest).map(|offset| near.len() - rest.len() + offset);
    }
    find_far(far).map(|offset| SHORT + offset)
}

/// Searches less than a word.
fn find_in_short(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| is_stop(*byte))
}

fn is_stop(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Marks the stops among eight bytes by their highest bit. Marks above the first may be wrong.
#[inline]
fn stops(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    // Subtracting more from a byte below 0x80 than it holds sets its highest bit. With one bit
    // flipped, a quote comes right after the control characters, so one comparison finds both.
    let low = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let slashes = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (low | slashes) & !word & HIGHS
}

/// The offset of the first mark.
#[inline]
fn first(stops: u64) -> usize {
    (stops.trailing_zeros() / 8) as usize
}

/// Searches after a long stretch without a stop, where another such stretch is likely.
#[inline(never)]
fn find_far(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for block in bytes.chunks(BLOCK) {
        let stop = memchr2(b'"', b'\\', block);
        let before = &block[..stop.unwrap_or(block.len())];
        // Examines every byte instead of stopping early, so that the compiler can vectorize it.
        if before.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20 {
            return before.iter().position(|byte| *byte < 0x20).map(|offset| at + offset);
        }
        if let Some(stop) = stop {
            return Some(at + stop);
        }
        at += block.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plain: &[u8], offset: usize) {
        for stop in [b'"', b'\\', 0, 0x1f, b'\n'] {
            let mut text = plain.to_vec();
            text[offset] = stop;
            if offset + 1 < text.len() {
                *text.last_mut().unwrap() = b'"';
            }
            assert_eq!(find_stop(&text), Some(offset), "{}", text.len());
        }
    }

    #[test]
    fn the_first_stop_is_found_wherever_it_is() {
        for length in (0..70).chain([127, 128, 129, 191, 200, BLOCK + SHORT + 1]) {
            let mut text = "é".repeat(length / 2 + 1).into_bytes();
            text.truncate(length);
            assert_eq!(find_stop(&text), None, "{length}");
            let offsets = (0..length).filter(|offset| length < 300 || offset % 61 == 0);
            offsets.for_each(|offset| check(&text, offset));
        }
        let others: Vec<u8> = (0x20..=0xff).filter(|byte| !b"\"\\".contains(byte)).collect();
        assert_eq!(find_stop(&others), None);
    }
}
