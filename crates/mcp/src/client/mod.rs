//! Starting MCP servers as owned process trees.
