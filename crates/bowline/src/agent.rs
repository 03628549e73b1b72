//! Tools as functions for the models of `OpenAI`, Anthropic and Google.
//!
//! [`Functions`] turns a list of tools into what a provider wants in its request, finds the calls
//! in the provider's answer, and turns the results into the messages that come next. All of it is
//! plain JSON: bring your own HTTP client.
//!
//! ```
//! use bowline::agent::Functions;
//! use bowline::model::{CallToolResult, ContentBlock, Tool};
//! use serde_json::json;
//!
//! let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
//! let functions = Functions::anthropic(&[Tool::new("weather.now", schema.into())]);
//! assert_eq!(functions.definitions()[0]["name"], "weather_now");
//!
//! // What the model answers:
//! let answer = json!({ "role": "assistant", "content": [
//!     { "type": "tool_use", "id": "1", "name": "weather_now", "input": { "city": "Rome" } }
//! ] });
//! let call = functions.calls(&answer).remove(0);
//! assert_eq!(call.tool.as_ref().unwrap().name, "weather.now");
//!
//! // What it is told then, after `client.call_tool(…)`:
//! let result = CallToolResult::success(vec![ContentBlock::text("sunny")]);
//! let messages = functions.results(&[(call, result)]);
//! assert_eq!(messages[0]["content"][0]["tool_use_id"], "1");
//! ```

mod anthropic;
mod gemini;
mod names;
mod openai;
mod restore;
mod result;
mod schema;
#[cfg(test)]
mod tests;

use bowline_proto::json::Extra;
use bowline_proto::model::{CallToolResult, Tool};
use serde_json::Value;

use self::names::Names;

/// The tools of a server as functions of one provider.
#[derive(Debug, Clone)]
pub struct Functions {
    provider: Provider,
    definitions: Value,
    tools: Vec<Known>,
}

/// A tool, by the name that the provider knows it by.
#[derive(Debug, Clone)]
struct Known {
    function: String,
    tool: String,
    schema: Value,
    /// Whether optional arguments are required and may be null instead.
    is_strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    OpenAi,
    Anthropic,
    Gemini,
}

/// A call that a model makes.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// The provider's id of the call. Gemini may leave it out.
    pub id: Option<String>,
    /// The name of the function, as the provider knows it.
    pub function: String,
    /// What to call; or what is wrong with the call, in words for the model.
    pub tool: Result<ToolUse, String>,
}

/// A tool and its arguments, for [`Client::call_tool`](crate::client::Client::call_tool).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The name of the tool, as its server knows it.
    pub name: String,
    /// The arguments.
    pub arguments: Extra,
}

impl Functions {
    /// Functions for `OpenAI`'s chat completions, with the schemas of the tools.
    pub fn openai(tools: &[Tool]) -> Self {
        Self::build(Provider::OpenAi, tools, |name, tool, schema| {
            (openai::definition(name, tool, schema), false)
        })
    }

    /// Functions for `OpenAI`'s chat completions in strict mode: the model keeps to the schema.
    ///
    /// All properties become required, and optional ones nullable; [`calls`](Self::calls) drops
    /// those nulls again. Tools whose schemas cannot be expressed that way, such as maps with
    /// arbitrary keys, are not strict.
    pub fn openai_strict(tools: &[Tool]) -> Self {
        Self::build(Provider::OpenAi, tools, |name, tool, schema| match openai::strict(schema) {
            Some(strict) => (openai::strict_definition(name, tool, strict), true),
            None => (openai::definition(name, tool, schema), false),
        })
    }

    /// Functions for Anthropic's messages.
    pub fn anthropic(tools: &[Tool]) -> Self {
        Self::build(Provider::Anthropic, tools, |name, tool, schema| {
            (anthropic::definition(name, tool, schema), false)
        })
    }

    /// Functions for Google's Gemini, whose schemas are a part of `OpenAPI`'s.
    pub fn gemini(tools: &[Tool]) -> Self {
        let mut functions = Self::build(Provider::Gemini, tools, |name, tool, schema| {
            (gemini::definition(name, tool, schema), false)
        });
        let declarations = functions.definitions.take();
        functions.definitions = serde_json::json!([{ "functionDeclarations": declarations }]);
        functions
    }

    fn build(
        provider: Provider,
        tools: &[Tool],
        define: impl Fn(&str, &Tool, &Value) -> (Value, bool),
    ) -> Self {
        let mut names = Names::default();
        let mut definitions = Vec::new();
        let mut known = Vec::new();
        for tool in tools {
            let (function, schema) = (names.add(&tool.name), tool.input_schema.to_value());
            let (definition, is_strict) = define(&function, tool, &schema);
            definitions.push(definition);
            known.push(Known { function, tool: tool.name.clone(), schema, is_strict });
        }
        Self { provider, definitions: Value::Array(definitions), tools: known }
    }

    /// The value of `tools` in a request to the provider.
    pub fn definitions(&self) -> &Value {
        &self.definitions
    }

    /// The calls in a message of the model: `OpenAI`'s `choices[0].message`, Anthropic's whole
    /// answer, Gemini's `candidates[0].content`. Empty if the model calls nothing.
    pub fn calls(&self, message: &Value) -> Vec<FunctionCall> {
        let calls = match self.provider {
            Provider::OpenAi => openai::calls(message),
            Provider::Anthropic => anthropic::calls(message),
            Provider::Gemini => gemini::calls(message),
        };
        calls.into_iter().map(|call| self.resolve(call)).collect()
    }

    /// The messages that tell the model what became of its calls. They follow its own message.
    pub fn results(&self, results: &[(FunctionCall, CallToolResult)]) -> Vec<Value> {
        match self.provider {
            Provider::OpenAi => openai::results(results),
            Provider::Anthropic => anthropic::results(results),
            Provider::Gemini => gemini::results(results),
        }
    }

    fn resolve(&self, call: Called) -> FunctionCall {
        let Called { id, function, arguments } = call;
        let tool = self.find(&function, arguments);
        FunctionCall { id, function, tool }
    }

    fn find(&self, function: &str, arguments: Result<Value, String>) -> Result<ToolUse, String> {
        let known = self.tools.iter().find(|it| it.function == function);
        let known = known.ok_or_else(|| format!("there is no function {function:?}"))?;
        let problem = |what: &str| format!("the arguments of {function:?} {what}");
        let mut arguments =
            arguments.map_err(|error| problem(&format!("are not valid JSON: {error}")))?;
        if known.is_strict || self.provider == Provider::Gemini {
            restore::restore(&known.schema, &mut arguments);
        }
        match arguments {
            Value::Object(arguments) => Ok(ToolUse { name: known.tool.clone(), arguments }),
            Value::Null => Ok(ToolUse { name: known.tool.clone(), arguments: Extra::new() }),
            _ => Err(problem("must be an object")),
        }
    }
}

/// A call as it is found in a message.
struct Called {
    id: Option<String>,
    function: String,
    arguments: Result<Value, String>,
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// What the function does, as far as the tool says.
fn description(tool: &Tool) -> &str {
    tool.description.as_deref().unwrap_or_else(|| tool.display_name())
}
