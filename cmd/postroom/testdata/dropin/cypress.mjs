// The commands of cypress-mailosaur, without Cypress: what they call is replaced by calls of
// Node, so that the requests are those of the plugin.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { base, refused, send, works } from './try.mjs'

Promise.prototype.timeout = function () { return this }
const commands = {}
async function request({ method, url, qs, headers, body, json, encoding }) {
	const to = new URL(url)
	for (const [name, value] of Object.entries(qs ?? {})) {
		if (value !== undefined) {
			to.searchParams.set(name, value instanceof Date ? value.toISOString() : value)
		}
	}
	const sent = json ?? body
	const response = await fetch(to, { method, headers: { ...headers, ...(sent && { 'Content-Type': 'application/json' }) }, body: sent && JSON.stringify(sent) })
	const text = encoding === 'binary' ? Buffer.from(await response.arrayBuffer()).toString('latin1') : await response.text()
	const isJSON = response.headers.get('content-type')?.includes('json')
	return { status: response.status, isOkStatusCode: response.ok, headers: Object.fromEntries(response.headers), body: isJSON ? JSON.parse(text) : text }
}
globalThis.cy = {
	env: async () => ({ MAILOSAUR_API_KEY: 'any-key', MAILOSAUR_BASE_URL: base + '/mailosaur/' }),
	wrap: async (value) => value,
	request,
}
globalThis.Cypress = { Promise, Commands: { add: (name, run) => { commands[name] = cy[name] = run } }, backend: (_, options) => request(options) }
createRequire(import.meta.url)('cypress-mailosaur')

const server = 'abcd1234'
const to = await cy.mailosaurGenerateEmailAddress(server)
let message
await works('mailosaurGetMessage', async () => {
	setTimeout(() => send({
		from: 'hello@acme.test', to, subject: 'Your sign-in code', html: '<p>Your code is 482913. <a href="https://acme.test/verify">Verify</a></p>',
		attachments: [{ filename: 'terms.txt', content: Buffer.from('The terms').toString('base64') }],
	}), 300)
	message = await cy.mailosaurGetMessage(server, { sentTo: to }, { timeout: 20_000 })
	assert.equal(message.html.codes[0].value, '482913')
	assert.equal(message.html.links[0].href, 'https://acme.test/verify')
})
await works('mailosaurGetMessageById', async () => assert.equal((await cy.mailosaurGetMessageById(message.id)).subject, 'Your sign-in code'))
await works('mailosaurListMessages', async () => assert.equal((await cy.mailosaurListMessages(server)).items.length, 1))
await works('mailosaurSearchMessages', async () => {
	assert.equal((await cy.mailosaurSearchMessages(server, { subject: 'never' }, { timeout: 300, errorOnTimeout: false })).items.length, 0)
})
await works('mailosaurGetMessagesBySubject', async () => assert.equal((await cy.mailosaurGetMessagesBySubject(server, 'code')).items.length, 1))
await works('mailosaurGetMessagesByBody', async () => assert.equal((await cy.mailosaurGetMessagesByBody(server, '482913')).items.length, 1))
await works('mailosaurGetMessagesBySentFrom', async () => assert.equal((await cy.mailosaurGetMessagesBySentFrom(server, 'hello@acme.test')).items.length, 1))
await works('mailosaurGetMessagesBySentTo', async () => assert.equal((await cy.mailosaurGetMessagesBySentTo(server, to)).items.length, 1))
await works('mailosaurDownloadAttachment', async () => assert.equal(await cy.mailosaurDownloadAttachment(message.attachments[0].id), 'The terms'))
await works('mailosaurDownloadMessage', async () => assert.match(await cy.mailosaurDownloadMessage(message.id), /Subject: Your sign-in code/))
await works('mailosaurReplyToMessage', async () => {
	assert.equal((await cy.mailosaurReplyToMessage(message.id, { text: 'Thank you.' })).to[0].email, 'hello@acme.test')
})
await works('mailosaurForwardMessage', async () => {
	assert.equal((await cy.mailosaurForwardMessage(message.id, { to: 'ben@shop.test', text: 'See below.' })).to[0].email, 'ben@shop.test')
})
await works('mailosaurListServers', async () => assert.equal((await cy.mailosaurListServers()).items[0].id, 'postroom'))
await works('mailosaurGetServer', async () => assert.equal((await cy.mailosaurGetServer(server)).messages, 1))
await works('mailosaurDeleteMessage', () => cy.mailosaurDeleteMessage(message.id))
await works('mailosaurDeleteAllMessages', async () => {
	await cy.mailosaurDeleteAllMessages(server)
	assert.equal((await cy.mailosaurListMessages(server)).items.length, 0)
})
await refused('mailosaurGetSpamAnalysis', 'Not found', () => cy.mailosaurGetSpamAnalysis(message.id))
