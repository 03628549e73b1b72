//! `#[server]` on an `impl` block: all of its marked methods.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Path, Token, parse_quote};

use crate::build::{Callee, Marked, own};
use crate::function::cfgs;
use crate::options::{Kind, Options};
use crate::signature::{Problems, strip_all};

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        let message = "`#[server]` belongs on an `impl` block";
        let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
        return quote!(#error #item);
    };
    let krate: Path = parse_quote!(::bowline);
    let expanded = parse_options(options).and_then(|path| {
        let krate = path.unwrap_or_else(|| krate.clone());
        let statements = registrations(&krate, &mut block)?;
        Ok((krate, statements))
    });
    let (krate, error, statements) = match expanded {
        Ok((krate, statements)) => (krate, TokenStream::new(), statements),
        Err(error) => {
            // Keep the rest of the block, and keep the type a part of a server.
            let _ = registrations(&krate, &mut block);
            (krate, error.to_compile_error(), TokenStream::new())
        }
    };
    if block.trait_.is_some() {
        return quote!(#error #block);
    }
    let group = group_of(&krate, &block, &statements);
    quote!(#error #block #group)
}

/// `crate = path`, or nothing.
fn parse_options(tokens: TokenStream) -> syn::Result<Option<Path>> {
    let parse = |input: ParseStream<'_>| {
        if input.is_empty() {
            return Ok(None);
        }
        let name = input.call(Ident::parse_any)?;
        if name != "crate" {
            let message = format!("unknown option `{name}`; `#[server]` accepts crate");
            return Err(syn::Error::new(name.span(), message));
        }
        input.parse::<Token![=]>()?;
        Path::parse_mod_style(input).map(Some)
    };
    parse.parse2(tokens)
}

/// Removes our attributes from the methods, and generates their code.
fn registrations(krate: &Path, block: &mut ItemImpl) -> syn::Result<TokenStream> {
    if let Some((path, _)) = &block.trait_ {
        let message = "`#[server]` belongs on an `impl` block of the type itself, not of a trait";
        return Err(syn::Error::new_spanned(path, message));
    }
    let mut statements = Vec::new();
    let mut problems = Problems::default();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let written = registration(krate, method);
        strip_all(&mut method.sig);
        statements.extend(problems.note(written).flatten());
    }
    problems.check()?;
    if statements.is_empty() {
        let message = "no method is marked: put `#[tool]`, `#[prompt]` or `#[resource(\"…\")]` on those \
                       that clients may call";
        return Err(syn::Error::new_spanned(&block.self_ty, message));
    }
    Ok(quote!(#(#statements)*))
}

fn registration(krate: &Path, method: &mut ImplItemFn) -> syn::Result<Option<TokenStream>> {
    let mut marks: Vec<(Kind, Attribute)> = Vec::new();
    method.attrs.retain(|attribute| match kind(attribute) {
        Some(kind) => {
            marks.push((kind, attribute.clone()));
            false
        }
        None => true,
    });
    let mut marks = marks.into_iter();
    let Some((kind, mark)) = marks.next() else { return Ok(None) };
    if let Some((_, second)) = marks.next() {
        let message = "a method can have one of these attributes only: write another method that calls this one";
        return Err(syn::Error::new_spanned(second, message));
    }
    let tokens = match &mark.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    let options = Options::parse(kind, tokens)?;
    let marked = Marked::take(options, &method.attrs, &mut method.sig)?;
    let part = marked.part(krate, Callee::Method(&own("this")))?;
    method.attrs.push(parse_quote!(#[allow(clippy::too_many_arguments, clippy::unused_self)]));
    method.attrs.push(parse_quote!(#[allow(clippy::needless_pass_by_value, clippy::unused_async)]));
    let (parts, cfgs) = (own("parts"), cfgs(&method.attrs));
    Ok(Some(quote! {
        #(#cfgs)*
        #krate::Parts::add(#parts, #part);
    }))
}

/// Which of our attributes it is, with or without a path.
fn kind(attribute: &Attribute) -> Option<Kind> {
    let last = attribute.path().segments.last()?;
    Kind::ALL.into_iter().find(|kind| last.ident == kind.name())
}

fn group_of(krate: &Path, block: &ItemImpl, statements: &TokenStream) -> TokenStream {
    let ty = &block.self_ty;
    let (generics, _, conditions) = block.generics.split_for_impl();
    let (this, parts) = (own("this"), own("parts"));
    quote! {
        #[automatically_derived]
        impl #generics #krate::private::Group for #ty #conditions {
            fn add_to(#this: ::std::sync::Arc<Self>, #parts: &mut #krate::Parts) {
                #statements
            }
        }

        #[automatically_derived]
        impl #generics #krate::Part for #ty #conditions {
            fn add_to(self, #parts: &mut #krate::Parts) {
                #krate::private::Group::add_to(::std::sync::Arc::new(self), #parts);
            }
        }
    }
}
