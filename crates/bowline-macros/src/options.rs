//! The options in the parentheses of an attribute.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Token, parenthesized, parse_quote};

use crate::callback::Callback;
use crate::signature::Signature;
use crate::{duration, task};

/// What a function is turned into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// The name of the attribute, and of the method that builds the part.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The type of the part.
    pub(crate) fn part(self, krate: &Path) -> TokenStream {
        match self {
            Self::Tool => quote!(#krate::Tool),
            Self::Prompt => quote!(#krate::Prompt),
            Self::Resource => quote!(#krate::Resource),
        }
    }

    /// With its article, for messages.
    pub(crate) fn noun(self) -> String {
        format!("a {}", self.name())
    }

    /// The options that its attribute accepts.
    fn options(self) -> impl Iterator<Item = &'static Known> {
        OPTIONS.iter().filter(move |option| option.kinds.contains(&self))
    }
}

/// An option, named for the method of the builder that it calls.
struct Known {
    name: &'static str,
    form: Form,
    kinds: &'static [Kind],
}

/// How an option is written, and what its method takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `name = value`.
    Value,
    /// `name`, or `name = false`; the method takes nothing.
    Switch,
    /// `name`, or `name = false`; the method takes a `bool`.
    Hint,
    /// `name = function`, or `name = self.method`.
    Function,
    /// `name(key = value, …)`; the method is called for each.
    Entries,
    /// `name`, `name = "mode"` or `name(after = duration)`.
    Task,
    /// `crate = path`.
    Crate,
}

const fn known(name: &'static str, form: Form, kinds: &'static [Kind]) -> Known {
    Known { name, form, kinds }
}

const OPTIONS: &[Known] = &[
    known("name", Form::Value, &Kind::ALL),
    known("title", Form::Value, &Kind::ALL),
    known("description", Form::Value, &Kind::ALL),
    known("annotations", Form::Value, &[Kind::Tool, Kind::Resource]),
    known("read_only", Form::Switch, &[Kind::Tool]),
    known("destructive", Form::Hint, &[Kind::Tool]),
    known("idempotent", Form::Switch, &[Kind::Tool]),
    known("open_world", Form::Hint, &[Kind::Tool]),
    known("lenient", Form::Switch, &[Kind::Tool]),
    known("input_schema", Form::Value, &[Kind::Tool]),
    known("output_schema", Form::Value, &[Kind::Tool]),
    known("timeout", Form::Value, &[Kind::Tool]),
    known("task", Form::Task, &[Kind::Tool]),
    known("rerun", Form::Switch, &[Kind::Tool]),
    known("ui", Form::Value, &[Kind::Tool]),
    known("app_only", Form::Switch, &[Kind::Tool]),
    known("model_only", Form::Switch, &[Kind::Tool]),
    known("mime_type", Form::Value, &[Kind::Resource]),
    known("size", Form::Value, &[Kind::Resource]),
    known("complete", Form::Entries, &[Kind::Prompt, Kind::Resource]),
    known("allow_unsafe_values", Form::Switch, &[Kind::Resource]),
    known("icon", Form::Value, &Kind::ALL),
    known("meta", Form::Entries, &Kind::ALL),
    known("scopes", Form::Value, &Kind::ALL),
    known("visible_to", Form::Function, &Kind::ALL),
    known("disabled", Form::Switch, &Kind::ALL),
    known("crate", Form::Crate, &Kind::ALL),
];

/// The options of one attribute, in the order they were written.
pub(crate) struct Options {
    kind: Kind,
    uri: Option<LitStr>,
    list: Vec<Choice>,
}

struct Choice {
    name: Ident,
    form: Form,
    value: Value,
}

enum Value {
    /// Only the name is there.
    Flag,
    Given(Expr),
    Crate(Path),
    Entries(Punctuated<Entry, Token![,]>),
}

