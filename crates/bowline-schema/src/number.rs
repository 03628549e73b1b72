//! Numbers as JSON defines them: by value, not by how they are written or stored.

use std::cmp::Ordering;

use serde_json::Number;

/// Whether the number has no fraction. `1.0` is an integer.
pub(crate) fn is_integer(number: &Number) -> bool {
    match Stored::of(number) {
        Stored::Integer(_) => true,
        Stored::Float(float) => float.is_finite() && float.fract() == 0.0,
    }
}

/// Compares exactly: no integer is rounded to a float on the way.
pub(crate) fn compare(left: &Number, right: &Number) -> Ordering {
    match (Stored::of(left), Stored::of(right)) {
        (Stored::Integer(left), Stored::Integer(right)) => left.cmp(&right),
        (Stored::Float(left), Stored::Float(right)) => left.total_cmp(&right),
        (Stored::Integer(left), Stored::Float(right)) => compare_mixed(left, right),
        (Stored::Float(left), Stored::Integer(right)) => compare_mixed(right, left).reverse(),
    }
}

/// Whether `number` is a whole multiple of `divisor`, in decimal: 19.99 is a multiple of 0.01.
pub(crate) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    if let (Stored::Integer(number), Stored::Integer(divisor)) =
        (Stored::of(number), Stored::of(divisor))
    {
        return divisor != 0 && number % divisor == 0;
    }
    let (Some(number), Some(divisor)) = (Decimal::of(number), Decimal::of(divisor)) else {
        return false;
    };
    number.is_multiple_of(divisor)
}

/// A key that is the same for equal numbers.
pub(crate) fn canonical_bits(number: &Number) -> u64 {
    match Stored::of(number) {
        // Rounding may make different numbers equal, but never equal ones different.
        #[expect(clippy::cast_precision_loss, reason = "a hash may lose bits")]
        Stored::Integer(integer) => (integer as f64 + 0.0).to_bits(),
        Stored::Float(float) => (float + 0.0).to_bits(),
    }
}

#[derive(Clone, Copy)]
enum Stored {
    /// Wide enough for `i64` and `u64` alike.
    Integer(i128),
    Float(f64),
}

impl Stored {
    fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_i64() {
            Self::Integer(integer.into())
        } else if let Some(integer) = number.as_u64() {
            Self::Integer(integer.into())
        } else {
            // Adding zero turns -0.0 into 0.0, so that the two compare as equal.
            Self::Float(number.as_f64().unwrap_or(f64::INFINITY) + 0.0)
        }
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    const BEYOND: f64 = 1e30;
    if float.abs() >= BEYOND {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole, and less than 1e30")]
    let floor = float.floor() as i128;
    integer.cmp(&floor).then(if float.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })
}

/// `digits` × 10^`exponent`, with no zero at the end of `digits`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that parses as this number. Divisibility ignores the sign.
    fn of(number: &Number) -> Option<Self> {
        let text = format!("{:e}", number.as_f64().filter(|float| float.is_finite())?);
        let text = match Stored::of(number) {
            Stored::Integer(integer) => integer.to_string(),
            Stored::Float(_) => text,
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: u64 =
            format!("{}{fraction}", whole.trim_start_matches('-')).parse().ok()?;
        let mut exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
        while digits != 0 && digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        Some(Self { digits, exponent })
    }

    fn is_multiple_of(self, divisor: Self) -> bool {
        if divisor.digits == 0 {
            return false;
        }
        if self.digits == 0 {
            return true;
        }
        // A divisor with more zeros at the end cannot divide digits that do not end in zero,
        // unless its own digits cancel them, which they cannot: they are whole.
        let Ok(shift) = u32::try_from(self.exponent - divisor.exponent) else { return false };
        let modulus = u128::from(divisor.digits);
        let scaled = u128::from(self.digits) % modulus * power_of_ten(shift, modulus);
        scaled.is_multiple_of(modulus)
    }
}

fn power_of_ten(exponent: u32, modulus: u128) -> u128 {
    let (mut power, mut square, mut left) = (1 % modulus, 10 % modulus, exponent);
    while left > 0 {
        if left & 1 == 1 {
            power = power * square % modulus;
        }
        square = square * square % modulus;
        left >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn comparison_is_exact() {
        fn check(left: &str, right: &str, expected: Ordering) {
            assert_eq!(compare(&number(left), &number(right)), expected, "{left} {right}");
            assert_eq!(compare(&number(right), &number(left)), expected.reverse());
        }
        check("1", "1.0", Ordering::Equal);
        check("0", "-0.0", Ordering::Equal);
        check("0.0", "-0.0", Ordering::Equal);
        check("9007199254740993", "9007199254740992.0", Ordering::Greater);
        check("18446744073709551615", "18446744073709551616", Ordering::Less);
        check("-9223372036854775808", "-9223372036854775808.0", Ordering::Equal);
        check("-1", "-1.5", Ordering::Greater);
        check("-2", "-1.5", Ordering::Less);
        check("1", "1e300", Ordering::Less);
        check("1", "-1e300", Ordering::Greater);
    }

    #[test]
    fn multiples_are_decimal() {
        fn check(of: &str, divisor: &str, expected: bool) {
            assert_eq!(is_multiple(&number(of), &number(divisor)), expected, "{of} / {divisor}");
        }
        check("10", "5", true);
        check("11", "5", false);
        check("19.99", "0.01", true);
        check("0.0075", "0.0001", true);
        check("0.00751", "0.0001", false);
        check("4.5", "1.5", true);
        check("-4.5", "1.5", true);
        check("35", "1.5", false);
        check("0", "0.3", true);
        check("1e308", "0.123456789", false);
        check("12391239123", "1e-8", true);
        check("1e308", "2", true);
        check("18446744073709551615", "5", true);
        check("5", "0.5", true);
        check("100", "1e3", false);
        check("15", "1e1", false);
        check("3e5", "1e1", true);
    }
}
