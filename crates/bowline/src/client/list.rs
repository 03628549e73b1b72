//! Lists: all items as a `Vec`, or one by one as a stream.

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bowline_proto::decode::DecodeError;
use bowline_proto::json::Json;
use bowline_proto::method::{
    ListPrompts, ListResourceTemplates, ListResources, ListTasks, ListTools, Method,
};
use bowline_proto::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult,
    ListToolsResult, PaginatedParams, Prompt, RequestMeta, Resource, ResourceTemplate, Tool,
};
#[cfg(feature = "skills")]
use bowline_proto::{
    method::ListSkills,
    model::skill::{ListSkillsResult, Skill},
};
use futures_core::Stream;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Client;
use super::call::{Call, CallOptions, building};
use super::error::CallError;
use super::limits::{ClientLimit, ClientLimits};
use super::notification::Boxed;
use super::shared::Shared;
use super::task::TaskState;

/// A method that lists items in pages.
pub trait Listing: for<'a> Method<Params<'a> = PaginatedParams<'a>> + 'static {
    /// The member of a page that holds the items.
    const MEMBER: &'static str;

    /// The type of an item.
    type Item: Send + Unpin + 'static;

    /// Splits a page into its items and the cursor of the next page.
    fn take(page: Self::Result) -> (Vec<Self::Item>, Option<String>);
}

impl Listing for ListTools {
    const MEMBER: &'static str = "tools";
    type Item = Tool;

    fn take(page: ListToolsResult) -> (Vec<Tool>, Option<String>) {
        (page.tools, page.next_cursor)
    }
}

impl Listing for ListPrompts {
    const MEMBER: &'static str = "prompts";
    type Item = Prompt;

    fn take(page: ListPromptsResult) -> (Vec<Prompt>, Option<String>) {
        (page.prompts, page.next_cursor)
    }
}

impl Listing for ListResources {
    const MEMBER: &'static str = "resources";
    type Item = Resource;

    fn take(page: ListResourcesResult) -> (Vec<Resource>, Option<String>) {
        (page.resources, page.next_cursor)
    }
}

impl Listing for ListResourceTemplates {
    const MEMBER: &'static str = "resourceTemplates";
    type Item = ResourceTemplate;

    fn take(page: ListResourceTemplatesResult) -> (Vec<ResourceTemplate>, Option<String>) {
        (page.resource_templates, page.next_cursor)
    }
}

impl Listing for ListTasks {
    const MEMBER: &'static str = "tasks";
    type Item = TaskState;

    fn take(page: ListTasksResult) -> (Vec<TaskState>, Option<String>) {
        (page.tasks.into_iter().map(TaskState::from).collect(), page.next_cursor)
    }
}

#[cfg(feature = "skills")]
impl Listing for ListSkills {
    const MEMBER: &'static str = "skills";
    type Item = Skill;

    fn take(page: ListSkillsResult) -> (Vec<Skill>, Option<String>) {
        (page.skills, page.next_cursor)
    }
}

/// A list: await it for all items, or take them as a stream.
///
/// It fails when the server sends more pages, items or bytes than
/// [`ClientLimits`](super::ClientLimits) allows, or a page twice.
pub type List<M> = Call<Pages<M>>;

/// All pages of a list.
pub struct Pages<M: Listing>(PhantomData<fn() -> M>);

impl<M: Listing> Call<Pages<M>> {
    pub(super) fn list(client: &Client) -> Self {
        Self::new(client, Pages(PhantomData))
    }

    /// Returns item by item; asks for the next page when the last one is used up.
    pub fn stream(self) -> Items<M> {
        let Self { client, options, .. } = self;
        Items { client, options, ready: Vec::new().into_iter(), page: Page::Next(Walk::new()) }
    }
}

impl<M: Listing> IntoFuture for Call<Pages<M>> {
    type Output = Result<Vec<M::Item>, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut walk = Walk::<M>::new();
            let mut all = walk.next_page(&self.client.shared, &self.options).await?;
            while !walk.is_over {
                all.extend(walk.next_page(&self.client.shared, &self.options).await?);
            }
            Ok(all)
        })
    }
}

/// The items of a list.
pub struct Items<M: Listing> {
    client: Client,
    options: CallOptions,
    ready: std::vec::IntoIter<M::Item>,
    page: Page<M>,
}

/// The items of a page, and where the next one begins.
type Turned<M> = (Vec<<M as Listing>::Item>, Walk<M>);

