//! Attributes that turn functions into tools, prompts and resources of an MCP server.
//!
//! They expand to what you could write by hand with the builders of the `bowline` crate, which
//! re-exports them. The generated code refers to `::bowline` only.
//!
//! Tests of the attributes, the examples in `docs` included, are in `bowline-macros-ui`: what an
//! attribute's own package needs for its tests is compiled a second time, for the compiler.

mod build;
mod callback;
mod doc;
mod duration;
mod function;
mod group;
mod options;
mod parameter;
mod signature;
mod task;
mod template;

use proc_macro::TokenStream;

use self::options::Kind;

#[doc = include_str!("../docs/tool.md")]
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Tool, options.into(), &item.into()).into()
}

#[doc = include_str!("../docs/prompt.md")]
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Prompt, options.into(), &item.into()).into()
}

#[doc = include_str!("../docs/resource.md")]
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Resource, options.into(), &item.into()).into()
}

#[doc = include_str!("../docs/server.md")]
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    group::expand(options.into(), &item.into()).into()
}
