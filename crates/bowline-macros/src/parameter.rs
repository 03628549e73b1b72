//! One parameter of a function: an argument, all arguments, the context, or state of the server.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, ExprLit, GenericArgument, Ident, Lit, LitStr, Meta, Pat, PatType,
    PathArguments, Token, Type, parse_quote,
};

use crate::doc;
use crate::options::Kind;

/// The role of a parameter.
pub(crate) enum Parameter {
    /// The request.
    Context { is_borrowed: bool, name: TokenStream },
    /// `State<T>`: a value that the server was given, of this type.
    State(Box<Type>),
    /// `#[args]`: all arguments at once.
    Whole(Box<Type>),
    /// One argument.
    Argument(Box<Argument>),
}

/// One argument.
pub(crate) struct Argument {
    /// What the function calls it.
    pub(crate) name: Ident,
    /// What clients call it.
    pub(crate) wire: String,
    pub(crate) ty: Type,
    /// The attributes of the field: documentation, `serde`, `schemars`.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<Expr>,
    /// Whether the user says how it is read or described, with `#[serde(…)]` or `#[schemars(…)]`.
    pub(crate) is_customized: bool,
}

impl Parameter {
    /// Reads a parameter, and removes the attributes that only the macros know.
    ///
    /// # Errors
    /// When clients could not send such an argument.
    pub(crate) fn take(kind: Kind, parameter: &mut PatType) -> syn::Result<Self> {
        let ours = strip(&mut parameter.attrs);
        let has = |name: &str| ours.iter().any(|attribute| attribute.path().is_ident(name));
        if let Some(cfg) = parameter.attrs.iter().find(|it| it.path().is_ident("cfg")) {
            let message = "a parameter cannot have `#[cfg]`: put it on the whole function";
            return Err(syn::Error::new_spanned(cfg, message));
        }
        if has("args") {
            return Ok(Self::Whole(parameter.ty.clone()));
        }
        if let (Some(is_borrowed), false) = (context(&parameter.ty), has("arg")) {
            return Ok(Self::Context { is_borrowed, name: parameter.pat.to_token_stream() });
        }
        if let (Some(ty), false) = (state(&parameter.ty), has("arg")) {
            return Ok(Self::State(Box::new(ty.clone())));
        }
        Argument::read(kind, parameter, ours).map(|argument| Self::Argument(Box::new(argument)))
    }

    /// Whether clients send it.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Argument(_))
    }

    pub(crate) fn is_context(&self) -> bool {
        matches!(self, Self::Context { .. })
    }
}

/// Removes documentation and the attributes that only the macros know.
pub(crate) fn strip(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let is_ours = |attribute: &mut Attribute| {
        let ours = ["doc", "arg", "args", "serde", "schemars"];
        ours.iter().any(|name| attribute.path().is_ident(name))
    };
    attributes.extract_if(.., is_ours).collect()
}

/// Whether the type is `&Context`, or `Context`, or neither.
fn context(ty: &Type) -> Option<bool> {
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let is_plain = matches!(last.arguments, PathArguments::None);
            (is_plain && last.ident == "Context").then_some(false)
        }
        Type::Reference(reference) if reference.mutability.is_none() => {
            context(&reference.elem).map(|_| true)
        }
        _ => None,
    }
}

/// The `T` of `State<T>`.
fn state(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "State")?;
    let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    match list.args.first() {
        Some(GenericArgument::Type(ty)) if list.args.len() == 1 => Some(ty),
        _ => None,
    }
}

impl Argument {
    fn read(kind: Kind, parameter: &PatType, ours: Vec<Attribute>) -> syn::Result<Self> {
        let Pat::Ident(pattern) = &*parameter.pat else {
            let message = "an argument needs a name, for clients to send it by; \
                           `#[args]` takes all of them in one struct";
            return Err(syn::Error::new_spanned(&parameter.pat, message));
        };
        check_type(kind, &parameter.ty)?;
        let name = pattern.ident.clone();
        let mut argument = Self {
            wire: name.unraw().to_string(),
            name,
            ty: (*parameter.ty).clone(),
            attributes: Vec::new(),
            default: None,
            is_customized: false,
        };
        for attribute in ours {
            if attribute.path().is_ident("arg") {
                argument.read_options(&attribute)?;
                continue;
            }
            if let Some(name) = serde_rename(&attribute) {
                argument.wire = name;
            }
            argument.is_customized |= !doc::is_doc(&attribute);
            argument.attributes.push(attribute);
        }
        Ok(argument)
    }

