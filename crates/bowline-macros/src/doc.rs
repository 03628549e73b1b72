//! Doc comments as descriptions.

use quote::ToTokens;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of the doc comments among `attributes`, if there is any.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> =
        attributes.iter().filter_map(value).flat_map(|it| lines(&it)).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The text of one `#[doc = "…"]`. Computed ones (`include_str!`) cannot be read here.
fn value(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_doc(attribute) => Some(text.value()),
        _ => None,
    }
}

/// `/// text` comes as ` text`; `/** … */` comes whole, its lines often with a star.
fn lines(text: &str) -> Vec<String> {
    if !text.contains('\n') {
        return vec![text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned()];
    }
    let line = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix('*').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line).to_owned()
    };
    text.lines().map(line).collect()
}

/// What a type or pattern looks like in a message.
pub(crate) fn shown(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" :: ", "::"),
        (" ,", ","),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn paragraphs_stay_and_the_leading_space_goes() {
        let attributes: Vec<Attribute> = vec![
            parse_quote!(#[doc = " Adds numbers."]),
            parse_quote!(#[doc = ""]),
            parse_quote!(#[inline]),
            parse_quote!(#[doc = "  - indented "]),
            parse_quote!(#[doc(hidden)]),
        ];
        assert_eq!(text(&attributes).as_deref(), Some("Adds numbers.\n\n - indented"));
    }

    #[test]
    fn blocks_lose_their_stars() {
        let attributes: Vec<Attribute> =
            vec![parse_quote!(#[doc = "\n * Adds.\n *\n * Numbers.\n "])];
        assert_eq!(text(&attributes).as_deref(), Some("Adds.\n\nNumbers."));
    }

    #[test]
    fn nothing_is_no_description() {
        assert_eq!(text(&[parse_quote!(#[inline])]), None);
    }
}
