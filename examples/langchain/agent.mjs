// The tools of Postroom for LangChain, over MCP. The tools are called here as a model would.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const url = (process.env.POSTROOM_URL ?? "http://127.0.0.1:8025") + "/mcp";
const headers = { Authorization: `Bearer ${process.env.POSTROOM_KEY ?? "dev"}` };
const client = new MultiServerMCPClient({ mcpServers: { postroom: { transport: "http", url, headers } } });
const tools = await client.getTools();

// With a model: createAgent({ model: "openai:gpt-5", tools }), from "langchain".
const call = async (name, args) => {
  const result = await tools.find((tool) => tool.name === name).invoke(args);
  return typeof result === "string" ? result : [result].flat()[0].text;
};
const inbox = JSON.parse(await call("create_inbox", {}));
await call("send_email", { inbox_id: inbox.id, to: [inbox.address], subject: "Welcome", text: "Your verification code is 482913." });
const found = await call("wait_for_code", { inbox_id: inbox.id, timeout: 30 });
console.log("The code is", /\b\d{6}\b/.exec(found)[0]);
await client.close();
