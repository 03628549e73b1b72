//! The variables of a URI template, checked against the parameters of a function.
//!
//! Only names are read here. The server checks the template itself before it starts.

use syn::LitStr;

use crate::signature::Signature;

/// # Errors
/// When a variable has no parameter, or a parameter no variable.
pub(crate) fn check(uri: &LitStr, signature: &Signature) -> syn::Result<()> {
    let text = uri.value();
    let Some(variables) = variables(&text) else {
        return Err(syn::Error::new(uri.span(), "a `{` in this URI is never closed"));
    };
    if signature.has_whole() {
        return Ok(());
    }
    let is_argument =
        |variable: &&str| signature.arguments().any(|argument| argument.wire == **variable);
    if let Some(missing) = variables.iter().find(|variable| !is_argument(variable)) {
        let message = format!(
            "the URI has a variable `{{{missing}}}`, but the function has no parameter `{missing}`"
        );
        return Err(syn::Error::new(uri.span(), message));
    }
    match signature.arguments().find(|argument| !variables.contains(&argument.wire.as_str())) {
        Some(extra) => {
            let name = &extra.wire;
            let message = format!(
                "the function has a parameter `{name}`, but the URI has no variable `{{{name}}}`"
            );
            Err(syn::Error::new(extra.name.span(), message))
        }
        None => Ok(()),
    }
}

/// The names in braces; `None` when a brace is not closed.
fn variables(uri: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = uri;
    while let Some((_, behind)) = rest.split_once('{') {
        let (inside, behind) = behind.split_once('}')?;
        let list = inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        let name = |variable: &'_ str| variable.find([':', '*']).unwrap_or(variable.len());
        names.extend(list.split(',').map(|variable| &variable[..name(variable)]));
        rest = behind;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn names_come_without_operators_and_modifiers() {
        assert_eq!(variables("a:b"), Some(vec![]));
        assert_eq!(variables("a:{b}/{+c}{?d,e*}{&f:3}"), Some(vec!["b", "c", "d", "e", "f"]));
        assert_eq!(variables("a:{b"), None);
    }
}
