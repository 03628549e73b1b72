//! Durations as text, such as `"30s"`, read at compile time.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, ExprLit, Lit};

/// The units, the longest names first among those that start alike.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// An expression of type `Duration`: text is read, anything else stays as it is.
///
/// # Errors
/// When the text is not a duration, or a number has no unit.
pub(crate) fn tokens(value: &Expr) -> syn::Result<TokenStream> {
    let found = match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => parse(&text.value()),
        Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) => None,
        other => return Ok(other.to_token_stream()),
    };
    let Some(found) = found else {
        let message = "expected a duration with its unit (ms, s, m or h), such as `\"30s\"` or \
                       `\"1m30s\"`, or an expression of type `Duration`";
        return Err(syn::Error::new_spanned(value, message));
    };
    let (seconds, nanos) = (found.as_secs(), found.subsec_nanos());
    Ok(quote!(::core::time::Duration::new(#seconds, #nanos)))
}

/// One or more whole numbers, each with its unit.
fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = None;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let behind = rest[digits..].trim_start();
        let (name, millis) = UNITS.into_iter().find(|(name, _)| behind.starts_with(name))?;
        let part = Duration::from_millis(number.checked_mul(millis)?);
        total = Some(total.unwrap_or(Duration::ZERO).checked_add(part)?);
        rest = behind[name.len()..].trim_start();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_number_with_a_unit() {
        let check = |text, millis: Option<u64>| {
            assert_eq!(parse(text), millis.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("30s", Some(30_000));
        check(" 2 m ", Some(120_000));
        check("1h30m", Some(5_400_000));
        check("1m 30s", Some(90_000));
        for wrong in ["", "30", "s", "-1s", "1.5s", "3 days", "1m x", "99999999999999999999s"] {
            check(wrong, None);
        }
        check(&format!("{}h", u64::MAX), None);
    }
}
