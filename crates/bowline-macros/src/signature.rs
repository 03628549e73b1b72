//! The signature of a function that is to be a tool, prompt or resource.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericArgument, GenericParam, PathArguments, Receiver, ReceiverKind, ReturnType,
    Safety, Type,
};

use crate::options::Kind;
use crate::parameter::{Argument, Parameter, generic, strip};

/// The relevant parts of a signature.
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_async: bool,
    pub(crate) has_receiver: bool,
    /// The span of the return type, or of the name.
    pub(crate) returns_at: Span,
}

impl Signature {
    /// Reads a signature, and removes the attributes of parameters that only the macros know.
    ///
    /// # Errors
    /// When clients could not call such a function, or it could not be described to them.
    pub(crate) fn take(kind: Kind, signature: &mut syn::Signature) -> syn::Result<Self> {
        check_qualifiers(kind, signature)?;
        let returns_at = match &signature.output {
            ReturnType::Default => signature.ident.span(),
            ReturnType::Type(_, ty) => {
                check_output(kind, ty)?;
                ty.span()
            }
        };
        let mut parameters = Vec::new();
        let mut has_receiver = false;
        let mut problems = Problems::default();
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    has_receiver = true;
                    problems.note(check_receiver(receiver));
                }
                FnArg::Typed(parameter) => {
                    let taken = Parameter::take(kind, parameter);
                    let taken = taken.and_then(|new| check_together(&parameters, new));
                    parameters.extend(problems.note(taken));
                }
            }
        }
        problems.check()?;
        let is_async = signature.asyncness.is_some();
        Ok(Self { parameters, is_async, has_receiver, returns_at })
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            _ => None,
        })
    }

    /// The type of `#[args]`.
    pub(crate) fn whole(&self) -> Option<&Type> {
        self.parameters.iter().find_map(|parameter| match parameter {
            Parameter::Whole(ty) => Some(&**ty),
            _ => None,
        })
    }

    pub(crate) fn has_whole(&self) -> bool {
        self.whole().is_some()
    }

    /// Whether clients send anything.
    pub(crate) fn takes_arguments(&self) -> bool {
        self.parameters.iter().any(Parameter::is_sent)
    }

    /// Whether the handler needs the context: for the function, or to find its state.
    pub(crate) fn needs_context(&self) -> bool {
        self.parameters.iter().any(|parameter| !parameter.is_sent())
    }

    /// The types of state that the function takes.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Type> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::State(ty) => Some(&**ty),
            _ => None,
        })
    }
}

/// Removes whatever the compiler would not understand, so that it reports only our error.
pub(crate) fn strip_all(signature: &mut syn::Signature) {
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => strip(&mut receiver.attrs),
            FnArg::Typed(parameter) => strip(&mut parameter.attrs),
        };
    }
}

fn check_qualifiers(kind: Kind, signature: &syn::Signature) -> syn::Result<()> {
    let is_type = |parameter: &&GenericParam| !matches!(parameter, GenericParam::Lifetime(_));
    if let Some(parameter) = signature.generics.params.iter().find(is_type) {
        return Err(generic(kind, parameter));
    }
    if let Safety::Unsafe(word) = &signature.safety {
        let message =
            format!("{} cannot be unsafe, because clients cannot uphold its contract", kind.noun());
        return Err(syn::Error::new_spanned(word, message));
    }
    Ok(())
}

fn check_receiver(receiver: &Receiver) -> syn::Result<()> {
    if matches!(&receiver.kind, ReceiverKind::Reference(_, _, None) | ReceiverKind::Typed(..)) {
        return Ok(());
    }
    let message = "take `&self`: all calls share one value; put state that changes in a `Mutex`, an \
                   atomic or the like";
    Err(syn::Error::new_spanned(receiver, message))
}

/// The result of a method outlives the call, so it cannot borrow from it.
fn check_output(kind: Kind, ty: &Type) -> syn::Result<()> {
    match ty {
        Type::Reference(reference) => match &reference.lifetime {
            Some(lifetime) if lifetime.ident == "static" => Ok(()),
            _ => {
                let message = format!(
                    "{} cannot return a reference, because the result outlives the call: \
                     return an owned value, such as `String`",
                    kind.noun()
                );
                Err(syn::Error::new_spanned(ty, message))
            }
        },
        Type::Path(path) => {
            let last = path.path.segments.last();
            let arguments =
                last.filter(|segment| segment.ident == "Result").map(|it| &it.arguments);
            match arguments {
                Some(PathArguments::AngleBracketed(list)) => match list.args.first() {
                    Some(GenericArgument::Type(value)) => check_output(kind, value),
                    _ => Ok(()),
                },
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// At most one context, and either arguments or `#[args]`.
fn check_together(before: &[Parameter], new: Parameter) -> syn::Result<Parameter> {
    let has = |rule: fn(&Parameter) -> bool| before.iter().any(rule);
    match &new {
        Parameter::Context { name, .. } if has(Parameter::is_context) => {
            let message = "a call has one context: take it only once";
            Err(syn::Error::new_spanned(name, message))
        }
        Parameter::Whole(ty) if has(Parameter::is_sent) => {
            let message = "`#[args]` takes all arguments: move the others into this struct";
            Err(syn::Error::new_spanned(ty, message))
        }
        Parameter::Argument(argument) if has(|it| matches!(it, Parameter::Whole(_))) => {
            let message = "`#[args]` takes all arguments: move this one into its struct";
            Err(syn::Error::new(argument.name.span(), message))
        }
        _ => Ok(new),
    }
}

/// Errors, all reported at once.
#[derive(Default)]
pub(crate) struct Problems(Option<syn::Error>);

impl Problems {
    /// Records the error, if there is one.
    pub(crate) fn note<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(before)) => before.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }

    /// # Errors
    /// When an error was recorded.
    pub(crate) fn check(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
