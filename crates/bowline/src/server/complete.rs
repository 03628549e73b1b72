//! Completion: suggestions for a prompt's argument or a variable of a URI template.

use std::sync::Arc;

use bowline_proto::model::{CompleteResult, Completion};

use super::context::Context;
use super::error::HandlerError;
use super::handler::BoxFuture;

/// An argument that is being typed.
#[derive(Debug, Clone)]
pub struct Completing {
    /// Which argument.
    pub argument: String,
    /// What has been typed so far.
    pub value: String,
    /// The arguments that are already filled in, by name.
    pub others: Vec<(String, String)>,
    /// The context of the request.
    pub context: Context,
}

impl Completing {
    /// The value of another argument.
    pub fn other(&self, name: &str) -> Option<&str> {
        self.others.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The `words` that start with what has been typed, ignoring case.
    pub fn matching<S: AsRef<str>>(&self, words: &[S]) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let begins = |word: &&S| word.as_ref().to_lowercase().starts_with(&typed);
        words.iter().filter(begins).map(|word| word.as_ref().to_owned()).collect()
    }
}

/// A type-erased source of suggestions.
pub(crate) trait Complete: Send + Sync {
    fn start(&self, completing: Completing) -> BoxFuture<CompleteOutcome>;
}

/// Suggestions, or why there are none.
pub(crate) type CompleteOutcome = Result<CompleteResult, HandlerError>;

struct Completer<F>(F);

impl<F, R> Complete for Completer<F>
where
    F: Fn(Completing) -> R + Send + Sync,
    R: Future<Output = Vec<String>> + Send + 'static,
{
    fn start(&self, completing: Completing) -> BoxFuture<CompleteOutcome> {
        let values = (self.0)(completing);
        Box::pin(async move {
            let completion = Completion { values: values.await, ..Completion::default() };
            Ok(CompleteResult { completion, ..CompleteResult::default() })
        })
    }
}

pub(crate) fn completer<F, R>(complete: F) -> Arc<dyn Complete>
where
    F: Fn(Completing) -> R + Send + Sync + 'static,
    R: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(Completer(complete))
}
