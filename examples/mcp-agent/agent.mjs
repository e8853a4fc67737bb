// What an agent does to sign up somewhere, through the official MCP client: it creates an
// inbox and waits for the code. In an agent, the model makes these calls.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL("/mcp", process.env.POSTROOM_URL ?? "http://127.0.0.1:8025");
const key = process.env.POSTROOM_KEY ?? "dev";

const agent = new Client({ name: "example-agent", version: "1.0.0" });
await agent.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
const call = async (name, args) => {
  const result = await agent.callTool({ name, arguments: args });
  if (result.isError) throw new Error(result.content[0].text);
  return result.structuredContent;
};

const { tools } = await agent.listTools();
console.log(tools.length > 10 ? "connected" : "too few tools");
const inbox = await call("create_inbox", {});
await call("send_email", { inbox_id: inbox.id, to: [inbox.address], subject: "Welcome", text: "Your verification code is 482913." });
const found = await call("wait_for_code", { inbox_id: inbox.id, timeout: 30 });
console.log("The code is", found.otp ?? found.code?.otp);
await agent.close();
