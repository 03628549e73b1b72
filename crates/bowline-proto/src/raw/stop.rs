//! Where a JSON string has to be looked at more closely.

use memchr::memchr2;

const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// How much is looked at word by word, before it is worth it to look at whole blocks.
const SHORT: usize = 64;

/// What is looked at together in a long string.
const BLOCK: usize = 4096;

/// The place of the first quote, backslash or control character: the bytes that end a string, need
/// an escape or must not be there.
#[inline]
pub(crate) fn find_stop(bytes: &[u8]) -> Option<usize> {
    let Some((word, rest)) = bytes.split_first_chunk() else { return find_in_short(bytes) };
    let stops = stops(*word);
    if stops == 0 {
        return find_later(rest).map(|place| word.len() + place);
    }
    // Most strings are names, and end here.
    Some(first(stops))
}

/// The same in what follows the first bytes.
#[inline(never)]
fn find_later(bytes: &[u8]) -> Option<usize> {
    let (near, far) = bytes.split_at(bytes.len().min(SHORT));
    let (words, rest) = near.as_chunks::<8>();
    let mut place = 0;
    for word in words {
        let stops = stops(*word);
        if stops != 0 {
            return Some(place + first(stops));
        }
        place += word.len();
    }
    if far.is_empty() {
        return find_in_short(rest).map(|place| near.len() - rest.len() + place);
    }
    find_far(far).map(|place| SHORT + place)
}

/// The same in less than a word.
fn find_in_short(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| is_stop(*byte))
}

fn is_stop(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// Marks the stops among eight bytes by their highest bit. What is above the first mark may be
/// wrong.
#[inline]
fn stops(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    // A byte below 0x80 borrows from its highest bit when less is left than is taken away. With one
    // bit turned over, a quote comes right after the control characters: one look finds both.
    let low = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let slashes = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (low | slashes) & !word & HIGHS
}

/// The place of the first mark.
#[inline]
fn first(stops: u64) -> usize {
    (stops.trailing_zeros() / 8) as usize
}

/// The same in what follows a long stretch without a stop: another is likely.
#[inline(never)]
fn find_far(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for block in bytes.chunks(BLOCK) {
        let stop = memchr2(b'"', b'\\', block);
        let before = &block[..stop.unwrap_or(block.len())];
        // Looks at every byte rather than stopping early, so that many are compared at once.
        if before.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20 {
            return before.iter().position(|byte| *byte < 0x20).map(|place| at + place);
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

    fn check(plain: &[u8], place: usize) {
        for stop in [b'"', b'\\', 0, 0x1f, b'\n'] {
            let mut text = plain.to_vec();
            text[place] = stop;
            if place + 1 < text.len() {
                *text.last_mut().unwrap() = b'"';
            }
            assert_eq!(find_stop(&text), Some(place), "{}", text.len());
        }
    }

    #[test]
    fn the_first_stop_is_found_wherever_it_is() {
        for length in (0..70).chain([127, 128, 129, 191, 200, BLOCK + SHORT + 1]) {
            let mut text = "é".repeat(length / 2 + 1).into_bytes();
            text.truncate(length);
            assert_eq!(find_stop(&text), None, "{length}");
            let places = (0..length).filter(|place| length < 300 || place % 61 == 0);
            places.for_each(|place| check(&text, place));
        }
        let others: Vec<u8> = (0x20..=0xff).filter(|byte| !b"\"\\".contains(byte)).collect();
        assert_eq!(find_stop(&others), None);
    }
}
