// A suite of tests with Mailosaur, as its documentation shows them. Its address is all that
// changed.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import MailosaurClient from 'mailosaur'
import { POST } from './signup.mjs'

const mailosaur = new MailosaurClient('any-key', process.env.POSTROOM_TLS + '/mailosaur/')
const server = 'abcd1234'
const confirmed = []
const app = createServer((request, response) => {
	confirmed.push(new URL(request.url, 'http://app.test').searchParams.get('code'))
	response.end()
})

before(async () => {
	await new Promise((resolve) => app.listen(0, '127.0.0.1', resolve))
	process.env.APP_URL = `http://127.0.0.1:${app.address().port}`
	await mailosaur.messages.deleteAll(server)
})
after(() => app.close())

async function signUp(code) {
	const email = mailosaur.servers.generateEmailAddress(server)
	await POST(new Request('http://localhost/api/signup', { method: 'POST', body: JSON.stringify({ email, code }) }))
	return mailosaur.messages.get(server, { sentTo: email }, { timeout: 20_000 })
}

test('the mail has the code, and its link confirms', async () => {
	const message = await signUp('482913')
	assert.equal(message.subject, 'Your sign-in code')
	assert.equal(message.html.codes[0].value, '482913')
	await fetch(message.html.links[0].href)
	assert.deepEqual(confirmed, ['482913'])
})

test('the terms are attached', async () => {
	const { attachments } = await signUp('118205')
	assert.deepEqual([attachments[0].fileName, attachments[0].length], ['terms.txt', 9])
	assert.equal((await mailosaur.files.getAttachment(attachments[0].id)).toString(), 'The terms')
})

test('two users got mail, and a deleted one is gone', async () => {
	const { items } = await mailosaur.messages.list(server)
	assert.equal(items.length, 2)
	await mailosaur.messages.del(items[0].id)
	assert.equal((await mailosaur.messages.search(server, { sentFrom: 'onboarding@acme.test' })).items.length, 1)
})
