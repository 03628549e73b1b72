//! `#[tool]`, `#[prompt]` and `#[resource]` on a free function.
//!
//! The function becomes a unit struct of the same name: a value that can be passed to `with`, with
//! the function as its method `call`. Inside that method the function keeps its name, so its body
//! may declare a variable of that name, or call itself.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, FnArg, Ident, ItemFn, Pat, PatType, Path, parse_quote};

use crate::build::{Callee, Marked};
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
    let krate: Path = parse_quote!(::bowline);
    let expanded = Options::parse(kind, options).and_then(|options| {
        let krate = options.krate();
        let marked = Marked::take(options, &function.attrs, &mut function.sig)?;
        let registration = marked.registration(&krate, Callee::Value)?;
        Ok((krate, registration))
    });
    match expanded {
        Ok((krate, registration)) => {
            let item = item_of(&function);
            let part = part_of(&function, &krate, &registration);
            quote!(#item #part)
        }
        // Keep the function, so that its callers do not cause further errors.
        Err(error) => {
            strip_all(&mut function.sig);
            let (error, item) = (error.to_compile_error(), item_of(&function));
            let part = part_of(&function, &krate, &TokenStream::new());
            quote!(#error #item #part)
        }
    }
}

/// The first tokens of an item: the span of errors about the whole item.
fn first_line(item: &TokenStream) -> TokenStream {
    let is_body = |token: &proc_macro2::TokenTree| {
        matches!(token, proc_macro2::TokenTree::Group(group)
            if group.delimiter() == proc_macro2::Delimiter::Brace)
    };
    item.clone().into_iter().take_while(|token| !is_body(token)).collect()
}

/// The unit struct.
fn value_of(function: &ItemFn) -> TokenStream {
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let kept = function.attrs.iter().filter(|it| doc::is_doc(it) || is_cfg(it));
    quote! {
        #(#kept)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name;
    }
}

/// The unit struct with its `call`.
fn item_of(function: &ItemFn) -> TokenStream {
    let value = value_of(function);
    let ItemFn { vis: visibility, sig: signature, block, .. } = function;
    let (name, output, word) = (&signature.ident, &signature.output, &signature.asyncness);
    let (generics, conditions) = (&signature.generics, &signature.generics.where_clause);
    let cfgs = cfgs(&function.attrs);
    let others = function.attrs.iter().filter(|it| !doc::is_doc(it) && !is_cfg(it));
    let (names, types): (Vec<_>, Vec<_>) =
        signature.inputs.iter().enumerate().filter_map(outer_parameter).unzip();
    let wait = word.map(|_| quote!(.await));
    quote! {
        #value

        #(#cfgs)*
        impl #name {
            /// Calls the function itself, without a server.
            #[allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]
            #[allow(clippy::too_many_arguments, clippy::unused_self)]
            #visibility #word fn call #generics (self, #(#names: #types),*) #output #conditions {
                #(#others)*
                #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
                #[allow(clippy::unused_async)]
                #signature #block
                #name(#(#names),*) #wait
            }
        }
    }
}

/// The parameters of `call`: the same types, and names where the function has patterns.
fn outer_parameter((index, input): (usize, &FnArg)) -> Option<(Ident, TokenStream)> {
    let FnArg::Typed(PatType { pat: pattern, ty, .. }) = input else { return None };
    let name = match &**pattern {
        Pat::Ident(pattern) => pattern.ident.clone(),
        _ => format_ident!("parameter_{index}"),
    };
    Some((name, ty.to_token_stream()))
}

fn part_of(function: &ItemFn, krate: &Path, registration: &TokenStream) -> TokenStream {
    let (name, cfgs) = (&function.sig.ident, cfgs(&function.attrs));
    let this = (!registration.is_empty()).then(|| quote!(let this = self;));
    let parts = if registration.is_empty() { quote!(_) } else { quote!(parts) };
    quote! {
        #(#cfgs)*
        #[automatically_derived]
        impl #krate::Part for #name {
            fn add_to(self, #parts: &mut #krate::Parts) {
                #this
                #registration
            }
        }
    }
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// The `#[cfg]` attributes, which apply to all generated code.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| is_cfg(attribute)).collect()
}
