//! Lists: all items as a `Vec`, or one by one as a stream.

use std::any::Any;
use std::collections::{HashSet, VecDeque};
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bowline_proto::decode::DecodeError;
use bowline_proto::method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method};
use bowline_proto::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedParams, Prompt, RequestMeta, Resource, ResourceTemplate, Tool,
};
use futures_core::Stream;

use super::Client;
use super::call::{Call, CallOptions, building};
use super::error::CallError;
use super::limits::{ClientLimit, ClientLimits};
use super::notification::Boxed;
use super::shared::Shared;

/// A method that lists items in pages.
pub trait Listing: for<'a> Method<Params<'a> = PaginatedParams<'a>> + 'static {
    /// The type of an item.
    type Item: Send + Unpin + 'static;

    /// Splits a page into its items and the cursor of the next page.
    fn take(page: Self::Result) -> (Vec<Self::Item>, Option<String>);
}

impl Listing for ListTools {
    type Item = Tool;

    fn take(page: ListToolsResult) -> (Vec<Tool>, Option<String>) {
        (page.tools, page.next_cursor)
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

/// A list: await it for all items, or take them as a stream.
///
/// It fails when the server sends more pages or items than [`ClientLimits`](super::ClientLimits)
/// allows, or a page twice.
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
        Items { client, options, ready: VecDeque::new(), page: Page::Next(Walk::new()) }
    }
}

impl<M: Listing> IntoFuture for Call<Pages<M>> {
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
    ready: VecDeque<M::Item>,
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
            if let Some(item) = this.ready.pop_front() {
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
                        this.ready.extend(items);
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
    cursors: HashSet<String>,
    method: PhantomData<fn() -> M>,
}

impl<M: Listing> Walk<M> {
    fn new() -> Self {
        let (cursors, method) = (HashSet::new(), PhantomData);
        Self { cursor: None, is_over: false, pages: 0, items: 0, cursors, method }
    }

    /// Asks for the next page, and returns those of its items that may be shown.
    async fn next_page(
        &mut self,
        shared: &Arc<Shared>,
        options: &CallOptions,
    ) -> Result<Vec<M::Item>, CallError> {
        let params = PaginatedParams { cursor: self.cursor.take(), meta: RequestMeta::default() };
        let page = shared.call::<M>(building::<M>(params), options).await?;
        let (mut items, next) = M::take(page);
        self.count(&shared.profile.limits, items.len(), next.as_deref())?;
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
        let exceeded =
            |limit, most| Err(CallError::LimitExceeded { method: M::NAME.to_owned(), limit, most });
        if self.items > limits.list_items {
            return exceeded(ClientLimit::ListItems, limits.list_items);
        }
        let Some(next) = next else { return Ok(()) };
        if self.pages >= limits.list_pages {
            return exceeded(ClientLimit::ListPages, limits.list_pages);
        }
        if !self.cursors.insert(next.to_owned()) {
            let problem = format!("result.nextCursor {next:?} repeats an earlier one");
            return Err(DecodeError::new(M::NAME, problem).into());
        }
        Ok(())
    }
}

/// Whether an item may be shown. Of tools, this remembers what calls need to know.
fn admit(shared: &Shared, item: &dyn Any) -> bool {
    let Some(tool) = item.downcast_ref::<Tool>() else { return true };
    let needs_headers = shared.live().is_some_and(|live| live.sends_headers());
    shared.tools.learn(tool, needs_headers)
}

/// Lists the tools again, because the server misses headers that only their schemas tell of.
#[cfg(feature = "client-http")]
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
