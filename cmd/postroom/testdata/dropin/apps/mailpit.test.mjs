// A suite of tests with Mailpit's API, as its client's documentation shows them. Its address
// is all that changed.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { MailpitClient } from 'mailpit-api'
import { POST } from './signup.mjs'

const mailpit = new MailpitClient(process.env.POSTROOM_URL + '/mailpit')

beforeEach(() => mailpit.deleteMessages())

async function signUp(email, code) {
	await POST(new Request('http://localhost/api/signup', { method: 'POST', body: JSON.stringify({ email, code }) }))
	return mailpit.waitForMessage({ query: `to:${email} subject:"sign-in code"` }, { timeout: 20_000, interval: 50 })
}

test('a new user gets a code', async () => {
	const message = await signUp('carl@shop.test', '482913')
	assert.deepEqual(message.To, [{ Name: '', Address: 'carl@shop.test' }])
	assert.match(message.HTML, /<strong>482913/)
	assert.match(message.Text, /482913/)
})

test('the terms are attached', async () => {
	const message = await signUp('dora@shop.test', '118205')
	const [terms] = message.Attachments
	assert.equal(await (await mailpit.getMessageAttachment(message.ID, terms.PartID)).text(), 'The terms')
})

test('each test begins with an empty mailbox', async () => {
	assert.equal((await mailpit.listMessages()).total, 0)
	await signUp('eve@shop.test', '660679')
	const { messages, unread } = await mailpit.searchMessages({ query: 'is:unread' })
	assert.deepEqual([messages.length, unread, messages[0].Attachments], [1, 1, 1])
})
