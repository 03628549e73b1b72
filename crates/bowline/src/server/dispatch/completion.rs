//! `completion/complete`: whose argument it is, and who suggests its values.

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Complete, Method};
use bowline_proto::model::{CompleteParams, CompleteResult, Completion, Reference};

use super::{Request, Started};
use crate::server::answer::Answer;
use crate::server::complete::Completing;
use crate::server::registry::IsThere;
use crate::server::running::Handling;
use crate::uri_template::UriTemplate;

pub(super) fn start(request: &Request<'_>) -> Result<Started, ErrorObject> {
    let tables = request.core().registry.tables();
    if !tables.completes() {
        return Err(ErrorObject::method_not_found(Complete::NAME));
    }
    let params: CompleteParams<'_> = decode_params(Complete::NAME, request.params())?;
    let refused =
        |message: String| ErrorObject::invalid_params(format!("{}: {message}", Complete::NAME));
    let (name, completers, known, nest) = match &params.reference {
        Reference::Prompt(prompt) => {
            let found =
                tables.prompts.get(&prompt.name).filter(|it| it.is_there_for(request.caller()));
            let entry =
                found.ok_or_else(|| refused(format!("no prompt is called {:?}", prompt.name)))?;
            let arguments = entry.definition.arguments.iter().flatten();
            let known: Vec<_> = arguments.map(|argument| argument.name.clone()).collect();
            (prompt.name.clone(), &entry.completers, known, &entry.nest)
        }
        Reference::ResourceTemplate(template) => {
            let found =
                tables.templates.get(&template.uri).filter(|it| it.is_there_for(request.caller()));
            let entry =
                found.ok_or_else(|| refused(format!("no resource template {:?}", template.uri)))?;
            let variables = entry.template.iter().flat_map(UriTemplate::variables);
            let known = variables.map(str::to_owned).collect();
            (template.uri.clone(), &entry.completers, known, &entry.nest)
        }
    };
    let argument = params.argument;
    if !known.contains(&argument.name) {
        return Err(refused(format!("{name} has no argument {:?}", argument.name)));
    }
    let context = request.context(Complete::NAME, &params.meta, request.work(None, nest));
    let others =
        params.context.and_then(|context| context.arguments).into_iter().flatten().collect();
    let completing = Completing { value: argument.value, others, context: context.clone() };
    let suggestions = completers.get(&argument.name).map(|it| it.start(completing));
    let handler = Box::pin(async move {
        let values = match suggestions {
            Some(suggestions) => suggestions.await,
            None => Vec::new(),
        };
        let completion = Completion { values, ..Completion::default() };
        Ok(Answer::Completion(CompleteResult { completion, ..CompleteResult::default() }))
    });
    Ok(request.run(context, Some(name), Handling::Other(handler)))
}
