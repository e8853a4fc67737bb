// Connects with the OAuth client of the official SDK, as a person who approves it in a
// browser: node oauth.mjs <server> <session cookie> <inbox id>. Prints one JSON object.
import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [server, session, inbox] = process.argv.slice(2);
const endpoint = new URL('/mcp', server);
const back = 'http://localhost:8976/callback';

let redirect, client, tokens, verifier;
const provider = {
  redirectUrl: back,
  clientMetadata: { client_name: 'TypeScript client', redirect_uris: [back], grant_types: ['authorization_code', 'refresh_token'] },
  state: () => 'state of the client',
  clientInformation: () => client,
  saveClientInformation: (info) => { client = info; },
  tokens: () => tokens,
  saveTokens: (saved) => { tokens = saved; },
  redirectToAuthorization: (url) => { redirect = url; },
  saveCodeVerifier: (saved) => { verifier = saved; },
  codeVerifier: () => verifier,
  invalidateCredentials: (which) => { if (which !== 'verifier') tokens = undefined; },
};

const connect = async () => {
  const c = new Client({ name: 'test', version: '1' });
  await c.connect(new StreamableHTTPClientTransport(endpoint, { authProvider: provider }));
  return c;
};
const refused = async (what) => {
  try {
    await what();
  } catch (e) {
    return e.constructor.name;
  }
  return '';
};

// The first attempt sends the person to the consent page.
const before = await refused(connect);
const headers = { Cookie: `postroom_session=${session}`, Origin: server, 'Sec-Fetch-Site': 'same-origin' };
const page = await (await fetch(redirect, { headers })).text();
const form = new URLSearchParams(redirect.search);
for (const [name, value] of Object.entries({ decision: 'approve', preset: 'agent', inboxes: 'some', inbox_ids: inbox, expires: '1' })) form.append(name, value);
const answer = await fetch(new URL('/oauth/authorize', server), { method: 'POST', headers, body: form, redirect: 'manual' });
const to = new URL(answer.headers.get('location'));

await new StreamableHTTPClientTransport(endpoint, { authProvider: provider }).finishAuth(to.searchParams.get('code'));
let connected = await connect();
const tools = (await connected.listTools()).tools.map((t) => t.name);
const inboxes = await connected.callTool({ name: 'list_inboxes', arguments: {} });

// The client refreshes its tokens, and goes on with the new ones.
const old = tokens;
const refresh = await auth(provider, { serverUrl: endpoint });
connected = await connect();
const renewed = (await connected.listTools()).tools.length === tools.length && tokens.access_token !== old.access_token;

// A refresh token that was used before ends the connection: the client has to ask again.
tokens = { ...tokens, refresh_token: old.refresh_token };
redirect = undefined;
const again = await auth(provider, { serverUrl: endpoint });
const after = await refused(() => connected.listTools());

console.log(JSON.stringify({
  before, named: page.includes('TypeScript client'), back: to.origin + to.pathname, state: to.searchParams.get('state'), iss: to.searchParams.get('iss'),
  scope: old.scope, sends: tools.includes('send_email'), inboxes: inboxes.structuredContent.data.map((i) => i.id), refresh, renewed, again, asked: !!redirect, after,
}));
