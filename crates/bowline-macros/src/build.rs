//! The builder call that a marked function expands to.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, Path};

use crate::options::{Kind, Options};
use crate::parameter::{Argument, Parameter};
use crate::signature::Signature;
use crate::{doc, template};

/// A function with one of our attributes.
pub(crate) struct Marked {
    name: Ident,
    options: Options,
    signature: Signature,
    description: Option<TokenStream>,
}

/// How the handler reaches the function, given `this`.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    /// `this.call(…)`, where `this` is the unit struct.
    Value,
    /// `this.name(…)`, where `this` is an `Arc`.
    Method,
    /// `Self::name(…)`.
    Associated,
}

impl Marked {
    /// Reads everything, and removes our attributes from the signature.
    ///
    /// # Errors
    /// When options and signature contradict each other.
    pub(crate) fn take(
        options: Options,
        attributes: &[Attribute],
        signature: &mut syn::Signature,
    ) -> syn::Result<Self> {
        let name = signature.ident.clone();
        let signature = Signature::take(options.kind(), signature)?;
        if let Some(uri) = options.uri() {
            template::check(uri, &signature)?;
        }
        let description = options.description();
        let description = description.or_else(|| doc::text(attributes).map(|text| quote!(#text)));
        Ok(Self { name, options, signature, description })
    }

    pub(crate) fn has_receiver(&self) -> bool {
        self.signature.has_receiver
    }

    /// Statements that add it to `parts`, calling it through `this`.
    ///
    /// # Errors
    /// When an option names an argument that does not exist.
    pub(crate) fn registration(&self, krate: &Path, callee: Callee) -> syn::Result<TokenStream> {
        let arguments = self.arguments_struct(krate);
        let handler = self.handler(krate, callee);
        let calls = self.options.calls(krate, &self.signature)?;
        let description = self.description.iter();
        let own_name = self.name.unraw().to_string();
        let name = self.options.name().unwrap_or_else(|| quote!(#own_name));
        let shape = self.shape(krate);
        let at = self.reported_at();
        let new = match self.options.kind() {
            Kind::Tool => quote_spanned!(at=> #krate::Tool::new::<#shape, _>(#name, #handler)),
            Kind::Prompt => quote_spanned!(at=> #krate::Prompt::new::<#shape, _>(#name, #handler)),
            Kind::Resource => {
                let uri = self.options.uri();
                quote_spanned!(at=> #krate::Resource::new::<#shape, _>(#uri, #name, #handler))
            }
        };
        Ok(quote! {
            #arguments
            let part = #new #(.description(#description))* #calls;
            #krate::Parts::add(parts, part);
        })
    }

    /// Makes compiler errors about the result point to the declared return type.
    fn reported_at(&self) -> Span {
        self.signature.returns_at.resolved_at(Span::mixed_site())
    }

    /// The struct that the arguments are read into, unless the function has its own.
    fn arguments_struct(&self, krate: &Path) -> TokenStream {
        if self.signature.has_whole() || !self.takes_arguments() {
            return TokenStream::new();
        }
        let (serde, schemars) = (in_text(krate, "serde"), in_text(krate, "schemars"));
        let fields = self.signature.arguments().map(field);
        let defaults = self.signature.arguments().filter_map(default_function);
        // A tool without arguments declares that, whatever form its function has.
        let nothing_else = (self.signature.arguments().next().is_none())
            .then(|| quote!(#[schemars(deny_unknown_fields)]));
        quote! {
            #[derive(#krate::private::serde::Deserialize, #krate::private::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            #nothing_else
            struct __Arguments {
                #(#fields,)*
            }
            #(#defaults)*
        }
    }

    fn takes_arguments(&self) -> bool {
        !self.signature.parameters.is_empty()
    }

    fn arguments_type(&self) -> TokenStream {
        self.signature.whole().map_or_else(|| quote!(__Arguments), |ty| quote!(#ty))
    }

    fn shape(&self, krate: &Path) -> TokenStream {
        let arguments = self.arguments_type();
        match (self.takes_arguments(), self.signature.has_context()) {
            (false, _) => quote!(#krate::Bare),
            (true, false) => quote!(#krate::Plain<#arguments>),
            (true, true) => quote!(#krate::Contextual<#arguments>),
        }
    }

    /// The closure that the builder takes.
    fn handler(&self, krate: &Path, callee: Callee) -> TokenStream {
        let arguments = self.arguments_type();
        let mut inputs = TokenStream::new();
        if self.signature.has_context() {
            inputs.extend(quote!(context: #krate::Context,));
        }
        if self.takes_arguments() {
            let is_used =
                self.signature.parameters.len() > usize::from(self.signature.has_context());
            let binding = if is_used { quote!(arguments) } else { quote!(_) };
            inputs.extend(quote!(#binding: #arguments,));
        }
        let share = match callee {
            Callee::Method => quote!(let this = ::std::sync::Arc::clone(&this);),
            Callee::Value | Callee::Associated => TokenStream::new(),
        };
        let value = self.value(krate, callee);
        let at = self.reported_at();
        quote_spanned! {at=>
            move |#inputs| {
                #share
                async move { #value }
            }
        }
    }

    /// Calls the function, and converts its result into what the builder accepts.
    fn value(&self, krate: &Path, callee: Callee) -> TokenStream {
        let name = &self.name;
        let values = self.signature.parameters.iter().map(|parameter| match parameter {
            Parameter::Context { is_borrowed: true, .. } => quote!(&context),
            Parameter::Context { is_borrowed: false, .. } => quote!(context),
            Parameter::Whole(_) => quote!(arguments),
            Parameter::Argument(argument) => {
                let name = &argument.name;
                quote!(arguments.#name)
            }
        });
        let call = match callee {
            Callee::Value => quote!(this.call(#(#values),*)),
            Callee::Method => quote!(this.#name(#(#values),*)),
            Callee::Associated => quote!(Self::#name(#(#values),*)),
        };
        let value = match self.signature.is_async {
            true => quote!(#call.await),
            false => quote!(#krate::blocking(move || #call).await),
        };
        let returned = match self.options.kind() {
            Kind::Tool => quote!(ToolReturn),
            Kind::Resource => quote!(ResourceReturn),
            Kind::Prompt => return value,
        };
        quote! {
            use #krate::private::#returned as _;
            match #value {
                value => {
                    let returned = #krate::private::Returned::of(&value);
                    (&&&&returned).wrap(value)
                }
            }
        }
    }
}

fn field(argument: &Argument) -> TokenStream {
    let Argument { name, ty, attributes, .. } = argument;
    let default = argument.default.as_ref().map(|_| {
        let function = default_name(argument).to_string();
        quote!(#[serde(default = #function)])
    });
    quote!(#(#attributes)* #default #name: #ty)
}

fn default_function(argument: &Argument) -> Option<TokenStream> {
    let (name, ty) = (default_name(argument), &argument.ty);
    let value = argument.default.as_ref()?;
    // So that `default = "text"` works for a `String`.
    let value = match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            quote!(::core::convert::Into::into(#text))
        }
        value => quote!(#value),
    };
    Some(quote! {
        fn #name() -> #ty {
            #value
        }
    })
}

fn default_name(argument: &Argument) -> Ident {
    quote::format_ident!("__default_{}", argument.name.unraw(), span = Span::call_site())
}

/// The path of a library that `bowline` re-exports, as derive macros expect it.
fn in_text(krate: &Path, library: &str) -> String {
    let segments = krate.segments.iter().map(|segment| segment.ident.to_string());
    let path = segments.collect::<Vec<_>>().join("::");
    let root = if krate.leading_colon.is_some() { "::" } else { "" };
    format!("{root}{path}::private::{library}")
}