/// `key = value`; a key that is not an identifier is written in quotes.
struct Entry {
    key: String,
    at: Span,
    value: Expr,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (key, at) = if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            (text.value(), text.span())
        } else {
            let name = input.call(Ident::parse_any)?;
            (name.unraw().to_string(), name.span())
        };
        input.parse::<Token![=]>()?;
        Ok(Self { key, at, value: input.parse()? })
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
        // Annotations replace all hints, so they come before single ones.
        options.list.sort_by_key(|choice| choice.name != "annotations");
        Ok(options)
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.list.iter().find(|choice| choice.name == name).map(|choice| &choice.value)
    }

    fn given(&self, name: &str) -> Option<TokenStream> {
        match self.find(name)? {
            Value::Given(value) => Some(value.to_token_stream()),
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
        self.given("name")
    }

    pub(crate) fn description(&self) -> Option<TokenStream> {
        self.given("description")
    }

    /// The builder calls for the other options.
    ///
    /// # Errors
    /// When a value cannot be one of its option, or names an argument that does not exist.
    pub(crate) fn calls(
        &self,
        signature: &Signature,
        callback: &Callback<'_>,
    ) -> syn::Result<TokenStream> {
        let mut calls = TokenStream::new();
        for Choice { name, form, value } in &self.list {
            let call = match value {
                _ if *form == Form::Task => self.task_call(name, value)?,
                Value::Entries(entries) if name == "complete" => {
                    complete_calls(entries, signature, callback)?
                }
                Value::Entries(entries) => entry_calls(name, entries),
                Value::Crate(_) => TokenStream::new(),
                Value::Flag => switch_call(name, *form, true),
                Value::Given(value) if *form == Form::Function => {
                    let function = callback.rule(value)?;
                    quote!(.#name(#function))
                }
                Value::Given(value) => given_call(name, *form, value)?,
            };
            calls.extend(call);
        }
        Ok(calls)
    }
}

impl Options {
    fn task_call(&self, name: &Ident, value: &Value) -> syn::Result<TokenStream> {
        let krate = self.krate();
        match value {
            Value::Flag => Ok(task::at_once(&krate)),
            Value::Given(value) => task::named(&krate, value),
            Value::Entries(entries) if entries.len() == 1 => {
                let Entry { key, at, value } = &entries[0];
                task::later(&krate, (key, *at, value))
            }
            Value::Entries(_) | Value::Crate(_) => {
                let message = "expected one entry: `task(after = \"2s\")`";
                Err(syn::Error::new(name.span(), message))
            }
        }
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
    let Some(Known { form, .. }) = kind.options().find(|option| option.name == text) else {
        let accepted: Vec<&str> = kind.options().map(|option| option.name).collect();
        let (attribute, accepted) = (kind.name(), accepted.join(", "));
        let message = format!("unknown option `{text}`; `#[{attribute}]` accepts {accepted}");
        return Err(syn::Error::new(name.span(), message));
    };
    let value = match form {
        Form::Entries | Form::Task if input.peek(syn::token::Paren) => {
            let inside;
            parenthesized!(inside in input);
            Value::Entries(Punctuated::parse_terminated(&inside)?)
        }
        Form::Entries => {
            let message = format!("`{text}` needs a list: `{text}(key = value, …)`");
            return Err(syn::Error::new(name.span(), message));
        }
        Form::Crate => {
            input.parse::<Token![=]>()?;
            Value::Crate(input.call(Path::parse_mod_style)?)
        }
        _ if input.parse::<Option<Token![=]>>()?.is_some() => Value::Given(input.parse()?),
        Form::Switch | Form::Hint | Form::Task => Value::Flag,
        Form::Value | Form::Function => {
            let message = format!("`{text}` needs a value: `{text} = …`");
            return Err(syn::Error::new(name.span(), message));
        }
    };
    Ok(Choice { name, form: *form, value })
}

fn switch_call(name: &Ident, form: Form, is_on: bool) -> TokenStream {
    match (form, is_on) {
        (Form::Hint, _) => quote!(.#name(#is_on)),
        (_, true) => quote!(.#name()),
        (_, false) => TokenStream::new(),
    }
}

fn given_call(name: &Ident, form: Form, value: &Expr) -> syn::Result<TokenStream> {
    if matches!(form, Form::Switch | Form::Hint) {
        let Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value, .. }), .. }) = value else {
            let message = format!("`{name}` must be `true` or `false`");
            return Err(syn::Error::new_spanned(value, message));
        };
        return Ok(switch_call(name, form, *value));
    }
    Ok(match name.to_string().as_str() {
        // These are arguments of `new`, or replace the doc comment.
        "name" | "description" => TokenStream::new(),
        "timeout" => {
            let timeout = duration::tokens(value)?;
            quote!(.timeout(#timeout))
        }
        "ui" => {
            check_app_uri(value)?;
            quote!(.ui(#value))
        }
        _ => quote!(.#name(#value)),
    })
}

/// A URI that is written down can be checked now.
fn check_app_uri(value: &Expr) -> syn::Result<()> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(uri), .. }) if !uri.value().starts_with("ui://") => {
            let message = "the URI of an app begins with `ui://`: `ui = \"ui://…\"`";
            Err(syn::Error::new_spanned(value, message))
        }
        _ => Ok(()),
    }
}

fn entry_calls(name: &Ident, entries: &Punctuated<Entry, Token![,]>) -> TokenStream {
    let calls = entries.iter().map(|Entry { key, value, .. }| quote!(.#name(#key, #value)));
    calls.collect()
}

fn complete_calls(
    entries: &Punctuated<Entry, Token![,]>,
    signature: &Signature,
    callback: &Callback<'_>,
) -> syn::Result<TokenStream> {
    let mut calls = TokenStream::new();
    for Entry { key, at, value } in entries {
        let is_it = |name: &Ident, wire: &str| name.unraw() == key || wire == key;
        let wire = match signature.arguments().find(|it| is_it(&it.name, &it.wire)) {
            Some(found) => found.wire.clone(),
            None if signature.has_whole() => key.clone(),
            None => {
                let message =
                    format!("cannot complete `{key}`: the function has no such parameter");
                return Err(syn::Error::new(*at, message));
            }
        };
        let function = callback.completer(value)?;
        calls.extend(quote!(.complete(#wire, #function)));
    }
    Ok(calls)
}
