// Package mcp is the Model Context Protocol server: the API as tools for agents,
// over Streamable HTTP and without sessions, so that any node answers any call.
//
// A tool is an operation of the contract under another name. Its arguments are
// the operation's parameters and body, its schemas are read out of the contract,
// and a call of it is a call of the operation, within this process, as the caller
// of the request: rights, limits, validation and errors are the API's own, and
// none of them is written here. Only what there is no operation for is: what an
// agent is told of a mail's delivery (diagnose.go), and how mail is shown to it.
//
// What a mail says is written by strangers, and read by a program that follows
// instructions. All of it stands between tags that no mail can forge (fence.go).
//
// A call that is refused is a result with isError and the text `code: message`,
// with the codes of the API. A request that is no good MCP is an error of the
// protocol.
package mcp
