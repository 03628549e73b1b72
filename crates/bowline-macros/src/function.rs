//! `#[tool]`, `#[prompt]` and `#[resource]` on a free function.
//!
//! The function becomes one of the same name without parameters, which returns a value that stands
//! for it: a part of a server, with the original as its method `call`. Because the name stays that
//! of a function, variables may have it too, and no type or crate is shadowed by it. Inside `call`
//! the original keeps its name, so it can call itself.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Ident, ItemFn, Pat, PatType, Path, parse_quote};

use crate::build::{Callee, Marked, own};
use crate::doc;
use crate::options::{Kind, Options};
use crate::signature::strip_all;

pub(crate) fn expand(kind: Kind, options: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = format!("`#[{}]` belongs on a function", kind.name());
        let error = syn::Error::new_spanned(first_line(item), message).to_compile_error();
        return quote!(#error #item);
    };
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
        let message =
            "a method can only be marked inside a `#[server]` block: put `#[server]` on its `impl`";
        let error = syn::Error::new_spanned(receiver, message).to_compile_error();
        strip_all(&mut function.sig);
        return quote!(#error #function);
    }
    let value = value_name(&function);
    let expanded = Options::parse(kind, options).and_then(|options| {
        let krate = options.krate();
        let marked = Marked::take(options, &function.attrs, &mut function.sig)?;
        let part = marked.part(&krate, Callee::Value(&value))?;
        Ok((krate, part))
    });
    let (error, krate, part) = match expanded {
        Ok((krate, part)) => (TokenStream::new(), krate, part),
        // Keep the function and its value, so that their users do not cause further errors.
        Err(error) => {
            strip_all(&mut function.sig);
            (error.to_compile_error(), parse_quote!(::bowline), quote!(::core::unreachable!()))
        }
    };
    let (item, conversions) = (item_of(kind, &function), conversions(kind, &function, &krate));
    let methods = methods_of(kind, &function, &krate, &part);
    quote!(#error #item #methods #conversions)
}

/// The first tokens of an item: the span of errors about the whole item.
fn first_line(item: &TokenStream) -> TokenStream {
    let is_body = |token: &proc_macro2::TokenTree| {
        matches!(token, proc_macro2::TokenTree::Group(group)
            if group.delimiter() == proc_macro2::Delimiter::Brace)
    };
    item.clone().into_iter().take_while(|token| !is_body(token)).collect()
}

/// The name of the struct that stands for the function.
fn value_name(function: &ItemFn) -> Ident {
    format_ident!("__bowline_{}", function.sig.ident.unraw(), span = Span::call_site())
}

/// The function without parameters, and the struct that it returns.
fn item_of(kind: Kind, function: &ItemFn) -> TokenStream {
    let (visibility, name, value) = (&function.vis, &function.sig.ident, value_name(function));
    let kept = function.attrs.iter().filter(|it| doc::is_doc(it) || is_cfg(it) || is_allow(it));
    let usage = doc::text(&function.attrs).map(|_| {
        let text = format!(
            "\n\nThis is {} of a server; `{}().call(…)` calls the function itself.",
            kind.noun(),
            name.unraw()
        );
        quote!(#[doc = #text])
    });
    let (cfgs, unused) = (cfgs(&function.attrs), unused(kind));
    quote! {
        #(#kept)*
        #usage
        #visibility fn #name() -> #value {
            #value
        }

        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #[must_use = #unused]
        #visibility struct #value;
    }
}

fn unused(kind: Kind) -> String {
    format!("{} does nothing until it is added to a server", kind.noun())
}

/// The original function as `call`, and the part as `tool`, `prompt` or `resource`.
fn methods_of(kind: Kind, function: &ItemFn, krate: &Path, part: &TokenStream) -> TokenStream {
    let ItemFn { vis: visibility, sig: signature, block, .. } = function;
    let (name, output, word) = (&signature.ident, &signature.output, &signature.asyncness);
    let (generics, conditions) = (&signature.generics, &signature.generics.where_clause);
    let (cfgs, value) = (cfgs(&function.attrs), value_name(function));
    let others = function.attrs.iter().filter(|it| !doc::is_doc(it) && !is_cfg(it));
    let (names, types): (Vec<_>, Vec<_>) =
        signature.inputs.iter().enumerate().filter_map(outer_parameter).unzip();
    let (original, wait) = (own("original"), word.map(|_| quote!(.await)));
    let (method, part_type) = (Ident::new(kind.name(), Span::call_site()), kind.part(krate));
    quote! {
        #(#cfgs)*
        impl #value {
            /// Calls the function itself, without a server.
            #[allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]
            #[allow(clippy::too_many_arguments, clippy::unused_self)]
            #visibility #word fn call #generics (self, #(#names: #types),*) #output #conditions {
                // In a block of its own, because a parameter may have the name of the function.
                let #original = {
                    #(#others)*
                    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
                    #[allow(clippy::unused_async)]
                    #signature #block
                    #name
                };
                #original(#(#names),*) #wait
            }

            /// The part that a server is built from, for settings that the attribute lacks.
            #[allow(clippy::unused_self)]
            #visibility fn #method(self) -> #part_type {
                #part
            }
        }
    }
}

/// The parameters of `call`: the same types, and names where the function has patterns.
fn outer_parameter((index, input): (usize, &FnArg)) -> Option<(Ident, TokenStream)> {
    let FnArg::Typed(PatType { pat: pattern, ty, .. }) = input else { return None };
    let name = match &**pattern {
        Pat::Ident(pattern) => pattern.ident.clone(),
        _ => own(&format!("parameter_{index}")),
    };
    Some((name, ty.to_token_stream()))
}

fn conversions(kind: Kind, function: &ItemFn, krate: &Path) -> TokenStream {
    let (value, cfgs) = (value_name(function), cfgs(&function.attrs));
    let (method, part) = (Ident::new(kind.name(), Span::call_site()), kind.part(krate));
    let (this, parts) = (own("this"), own("parts"));
    quote! {
        #(#cfgs)*
        #[automatically_derived]
        impl ::core::convert::From<#value> for #part {
            fn from(#this: #value) -> Self {
                #this.#method()
            }
        }

        #(#cfgs)*
        #[automatically_derived]
        impl #krate::Part for #value {
            fn add_to(self, #parts: &mut #krate::Parts) {
                #krate::Parts::add(#parts, self.#method());
            }
        }
    }
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

fn is_allow(attribute: &Attribute) -> bool {
    attribute.path().is_ident("allow")
}

/// The `#[cfg]` attributes, which apply to all generated code.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| is_cfg(attribute)).collect()
}
