//! Markdown tables, and readable numbers.

/// A table: heading and rows.
pub(crate) struct Table {
    text: String,
}

impl Table {
    /// The first column is text, the others are numbers.
    pub(crate) fn new(heading: &[&str]) -> Self {
        let rule = heading.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" });
        let rule: Vec<&str> = rule.collect();
        let mut table = Self { text: String::new() };
        table.row(heading);
        table.text += &format!("|{}|\n", rule.join("|"));
        table
    }

    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// The text, followed by a blank line.
    pub(crate) fn finish(self) -> String {
        self.text + "\n"
    }
}

/// A number with three significant digits and thousands separators.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() => "–".to_owned(),
        value if value.abs() >= 100.0 => thousands(value),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value if value.abs() >= 0.01 || value == 0.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// A ratio.
pub(crate) fn times(value: f64) -> String {
    if value.is_finite() { format!("{}x", number(value)) } else { "–".to_owned() }
}

/// Bytes, in a suitable unit.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        value if value >= 10.0 * 1_048_576.0 => format!("{:.0} MiB", value / 1_048_576.0),
        value if value >= 1_048_576.0 => format!("{:.1} MiB", value / 1_048_576.0),
        value if value >= 10_240.0 => format!("{:.0} KiB", value / 1024.0),
        value => format!("{} B", thousands(value)),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read() {
        for (value, expected) in [
            (1_234_567.4, "1,234,567"),
            (-1_234.0, "-1,234"),
            (999.6, "1,000"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.0012, "0.0012"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(64.0 * 1024.0), "64 KiB");
        assert_eq!(bytes(2.5 * 1_048_576.0), "2.5 MiB");
        assert_eq!(times(f64::INFINITY), "–");
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(&["what", "how much"]);
        table.row(&["a", "1"]);
        assert_eq!(table.finish(), "| what | how much |\n|---|---:|\n| a | 1 |\n\n");
    }
}