enum Page<M: Listing> {
    /// The next page is to be asked for.
    Next(Walk<M>),
    /// A page that was asked for.
    Awaited(Boxed<'static, Result<Turned<M>, CallError>>),
    /// There are no more.
    Last,
}

impl<M: Listing> Items<M> {
    /// Waits for the next item. Returns `None` after the last, or after an error.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Result<M::Item, CallError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<M: Listing> Stream for Items<M> {
    type Item = Result<M::Item, CallError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.ready.next() {
                return Poll::Ready(Some(Ok(item)));
            }
            match std::mem::replace(&mut this.page, Page::Last) {
                Page::Last => return Poll::Ready(None),
                Page::Next(walk) if walk.is_over => return Poll::Ready(None),
                Page::Next(mut walk) => {
                    let (client, options) = (this.client.clone(), this.options.clone());
                    this.page = Page::Awaited(Box::pin(async move {
                        let items = walk.next_page(&client.shared, &options).await?;
                        Ok((items, walk))
                    }));
                }
                Page::Awaited(mut page) => match page.as_mut().poll(cx) {
                    Poll::Pending => {
                        this.page = Page::Awaited(page);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((items, walk))) => {
                        this.ready = items.into_iter();
                        this.page = Page::Next(walk);
                    }
                },
            }
        }
    }
}

/// A walk over the pages of a list.
struct Walk<M> {
    /// Where the next page starts.
    cursor: Option<String>,
    /// Whether the last page has been read.
    is_over: bool,
    pages: u64,
    items: u64,
    bytes: usize,
    cursors: HashSet<String>,
    method: PhantomData<fn() -> M>,
}

impl<M: Listing> Walk<M> {
    fn new() -> Self {
        let (cursors, method) = (HashSet::new(), PhantomData);
        Self { cursor: None, is_over: false, pages: 0, items: 0, bytes: 0, cursors, method }
    }

    /// Asks for the next page, and returns those of its items that may be shown.
    async fn next_page(
        &mut self,
        shared: &Arc<Shared>,
        options: &CallOptions,
    ) -> Result<Vec<M::Item>, CallError> {
        let params = PaginatedParams { cursor: self.cursor.take(), meta: RequestMeta::default() };
        let limits = &shared.profile.limits;
        let (before, items_left) = (self.bytes, limits.list_items.saturating_sub(self.items));
        let read = AtomicUsize::new(0);
        let examine = |page: &Json| {
            let bytes = before.saturating_add(page.as_str().len());
            read.store(bytes, Ordering::Relaxed);
            if bytes > limits.list_bytes {
                return Err(exceeded::<M>(ClientLimit::ListBytes, limits.list_bytes as u64));
            }
            // Items are much larger once they are read.
            if page.as_str().len() > COUNTED && count(page, M::MEMBER) > items_left {
                return Err(exceeded::<M>(ClientLimit::ListItems, limits.list_items));
            }
            Ok(())
        };
        let page = shared.call_examined::<M>(building::<M>(params), options, examine).await?;
        self.bytes = read.load(Ordering::Relaxed);
        let (mut items, next) = M::take(page);
        self.count(limits, items.len(), next.as_deref())?;
        items.retain(|item| admit(shared, item));
        self.is_over = next.is_none();
        self.cursor = next;
        Ok(items)
    }

    fn count(
        &mut self,
        limits: &ClientLimits,
        items: usize,
        next: Option<&str>,
    ) -> Result<(), CallError> {
        self.pages += 1;
        self.items = self.items.saturating_add(items as u64);
        if self.items > limits.list_items {
            return Err(exceeded::<M>(ClientLimit::ListItems, limits.list_items));
        }
        let Some(next) = next else { return Ok(()) };
        if self.pages >= limits.list_pages {
            return Err(exceeded::<M>(ClientLimit::ListPages, limits.list_pages));
        }
        if !self.cursors.insert(next.to_owned()) {
            let problem = format!("result.nextCursor {next:?} repeats an earlier one");
            return Err(DecodeError::new(M::NAME, problem).into());
        }
        Ok(())
    }
}

fn exceeded<M: Method>(limit: ClientLimit, most: u64) -> CallError {
    CallError::LimitExceeded { method: M::NAME.to_owned(), limit, most }
}

/// Longer pages are counted before they are read.
const COUNTED: usize = 256 << 10;

/// How many items a page has.
fn count(page: &Json, member: &str) -> u64 {
    let mut reader = serde_json::Deserializer::from_str(page.as_str());
    // What cannot be counted cannot be read either, and the reader says why.
    Counter { member: Some(member) }.deserialize(&mut reader).unwrap_or(0)
}

/// Counts the items of a list: of a member of an object, or of the list itself.
struct Counter<'a> {
    member: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Counter<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<u64, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counter<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or an object with one")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if self.member == Some(&*name) {
                count += members.next_value_seed(Counter { member: None })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(count)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// Whether an item may be shown. Of tools, this remembers what calls need to know.
fn admit(shared: &Shared, item: &dyn Any) -> bool {
    let Some(tool) = item.downcast_ref::<Tool>() else { return true };
    let needs_headers = shared.live().is_some_and(|live| live.sends_headers());
    shared.tools.learn(tool, needs_headers)
}

/// Lists the tools again, because the server misses headers, or rejects a call, and only their
/// definitions tell why.
pub(super) async fn relist(shared: &Arc<Shared>) {
    let options = CallOptions { skips_cache: true, ..CallOptions::default() };
    let mut walk = Walk::<ListTools>::new();
    while !walk.is_over {
        if let Err(error) = walk.next_page(shared, &options).await {
            tracing::debug!(%error, "the tools cannot be listed again");
            return;
        }
    }
}
