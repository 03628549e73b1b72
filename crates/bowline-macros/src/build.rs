//! The builder call that a marked function expands to.
//!
//! Variables of ours are made by [`own`], so that they neither capture nor are captured by what the
//! user writes in options, defaults and names. Items have no such hygiene: their names are mangled.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, Path, Type};

use crate::callback::Callback;
use crate::options::{Kind, Options};
use crate::parameter::{Argument, Parameter};
use crate::signature::Signature;
use crate::{doc, template};

/// A variable that only generated code can name.
pub(crate) fn own(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// A function with one of our attributes.
pub(crate) struct Marked {
    name: Ident,
    options: Options,
    signature: Signature,
    description: Option<TokenStream>,
}

/// How the handler reaches the function.
#[derive(Clone, Copy)]
pub(crate) enum Callee<'a> {
    /// `value.call(…)`, where `value` is the unit struct that stands for the function.
    Value(&'a Ident),
    /// `this.name(…)` for a method, `Self::name(…)` without a receiver; `this` is an `Arc`.
    Method(&'a Ident),
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

    /// A block that builds the part.
    ///
    /// # Errors
    /// When the value of an option is wrong.
    pub(crate) fn part(&self, krate: &Path, callee: Callee<'_>) -> syn::Result<TokenStream> {
        let checks = self.checks(krate);
        let arguments = self.arguments_struct(krate);
        let (share, handler) = (self.share(callee), self.handler(krate, callee));
        let this = match callee {
            Callee::Value(_) => None,
            Callee::Method(this) => Some(this),
        };
        let calls = self.options.calls(&self.signature, &Callback { krate, this })?;
        let (description, states) = (self.description.iter(), self.signature.states());
        let own_name = self.name.unraw().to_string();
        let name = self.options.name().unwrap_or_else(|| quote!(#own_name));
        let shape = self.shape(krate);
        let part = self.options.kind().part(krate);
        let uri = self.options.uri().into_iter();
        let at = self.reported_at();
        let new =
            quote_spanned!(at=> #part::new::<#shape, _>(#(#uri,)* #name, { #share #handler }));
        Ok(quote! {{
            #checks
            #arguments
            #new #(.description(#description))* #(.needs_state::<#states>())* #calls
        }})
    }

    /// Makes compiler errors about the result point to the declared return type.
    fn reported_at(&self) -> Span {
        self.signature.returns_at.resolved_at(Span::mixed_site())
    }

    /// Makes the compiler say what the types of arguments lack, before it reports what derived code
    /// cannot do with them.
    fn checks(&self, krate: &Path) -> TokenStream {
        let is_plain = |argument: &&Argument| !argument.is_customized;
        let plain = self.signature.arguments().filter(is_plain).map(|argument| &argument.ty);
        let types = plain.chain(self.signature.whole());
        let check = |ty: &Type| {
            let at = ty.span().resolved_at(Span::mixed_site());
            quote_spanned!(at=> #krate::private::is_argument::<#ty>();)
        };
        let checks: TokenStream = types.map(check).collect();
        match checks.is_empty() {
            true => checks,
            false => quote!(const _: fn() = || { #checks };),
        }
    }

    /// The struct that the arguments are read into, unless the function has its own.
    fn arguments_struct(&self, krate: &Path) -> TokenStream {
        if self.signature.has_whole() || !self.signature.takes_arguments() {
            return TokenStream::new();
        }
        let (serde, schemars) = (in_text(krate, "serde"), in_text(krate, "schemars"));
        let fields = self.signature.arguments().map(field);
        let defaults = self.signature.arguments().filter_map(default_function);
        quote! {
            #[derive(#krate::serde::Deserialize, #krate::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            struct __BowlineArguments {
                #(#fields,)*
            }
            #(#defaults)*
        }
    }

    fn arguments_type(&self) -> TokenStream {
        self.signature.whole().map_or_else(|| quote!(__BowlineArguments), |ty| quote!(#ty))
    }

    /// The parameters of the closure, as a tuple of types.
    fn shape(&self, krate: &Path) -> TokenStream {
        let context = self.signature.needs_context().then(|| quote!(#krate::Context,));
        let arguments = self.signature.takes_arguments().then(|| {
            let arguments = self.arguments_type();
            quote!(#arguments,)
        });
        quote!((#context #arguments))
    }

    /// What each call of the closure, and the closure itself, needs of its own.
    fn share(&self, callee: Callee<'_>) -> TokenStream {
        match callee {
            Callee::Method(this) if self.signature.has_receiver => {
                quote!(let #this = ::std::sync::Arc::clone(&#this);)
            }
            Callee::Method(_) | Callee::Value(_) => TokenStream::new(),
        }
    }

    /// The closure that the builder takes.
    fn handler(&self, krate: &Path, callee: Callee<'_>) -> TokenStream {
        let mut inputs = TokenStream::new();
        if self.signature.needs_context() {
            let context = own("context");
            inputs.extend(quote!(#context: #krate::Context,));
        }
        if self.signature.takes_arguments() {
            let (arguments, ty) = (own("arguments"), self.arguments_type());
            inputs.extend(quote!(#arguments: #ty,));
        }
        let share = self.share(callee);
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
    fn value(&self, krate: &Path, callee: Callee<'_>) -> TokenStream {
        let call = self.call(krate, callee);
        let result = match self.signature.is_async {
            true => quote!(#call.await),
            false => quote!(#krate::blocking(move || #call).await),
        };
        let returned = match self.options.kind() {
            Kind::Tool => quote!(ToolReturn),
            Kind::Resource => quote!(ResourceReturn),
            Kind::Prompt => return result,
        };
        let value = own("value");
        quote! {
            use #krate::private::#returned as _;
            match #result {
                #value => (&&&&#krate::private::Returned::of(&#value)).wrap(#value),
            }
        }
    }

    fn call(&self, krate: &Path, callee: Callee<'_>) -> TokenStream {
        let name = &self.name;
        let (context, arguments) = (own("context"), own("arguments"));
        // State is found through the context, which the function may consume before.
        let copy = self.signature.states().next().map(|_| quote!(.clone()));
        let values = self.signature.parameters.iter().map(|parameter| match parameter {
            Parameter::Context { is_borrowed: true, .. } => quote!(&#context),
            Parameter::Context { is_borrowed: false, .. } => quote!(#context #copy),
            Parameter::State(_) => quote!(#krate::private::state(&#context)),
            Parameter::Whole(_) => quote!(#arguments),
            Parameter::Argument(argument) => {
                let name = &argument.name;
                quote!(#arguments.#name)
            }
        });
        match callee {
            Callee::Value(value) => quote!(#value.call(#(#values),*)),
            Callee::Method(this) if self.signature.has_receiver => {
                quote!(#this.#name(#(#values),*))
            }
            Callee::Method(_) => quote!(Self::#name(#(#values),*)),
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
    quote::format_ident!("__bowline_default_{}", argument.name.unraw(), span = Span::call_site())
}

/// The path of a library that `bowline` re-exports, as derive macros expect it.
fn in_text(krate: &Path, library: &str) -> String {
    let segments = krate.segments.iter().map(|segment| segment.ident.to_string());
    let path = segments.collect::<Vec<_>>().join("::");
    let root = if krate.leading_colon.is_some() { "::" } else { "" };
    format!("{root}{path}::{library}")
}
