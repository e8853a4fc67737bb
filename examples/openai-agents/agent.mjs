// An agent of the OpenAI Agents SDK with the tools of Postroom, over MCP. With OPENAI_API_KEY
// the model makes the calls; without it, this program does.
import { Agent, MCPServerStreamableHttp, run } from "@openai/agents";

const server = new MCPServerStreamableHttp({
  name: "postroom",
  url: (process.env.POSTROOM_URL ?? "http://127.0.0.1:8025") + "/mcp",
  requestInit: { headers: { Authorization: `Bearer ${process.env.POSTROOM_KEY ?? "dev"}` } },
});
await server.connect();
const agent = new Agent({ name: "Mail", instructions: "Use the tools of Postroom for mail.", mcpServers: [server] });

if (process.env.OPENAI_API_KEY) {
  const result = await run(agent, "Create an inbox, send a made-up verification code to it, wait for the code and tell me.");
  console.log(result.finalOutput);
} else {
  const call = async (name, args) => (await server.callTool(name, args))[0].text;
  const inbox = JSON.parse(await call("create_inbox", {}));
  await call("send_email", { inbox_id: inbox.id, to: [inbox.address], subject: "Welcome", text: "Your verification code is 482913." });
  const found = await call("wait_for_code", { inbox_id: inbox.id, timeout: 30 });
  console.log("The code is", /\b\d{6}\b/.exec(found)[0]);
}
await server.close();
