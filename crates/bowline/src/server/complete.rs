//! Completion: suggestions for a prompt's argument or a variable of a URI template.

use std::sync::Arc;

use super::context::Context;
use super::handler::BoxFuture;

/// An argument that is being typed.
#[derive(Debug, Clone)]
pub struct Completing {
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
    fn start(&self, completing: Completing) -> BoxFuture<Vec<String>>;
}

struct Completer<F>(F);

impl<F, R> Complete for Completer<F>
where
    F: Fn(Completing) -> R + Send + Sync,
    R: Future<Output = Vec<String>> + Send + 'static,
{
    fn start(&self, completing: Completing) -> BoxFuture<Vec<String>> {
        Box::pin((self.0)(completing))
    }
}

pub(crate) fn completer<F, R>(complete: F) -> Arc<dyn Complete>
where
    F: Fn(Completing) -> R + Send + Sync + 'static,
    R: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(Completer(complete))
}
