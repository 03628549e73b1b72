//! What a server says twice because it was started twice: a program that exits on the first request
//! is started again for the second, and fails in the same words.

/// Lines that are compared at most.
const MOST: usize = 200;

/// What the first process wrote to standard error, and how much of that the second has repeated.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    first: Vec<String>,
    /// How many lines were the same so far; `None` once one differed.
    repeated: Option<usize>,
    is_again: bool,
}

impl Repeats {
    /// Takes a line; `is_first` until the second request is sent. Returns whether the line has been
    /// shown already.
    pub(super) fn is_repeat(&mut self, line: &str, is_first: bool) -> bool {
        if is_first {
            if self.first.len() < MOST {
                self.first.push(line.to_owned());
            }
            return false;
        }
        let at = if self.is_again { self.repeated } else { Some(0) };
        self.is_again = true;
        self.repeated = at.filter(|at| self.first.get(*at).is_some_and(|it| it == line));
        self.repeated = self.repeated.map(|at| at + 1);
        self.repeated.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_same_from_the_beginning_is_left_out() {
        let mut repeats = Repeats::default();
        let shown = |repeats: &mut Repeats, lines: &str, is_first| {
            let shown = lines.split(' ').filter(|it| !repeats.is_repeat(it, is_first));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(&mut repeats, "a b a", true), "a b a");
        assert_eq!(shown(&mut repeats, "a b c a b", false), "c a b");
        let mut repeats = Repeats::default();
        shown(&mut repeats, "a b", true);
        assert_eq!(shown(&mut repeats, "b a b", false), "b a b");
        assert_eq!(shown(&mut Repeats::default(), "a a", false), "a a");
    }
}
