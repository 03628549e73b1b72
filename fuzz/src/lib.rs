//! Turns the bytes of a fuzzer into decisions: lengths, choices, names.

/// Bytes that are consumed one by one. When none are left, every decision is zero.
#[derive(Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// A whole input.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether all are consumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// One bit of a byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// One of several values.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Up to `count` bytes.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The lengths of chunks: a count, then a byte for each.
    pub fn lengths(&mut self) -> Vec<usize> {
        let count = usize::from(self.byte());
        self.take(count).iter().map(|length| usize::from(*length)).collect()
    }
}

/// Splits a stream into chunks of these lengths; the last chunk is the rest.
pub fn cut<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::with_capacity(lengths.len() + 1);
    for length in lengths {
        let (chunk, rest) = stream.split_at((*length).min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks.push(stream);
    chunks
}
