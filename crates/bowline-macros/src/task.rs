//! The option `task`: when a call of a tool becomes a task.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, ExprLit, Lit, Path};

use crate::duration;

/// `task`.
pub(crate) fn at_once(krate: &Path) -> TokenStream {
    quote!(.task(#krate::TaskMode::Optional))
}

/// `task = "required"`, or an expression of type `TaskMode`.
///
/// # Errors
/// When the text is not a mode.
pub(crate) fn named(krate: &Path, value: &Expr) -> syn::Result<TokenStream> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
        let mode = value.to_token_stream();
        return Ok(quote!(.task(#mode)));
    };
    match text.value().as_str() {
        "optional" => Ok(at_once(krate)),
        "required" => Ok(quote!(.task(#krate::TaskMode::Required))),
        "on_demand" => Ok(quote!(.task(#krate::TaskMode::OnDemand))),
        _ => {
            let message = "expected `\"optional\"`, `\"required\"` or `\"on_demand\"`, or \
                           `task(after = \"2s\")`";
            Err(syn::Error::new_spanned(value, message))
        }
    }
}

/// `task(after = "2s")`: the only entry.
///
/// # Errors
/// When it is called something else, or is not a duration.
pub(crate) fn later(
    krate: &Path,
    (key, at, value): (&str, Span, &Expr),
) -> syn::Result<TokenStream> {
    if key != "after" {
        let message = format!("unknown entry `{key}`; expected `task(after = \"2s\")`");
        return Err(syn::Error::new(at, message));
    }
    let time = duration::tokens(value)?;
    Ok(quote!(.task(#krate::TaskMode::After(#time))))
}
