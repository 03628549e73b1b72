//! Lists: all pages as a `Vec`, or item by item as a stream.

use std::collections::{HashSet, VecDeque};
use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method};
use bowline_proto::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedParams, Prompt, RequestMeta, Resource, ResourceTemplate, Tool,
};
use futures_core::Stream;

use super::Client;
use super::call::{CallOptions, building};
use super::error::CallError;
use super::notification::Boxed;
use super::shared::Shared;

/// A method that lists something in pages.
pub trait Listing: for<'a> Method<Params<'a> = PaginatedParams<'a>> + 'static {
    /// What is listed.
    type Item: Send + Unpin + 'static;

    /// Takes a page apart: its items, and where the next page starts.
    fn take(page: Self::Result) -> (Vec<Self::Item>, Option<String>);

    /// Whether an item may be shown; remembers what calls need to know of it.
    #[doc(hidden)]
    fn admit(_: &Client, _: &Self::Item) -> bool {
        true
    }
}

impl Listing for ListTools {
    type Item = Tool;

    fn take(page: ListToolsResult) -> (Vec<Tool>, Option<String>) {
        (page.tools, page.next_cursor)
    }

    fn admit(client: &Client, tool: &Tool) -> bool {
        let is_modern_http = client.shared.live().is_some_and(|live| live.sends_headers());
        client.shared.tools.learn(tool, is_modern_http)
    }
}

impl Listing for ListPrompts {
    type Item = Prompt;

    fn take(page: ListPromptsResult) -> (Vec<Prompt>, Option<String>) {
        (page.prompts, page.next_cursor)
    }
}

impl Listing for ListResources {
    type Item = Resource;

    fn take(page: ListResourcesResult) -> (Vec<Resource>, Option<String>) {
        (page.resources, page.next_cursor)
    }
}

impl Listing for ListResourceTemplates {
    type Item = ResourceTemplate;

    fn take(page: ListResourceTemplatesResult) -> (Vec<ResourceTemplate>, Option<String>) {
        (page.resource_templates, page.next_cursor)
    }
}

/// A list that has not been asked for: await it for all of it, or take it as a stream.
///
/// It ends with an error when the server gives more pages or items than
/// [`ClientLimits`](super::ClientLimits) allows, or a page twice.
#[must_use = "a list is not asked for until it is awaited"]
pub struct List<M: Listing> {
    client: Client,
    options: CallOptions,
    method: std::marker::PhantomData<fn() -> M>,
}

impl<M: Listing> List<M> {
    pub(super) fn new(client: &Client) -> Self {
        let options = CallOptions::default();
        Self { client: client.clone(), options, method: std::marker::PhantomData }
    }

    /// How long to wait for each page.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.total = Some(timeout);
        self
    }

    /// Asks the server even if fresh pages are at hand.
    pub fn without_cache(mut self) -> Self {
        self.options.skips_cache = true;
        self
    }

    /// Item by item; the next page is asked for when the last one is used up.
    pub fn stream(self) -> Items<M> {
        let Self { client, options, .. } = self;
        let walk = Walk::default();
        Items { client, options, walk, ready: VecDeque::new(), state: Page::Next(None) }
    }
}

impl<M: Listing> IntoFuture for List<M> {
    type Output = Result<Vec<M::Item>, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut items = self.stream();
            let mut all = Vec::new();
            while let Some(item) = items.next().await {
                all.push(item?);
            }
            Ok(all)
        })
    }
}

/// The items of a list.
pub struct Items<M: Listing> {
    client: Client,
    options: CallOptions,
    walk: Walk,
    ready: VecDeque<M::Item>,
    state: Page<M>,
}

enum Page<M: Listing> {
    /// The page to ask for next.
    Next(Option<String>),
    /// A page that was asked for.
    Awaited(Boxed<'static, Result<M::Result, CallError>>),
    /// There are no more.
    Last,
}

/// How far a walk over pages has come.
#[derive(Default)]
struct Walk {
    pages: u64,
    items: u64,
    cursors: HashSet<String>,
}

impl<M: Listing> Items<M> {
    /// The next item. `None` after the last, or after an error.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Result<M::Item, CallError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn ask(&self, cursor: Option<String>) -> Boxed<'static, Result<M::Result, CallError>> {
        let client = self.client.clone();
        let options = self.options.clone();
        Box::pin(async move {
            let params = PaginatedParams { cursor, meta: RequestMeta::default() };
            client.shared.call::<M>(building::<M>(params), &options).await
        })
    }

    fn take_in(&mut self, page: M::Result) -> Result<(), CallError> {
        let (items, next) = M::take(page);
        self.walk.step::<M>(&self.client.shared, items.len(), next.as_deref())?;
        let client = &self.client;
        self.ready.extend(items.into_iter().filter(|item| M::admit(client, item)));
        self.state = next.map_or(Page::Last, |cursor| Page::Next(Some(cursor)));
        Ok(())
    }
}

impl Walk {
    fn step<M: Listing>(
        &mut self,
        shared: &Shared,
        items: usize,
        next: Option<&str>,
    ) -> Result<(), CallError> {
        let limits = &shared.profile.limits;
        self.pages += 1;
        self.items = self.items.saturating_add(items as u64);
        let exceeded =
            |what, limit| Err(CallError::LimitExceeded { method: M::NAME.to_owned(), what, limit });
        if self.items > limits.list_items {
            return exceeded("the number of items (ClientLimits::list_items)", limits.list_items);
        }
        let Some(next) = next else { return Ok(()) };
        if self.pages >= limits.list_pages {
            return exceeded("the number of pages (ClientLimits::list_pages)", limits.list_pages);
        }
        if !self.cursors.insert(next.to_owned()) {
            let problem =
                format!("result.nextCursor {next:?} was there before; the list never ends");
            return Err(DecodeError::new(M::NAME, problem).into());
        }
        Ok(())
    }
}

impl<M: Listing> Stream for Items<M> {
    type Item = Result<M::Item, CallError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match &mut this.state {
                Page::Last => return Poll::Ready(None),
                Page::Next(cursor) => {
                    let cursor = cursor.take();
                    this.state = Page::Awaited(this.ask(cursor));
                }
                Page::Awaited(page) => {
                    let page = ready!(page.as_mut().poll(cx));
                    this.state = Page::Last;
                    if let Err(error) = page.and_then(|page| this.take_in(page)) {
                        this.ready.clear();
                        this.state = Page::Last;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        }
    }
}