    /// `#[arg(default = …, rename = "…", description = "…")]`.
    fn read_options(&mut self, attribute: &Attribute) -> syn::Result<()> {
        if matches!(attribute.meta, Meta::Path(_)) {
            return Ok(());
        }
        attribute.parse_nested_meta(|option| {
            if option.path.is_ident("default") {
                match option.input.peek(Token![=]) {
                    true => self.default = Some(option.value()?.parse()?),
                    false => self.attributes.push(parse_quote!(#[serde(default)])),
                }
            } else if option.path.is_ident("rename") {
                let name: LitStr = option.value()?.parse()?;
                self.wire = name.value();
                self.attributes.push(parse_quote!(#[serde(rename = #name)]));
            } else if option.path.is_ident("description") {
                let text: Expr = option.value()?.parse()?;
                self.attributes.push(parse_quote!(#[schemars(description = #text)]));
            } else {
                let name = doc::shown(&option.path);
                let known = "default, rename, description";
                return Err(
                    option.error(format!("unknown option `{name}`; `#[arg]` accepts {known}"))
                );
            }
            Ok(())
        })
    }
}

/// The name in `#[serde(rename = "…")]`.
fn serde_rename(attribute: &Attribute) -> Option<String> {
    if !attribute.path().is_ident("serde") {
        return None;
    }
    let list = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    list.iter().find_map(|option| match option {
        Meta::NameValue(pair) if pair.path.is_ident("rename") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Some(name.value()),
            _ => None,
        },
        _ => None,
    })
}

fn check_type(kind: Kind, ty: &Type) -> syn::Result<()> {
    if let Type::ImplTrait(_) = ty {
        return Err(generic(kind, ty));
    }
    if has_reference(ty.to_token_stream()) {
        let message = format!(
            "an argument cannot be a reference, because it must own its value: use `{}`",
            owned(ty)
        );
        return Err(syn::Error::new_spanned(ty, message));
    }
    Ok(())
}

pub(crate) fn generic(kind: Kind, tokens: &impl ToTokens) -> syn::Error {
    let message = format!(
        "{} cannot be generic, because clients need one concrete type: write a function for each type",
        kind.noun()
    );
    syn::Error::new_spanned(tokens, message)
}

fn has_reference(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(sign) => sign.as_char() == '&',
        TokenTree::Group(group) => has_reference(group.stream()),
        _ => false,
    })
}

/// The type to use instead of one with references.
fn owned(ty: &Type) -> String {
    match ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => format!("Vec<{}>", owned(&slice.elem)),
            elem => owned(elem),
        },
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Path(path) if path.path.is_ident("Path") => "PathBuf".to_owned(),
        Type::Path(path) => owned_generic(path),
        _ => doc::shown(ty),
    }
}

/// Also turns `Option<&str>` and `Vec<&str>` into owning types.
fn owned_generic(path: &syn::TypePath) -> String {
    let last = path.path.segments.last();
    match last.map(|segment| (segment, &segment.arguments)) {
        Some((segment, PathArguments::AngleBracketed(list))) if list.args.len() == 1 => {
            match &list.args[0] {
                GenericArgument::Type(inner) => format!("{}<{}>", segment.ident, owned(inner)),
                _ => doc::shown(path),
            }
        }
        _ => doc::shown(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_an_owned_counterpart() {
        let check = |ty: Type, expected: &str| assert_eq!(owned(&ty), expected);
        check(parse_quote!(&str), "String");
        check(parse_quote!(&'a [&str]), "Vec<String>");
        check(parse_quote!(Option<&str>), "Option<String>");
        check(parse_quote!(&std::collections::HashSet<&str>), "HashSet<String>");
        check(parse_quote!(&Point), "Point");
    }

    #[test]
    fn contexts_are_recognised_by_their_last_name() {
        let check = |ty: Type, expected| assert_eq!(context(&ty), expected);
        check(parse_quote!(Context), Some(false));
        check(parse_quote!(&bowline::Context), Some(true));
        check(parse_quote!(&'a Context), Some(true));
        check(parse_quote!(&mut Context), None);
        check(parse_quote!(Context<T>), None);
        check(parse_quote!(Contextual), None);
    }
}
