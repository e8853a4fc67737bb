// Package mcp is the Model Context Protocol server: the API as tools for agents,
// over Streamable HTTP. It has no sessions, so any node can serve any call.
//
// A tool is an operation of the contract under another name. Its arguments are
// the operation's parameters and body, its schemas come from the contract, and a
// tool call runs the operation in this process as the caller. Permissions,
// limits, validation and errors are the API's own. Only delivery diagnosis
// (diagnose.go) and the presentation of messages are implemented here.
//
// Message content comes from strangers, and its reader is a program that follows
// instructions. All content is enclosed in tags that a message cannot forge
// (fence.go).
//
// A refused call is a result with isError and the text `code: message`, with the
// codes of the API. An invalid MCP request is a protocol error.
package mcp
