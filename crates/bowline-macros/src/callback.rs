//! Functions that an option names: completers, and rules of visibility.
//!
//! In a `#[server]` block they may be methods of the value that all calls share, written
//! `self.method`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, Ident, Member, Path};

use crate::build::own;

/// How the functions of one attribute are reached.
pub(crate) struct Callback<'a> {
    pub(crate) krate: &'a Path,
    /// The variable with the shared value, an `Arc`; none outside of `#[server]`.
    pub(crate) this: Option<&'a Ident>,
}

impl Callback<'_> {
    /// A function that suggests values.
    ///
    /// # Errors
    /// When it is a method, and there is no value to call it on.
    pub(crate) fn completer(&self, function: &Expr) -> syn::Result<TokenStream> {
        let Some((this, method)) = self.method(function)? else {
            return Ok(function.to_token_stream());
        };
        let (krate, typed) = (self.krate, own("typed"));
        Ok(quote! {{
            let #this = ::std::sync::Arc::clone(&#this);
            move |#typed: #krate::Completing| {
                let #this = ::std::sync::Arc::clone(&#this);
                async move { #this.#method(#typed).await }
            }
        }})
    }

    /// A function that decides by the caller.
    ///
    /// # Errors
    /// When it is a method, and there is no value to call it on.
    pub(crate) fn rule(&self, function: &Expr) -> syn::Result<TokenStream> {
        let Some((this, method)) = self.method(function)? else {
            return Ok(function.to_token_stream());
        };
        let (krate, caller) = (self.krate, own("caller"));
        Ok(quote! {{
            let #this = ::std::sync::Arc::clone(&#this);
            move |#caller: &#krate::Caller| #this.#method(#caller)
        }})
    }

    /// The variable and the method of `self.method`, or nothing for other expressions.
    fn method<'e>(&self, function: &'e Expr) -> syn::Result<Option<(&Ident, &'e Ident)>> {
        let Expr::Field(field) = function else { return Ok(None) };
        let is_self = matches!(&*field.base, Expr::Path(base) if base.path.is_ident("self"));
        match (&field.member, self.this) {
            (Member::Named(method), Some(this)) if is_self => Ok(Some((this, method))),
            _ if is_self => {
                let message = "`self` exists only inside a `#[server]` block: name a function";
                Err(syn::Error::new_spanned(function, message))
            }
            _ => Ok(None),
        }
    }
}
