//! The methods of a client.

use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{
    Complete, Discover, GetPrompt, ListPrompts, ListResourceTemplates, ListResources, ListTools,
    Method, Notice, Ping, ReadResource, RootsListChanged, SetLevel,
};
use bowline_proto::model::{
    CompleteArgument, CompleteContext, CompleteParams, EmptyParams, GetPromptParams, LoggingLevel,
    PromptReference, ReadResourceParams, Reference, RequestMeta, ResourceTemplateReference, Root,
};
use serde::Serialize;

use super::Client;
use super::call::{Call, Typed};
use super::error::CallError;
use super::list::List;
use super::shared::{Link, lock};
use super::tools::ToolCall;

impl Client {
    /// Calls any method, by its type.
    ///
    /// ```no_run
    /// use bowline::Client;
    /// use bowline::proto::method::ListTools;
    /// use bowline::model::PaginatedParams;
    ///
    /// # async fn example(client: Client) -> Result<(), bowline::client::CallError> {
    /// let first_page = client.call::<ListTools>(PaginatedParams::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<'p, M: Method>(&self, params: M::Params<'p>) -> Call<Typed<'p, M>> {
        Call::new(self, Typed(params))
    }

    /// Calls a tool. The arguments must serialize to an object: a struct, a map, `json!({…})`.
    ///
    /// If the tool has been listed and has an output schema, the result is validated against it.
    pub fn call_tool(&self, name: impl Into<String>, arguments: impl Serialize) -> ToolCall {
        Call::tool(self, name.into(), &arguments)
    }

    /// Lists all tools.
    pub fn list_tools(&self) -> List<ListTools> {
        Call::list(self)
    }

    /// Lists all prompts.
    pub fn list_prompts(&self) -> List<ListPrompts> {
        Call::list(self)
    }

    /// Lists all resources.
    pub fn list_resources(&self) -> List<ListResources> {
        Call::list(self)
    }

    /// Lists all resource templates.
    pub fn list_resource_templates(&self) -> List<ListResourceTemplates> {
        Call::list(self)
    }

    /// Lists the skills of the server. Nothing of them is read: [`Client::load_skill`] does that.
    #[cfg(feature = "skills")]
    pub fn list_skills(&self) -> List<bowline_proto::method::ListSkills> {
        Call::list(self)
    }

    /// Gets one skill by the URI of its `SKILL.md`, for instance one that a resource links to.
    #[cfg(feature = "skills")]
    pub fn get_skill(
        &self,
        uri: impl Into<String>,
    ) -> Call<Typed<'static, bowline_proto::method::GetSkill>> {
        let meta = RequestMeta::default();
        self.call(bowline_proto::model::skill::GetSkillParams { uri: uri.into(), meta })
    }

    /// Reads a page of a folder of a skill: its direct children. `cursor` is that of the previous
    /// page. What is in it is not verified: only the entry of a skill counts.
    #[cfg(feature = "skills")]
    pub fn read_directory(
        &self,
        uri: impl Into<String>,
        cursor: Option<String>,
    ) -> Call<Typed<'static, bowline_proto::method::ReadDirectory>> {
        let (uri, meta) = (uri.into(), RequestMeta::default());
        self.call(bowline_proto::model::skill::ReadDirectoryParams { uri, cursor, meta })
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<Typed<'static, ReadResource>> {
        let params = ReadResourceParams { uri: uri.into(), ..ReadResourceParams::default() };
        self.call(params)
    }

    /// Gets a prompt, filled in with arguments.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: &[(&str, &str)],
    ) -> Call<Typed<'static, GetPrompt>> {
        let (name, arguments) = (name.into(), members(arguments));
        self.call(GetPromptParams { name, arguments, ..GetPromptParams::default() })
    }

    /// Completes an argument of a prompt; `others` are filled in already.
    pub fn complete_prompt(
        &self,
        prompt: impl Into<String>,
        argument: (&str, &str),
        others: &[(&str, &str)],
    ) -> Call<Typed<'static, Complete>> {
        let name = prompt.into();
        let reference = Reference::Prompt(PromptReference { name, title: None });
        self.complete(reference, argument, others)
    }

    /// Completes a variable of a resource template; `others` are filled in already.
    pub fn complete_template(
        &self,
        template: impl Into<String>,
        variable: (&str, &str),
        others: &[(&str, &str)],
    ) -> Call<Typed<'static, Complete>> {
        let uri = template.into();
        let reference = Reference::ResourceTemplate(ResourceTemplateReference { uri });
        self.complete(reference, variable, others)
    }

    fn complete(
        &self,
        reference: Reference,
        (name, value): (&str, &str),
        others: &[(&str, &str)],
    ) -> Call<Typed<'static, Complete>> {
        let argument = CompleteArgument { name: name.to_owned(), value: value.to_owned() };
        let arguments = members(others);
        let context = arguments.is_some().then_some(CompleteContext { arguments });
        self.call(CompleteParams { reference, argument, context, meta: RequestMeta::default() })
    }

    /// Checks that the server responds. The modern era has no `ping`, so this asks for the server's
    /// capabilities there.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub async fn ping(&self) -> Result<(), CallError> {
        let live = self.shared.ready(Ping::NAME).await?;
        if live.peer.revision.is_modern() {
            self.call::<Discover>(EmptyParams::default()).await.map(drop)
        } else {
            self.call::<Ping>(EmptyParams::default()).await.map(drop)
        }
    }

    /// Asks again what the server can do. Modern era only; [`Client::peer`] knows in any era.
    pub fn discover(&self) -> Call<Typed<'static, Discover>> {
        self.call(EmptyParams::default())
    }

    /// Sets the level from which the server should send log messages. In the modern era this
    /// becomes part of every later call, and `None` ends it. In the legacy era the client tells the
    /// server at once and after each reconnect; `None` asks for emergencies only, because a legacy
    /// server cannot be told to stop.
    ///
    /// # Errors
    /// When the server does not log, or rejects the level.
    pub async fn set_log_level(&self, level: Option<LoggingLevel>) -> Result<(), CallError> {
        let live = self.shared.ready(SetLevel::NAME).await?;
        if !live.peer.revision.is_modern() {
            self.shared.tell_log_level(level.unwrap_or(LoggingLevel::Emergency)).await?;
        }
        self.shared.set_log_level(level);
        Ok(())
    }

    /// Replaces the folders that the client works in, and notifies a legacy server. Does nothing
    /// for a client that was built without [`roots`](super::ClientBuilder::roots).
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn set_roots(&self, roots: Vec<Root>) -> Result<(), CallError> {
        let Some(slot) = &self.shared.handlers.roots else { return Ok(()) };
        *lock(slot) = roots;
        let live = self.shared.ready(RootsListChanged::NAME).await?;
        if live.peer.revision.is_modern() {
            return Ok(());
        }
        self.notify(RootsListChanged::NAME, None).await
    }

    /// Sends any notification.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn notify(&self, method: &str, params: Option<&Json>) -> Result<(), CallError> {
        let live = self.shared.ready(method).await?;
        let encode = |out: &mut Vec<u8>| {
            bowline_proto::wire::encode_notification(out, method, params)
                .expect("text that is JSON already has a JSON form");
        };
        match &live.link {
            Link::Stream(outbox) => {
                outbox.send(encode).await.map_err(|_| CallError::Closed(self.shared.reason()))
            }
            #[cfg(feature = "client-http")]
            Link::Http(http) => {
                let mut body = Vec::new();
                encode(&mut body);
                let sent = http.notify(live.peer.revision, method, body).await;
                sent.map_err(|error| error.into_call_error(method))
            }
        }
    }
}

/// Arguments as an object; `None` where there are none.
fn members(arguments: &[(&str, &str)]) -> Option<Members<String>> {
    let members = arguments.iter().map(|(key, value)| (*key, (*value).to_owned()));
    (!arguments.is_empty()).then(|| members.collect())
}
