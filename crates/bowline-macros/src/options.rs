//! The options in the parentheses of an attribute.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Token, parenthesized, parse_quote};

use crate::signature::Signature;

/// What a function is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// With its article, for messages.
    pub(crate) fn noun(self) -> String {
        format!("a {}", self.name())
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "timeout_secs",
                "icon",
                "scopes",
                "disabled",
                "crate",
            ],
            Self::Prompt => {
                &["name", "title", "description", "icon", "complete", "scopes", "disabled", "crate"]
            }
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "icon",
                "complete",
                "scopes",
                "allow_unsafe_values",
                "disabled",
                "crate",
            ],
        }
    }
}

/// The options of one attribute, in the order they were written.
pub(crate) struct Options {
    kind: Kind,
    uri: Option<LitStr>,
    list: Vec<Choice>,
}

struct Choice {
    name: Ident,
    value: Value,
}

enum Value {
    Flag,
    Given(Expr),
    Crate(Path),
    Completers(Punctuated<Completer, Token![,]>),
}

/// `argument = function`.
struct Completer {
    argument: Ident,
    function: Expr,
}

impl Parse for Completer {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let argument = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self { argument, function: input.parse()? })
    }
}

impl Options {
    /// # Errors
    /// When an option is unknown, given twice, or lacks its value.
    pub(crate) fn parse(kind: Kind, tokens: TokenStream) -> syn::Result<Self> {
        let parse = |input: ParseStream<'_>| Self::parse_list(kind, input);
        parse.parse2(tokens)
    }

    fn parse_list(kind: Kind, input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self { kind, uri: None, list: Vec::new() };
        if kind == Kind::Resource {
            if !input.peek(LitStr) {
                return Err(
                    input.error("a resource starts with its URI: `#[resource(\"scheme:…\")]`")
                );
            }
            options.uri = Some(input.parse()?);
            parse_comma(input)?;
        }
        while !input.is_empty() {
            let choice = parse_choice(kind, input)?;
            let is_repeated = options.find(&choice.name.to_string()).is_some();
            if is_repeated && choice.name != "icon" {
                let message = format!("`{}` is given twice", choice.name);
                return Err(syn::Error::new(choice.name.span(), message));
            }
            options.list.push(choice);
            parse_comma(input)?;
        }
        Ok(options)
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.list.iter().find(|choice| choice.name == name).map(|choice| &choice.value)
    }

    fn given(&self, name: &str) -> Option<&Expr> {
        match self.find(name)? {
            Value::Given(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn uri(&self) -> Option<&LitStr> {
        self.uri.as_ref()
    }

    /// Where the `bowline` crate is.
    pub(crate) fn krate(&self) -> Path {
        match self.find("crate") {
            Some(Value::Crate(path)) => path.clone(),
            _ => parse_quote!(::bowline),
        }
    }

    /// The name, if it is not the function's.
    pub(crate) fn name(&self) -> Option<TokenStream> {
        self.given("name").map(ToTokens::to_token_stream)
    }

    pub(crate) fn description(&self) -> Option<TokenStream> {
        self.given("description").map(ToTokens::to_token_stream)
    }

    /// The builder calls for the other options.
    ///
    /// # Errors
    /// When `complete` names an argument that does not exist.
    pub(crate) fn calls(&self, krate: &Path, signature: &Signature) -> syn::Result<TokenStream> {
        let mut calls = TokenStream::new();
        for Choice { name, value } in &self.list {
            let call = match value {
                Value::Completers(completers) => complete_calls(completers, signature)?,
                Value::Crate(_) => TokenStream::new(),
                Value::Flag => flag_call(name, true),
                Value::Given(value) => given_call(name, value, krate)?,
            };
            calls.extend(call);
        }
        Ok(calls)
    }
}

fn parse_comma(input: ParseStream<'_>) -> syn::Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

fn parse_choice(kind: Kind, input: ParseStream<'_>) -> syn::Result<Choice> {
    let name = input.call(Ident::parse_any)?;
    let text = name.to_string();
    if !kind.options().contains(&text.as_str()) {
        let known = kind.options().join(", ");
        let message = format!("unknown option `{text}`; `#[{}]` accepts {known}", kind.name());
        return Err(syn::Error::new(name.span(), message));
    }
    let value = match text.as_str() {
        "complete" => {
            let inside;
            parenthesized!(inside in input);
            Value::Completers(Punctuated::parse_terminated(&inside)?)
        }
        "crate" => {
            input.parse::<Token![=]>()?;
            Value::Crate(input.call(Path::parse_mod_style)?)
        }
        _ if input.parse::<Option<Token![=]>>()?.is_some() => Value::Given(input.parse()?),
        _ if is_switch(&text) => Value::Flag,
        _ => {
            let message = format!("`{text}` needs a value: `{text} = …`");
            return Err(syn::Error::new(name.span(), message));
        }
    };
    Ok(Choice { name, value })
}

/// Options that are true when present.
fn is_switch(name: &str) -> bool {
    is_plain_switch(name) || matches!(name, "destructive" | "open_world")
}

/// Those whose builder method takes no argument.
fn is_plain_switch(name: &str) -> bool {
    matches!(name, "read_only" | "idempotent" | "disabled" | "allow_unsafe_values")
}

fn flag_call(name: &Ident, is_on: bool) -> TokenStream {
    match (is_plain_switch(&name.to_string()), is_on) {
        (true, true) => quote!(.#name()),
        (true, false) => TokenStream::new(),
        (false, _) => quote!(.#name(#is_on)),
    }
}

fn given_call(name: &Ident, value: &Expr, krate: &Path) -> syn::Result<TokenStream> {
    let text = name.to_string();
    if is_switch(&text) {
        let Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value, .. }), .. }) = value else {
            let message = format!("`{text}` must be `true` or `false`");
            return Err(syn::Error::new_spanned(value, message));
        };
        return Ok(flag_call(name, *value));
    }
    Ok(match text.as_str() {
        // These are arguments of `new`, or replace the doc comment.
        "name" | "description" => TokenStream::new(),
        "icon" => quote!(.icon(#krate::private::icon(#value))),
        "timeout_secs" => quote!(.timeout(::core::time::Duration::from_secs(#value))),
        _ => quote!(.#name(#value)),
    })
}

fn complete_calls(
    completers: &Punctuated<Completer, Token![,]>,
    signature: &Signature,
) -> syn::Result<TokenStream> {
    let mut calls = TokenStream::new();
    for Completer { argument, function } in completers {
        let found = signature.arguments().find(|it| it.name == *argument);
        let wire = match found {
            Some(found) => found.wire.clone(),
            None if signature.has_whole() => argument.unraw().to_string(),
            None => {
                let message =
                    format!("cannot complete `{argument}`: the function has no such parameter");
                return Err(syn::Error::new(argument.span(), message));
            }
        };
        calls.extend(quote!(.complete(#wire, #function)));
    }
    Ok(calls)
}
