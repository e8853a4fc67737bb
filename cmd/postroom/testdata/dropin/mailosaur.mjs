// The SDK of Mailosaur speaks HTTPS to port 443 only, so this runs behind a proxy with TLS.
import assert from 'node:assert/strict'
import MailosaurClient from 'mailosaur'
import { refused, send, works } from './try.mjs'

const client = new MailosaurClient('any-key', process.env.POSTROOM_TLS + '/mailosaur/')
const server = 'abcd1234'
const to = client.servers.generateEmailAddress(server)
const begin = new Date(Date.now() - 60_000)
let id

await works('messages.get', async () => {
	setTimeout(() => send({
		from: 'Acme <hello@acme.test>', to, subject: 'Your sign-in code', text: 'Your code is 482913. Or open https://acme.test/verify?t=1.',
		html: '<p>Your code is <b>482913</b>. <a href="https://acme.test/verify?t=1">Verify <i>now</i></a> <img src="https://acme.test/logo.png" alt="Logo"></p>',
		attachments: [{ filename: 'terms.txt', content: Buffer.from('The terms').toString('base64') }],
	}), 300)
	const m = await client.messages.get(server, { sentTo: to }, { timeout: 20_000 })
	assert.equal(m.subject, 'Your sign-in code')
	assert.deepEqual({ ...m.from[0] }, { name: 'Acme', email: 'hello@acme.test', phone: undefined })
	assert.equal(m.html.codes[0].value, '482913')
	assert.equal(m.text.codes[0].value, '482913')
	assert.equal(m.html.links[0].href, 'https://acme.test/verify?t=1')
	assert.equal(m.html.links[0].text, 'Verify now')
	assert.equal(m.text.links[0].href, 'https://acme.test/verify?t=1')
	assert.equal(m.html.images[0].alt, 'Logo')
	assert.equal(m.attachments[0].fileName, 'terms.txt')
	assert.equal(m.metadata.rcptTo[0].email, to)
	assert.ok(m.metadata.headers.some((h) => h.field === 'Subject'))
	assert.ok(m.received >= begin)
	id = m.id
})
await works('messages.getById', async () => assert.match((await client.messages.getById(id)).html.body, /482913/))
await works('messages.list', async () => {
	await send({ from: 'other@shop.test', to: `second@${server}.mailosaur.net`, subject: 'Receipt', text: 'Thank you.' })
	await client.messages.search(server, { subject: 'receipt' }, { timeout: 20_000 })
	await send({ from: 'other@shop.test', to: 'elsewhere@efgh5678.mailosaur.net', subject: 'Receipt', text: 'Thank you.' })
	await client.messages.search('efgh5678', { subject: 'receipt' }, { timeout: 20_000 })
	assert.equal((await client.messages.list(server)).items.length, 2)
	assert.equal((await client.messages.list(server, { page: 1, itemsPerPage: 1 })).items[0].id, id)
	assert.equal((await client.messages.list(server, { receivedAfter: new Date(Date.now() + 60_000) })).items.length, 0)
	assert.equal((await client.messages.list(server, { dir: 'Sent' })).items.length, 0)
	assert.equal((await client.messages.list('postroom')).items.length, 3)
})
await works('messages.search by sentFrom', async () => {
	assert.equal((await client.messages.search(server, { sentFrom: 'HELLO@acme.test' })).items[0].id, id)
})
await works('messages.search by sentTo', async () => {
	assert.equal((await client.messages.search(server, { sentTo: to })).items.length, 1)
})
await works('messages.search by subject', async () => {
	assert.equal((await client.messages.search(server, { subject: 'SIGN-IN' })).items[0].attachments, 1)
})
await works('messages.search by body', async () => {
	assert.equal((await client.messages.search(server, { body: 'code is 4829' })).items[0].id, id)
})
await works('messages.search with match', async () => {
	const criteria = { sentTo: to, subject: 'receipt' }
	assert.equal((await client.messages.search(server, criteria)).items.length, 0)
	assert.equal((await client.messages.search(server, { ...criteria, match: 'ANY' })).items.length, 2)
})
await refused('messages.search without a match', 'No matching messages found in time', () =>
	client.messages.search(server, { subject: 'never' }, { timeout: 500 }))
await refused('messages.search with other criteria', 'from is not supported', () => client.messages.search(server, { from: 'a@b.test' }))
await works('files.getEmail', async () => assert.match((await client.files.getEmail(id)).toString(), /Subject: Your sign-in code/))
await works('files.getAttachment', async () => {
	const m = await client.messages.getById(id)
	assert.equal((await client.files.getAttachment(m.attachments[0].id)).toString(), 'The terms')
})
await works('messages.reply', async () => {
	const reply = await client.messages.reply(id, { text: 'Thank you.', attachments: [{ fileName: 'a.txt', contentType: 'text/plain', content: 'QQ==' }] })
	assert.deepEqual([reply.to[0].email, reply.subject, reply.attachments[0].fileName], ['hello@acme.test', 'Re: Your sign-in code', 'a.txt'])
	const { items } = await client.messages.search('acme', { subject: 'Re: Your' }, { timeout: 20_000 })
	assert.equal((await client.messages.getById(items[0].id)).text.body, 'Thank you.')
})
await works('messages.forward', async () => {
	const forwarded = await client.messages.forward(id, { to: 'ben@shop.test', text: 'See below.' })
	assert.equal(forwarded.to[0].email, 'ben@shop.test')
	const { items } = await client.messages.search('shop', { sentTo: 'ben@shop.test' }, { timeout: 20_000 })
	assert.match((await client.messages.getById(items[0].id)).text.body, /See below.[^]*482913/)
})
await works('servers.list', async () => assert.deepEqual((await client.servers.list()).items.map((s) => s.id), ['postroom']))
await works('servers.get', async () => assert.equal((await client.servers.get(server)).messages, 2))
await works('messages.del', async () => {
	await client.messages.del(id)
	await assert.rejects(client.messages.getById(id), /Not found/)
})
await works('messages.deleteAll', async () => {
	await client.messages.deleteAll(server)
	assert.equal((await client.messages.list(server)).items.length, 0)
	assert.equal((await client.messages.list('efgh5678')).items.length, 1)
})
const text = 'Postroom has no'
await refused('messages.create', text, () => client.messages.create(server, { to, subject: 'x', text: 'x' }))
await refused('messages.generatePreviews', text, () => client.messages.generatePreviews(id, {}))
await refused('servers.create', text, () => client.servers.create({ name: 'x' }))
await refused('servers.update', text, () => client.servers.update(server, { name: 'x' }))
await refused('servers.getPassword', text, () => client.servers.getPassword(server))
await refused('servers.del', text, () => client.servers.del(server))
await refused('analysis.spam', text, () => client.analysis.spam(id))
await refused('analysis.deliverability', text, () => client.analysis.deliverability(id))
await refused('usage.limits', text, () => client.usage.limits())
await refused('devices.list', text, () => client.devices.list())
