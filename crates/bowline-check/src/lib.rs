//! Checks an MCP server against the specification, frame by frame.

pub mod frames;
