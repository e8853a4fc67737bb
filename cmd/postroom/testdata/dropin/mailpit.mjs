import assert from 'node:assert/strict'
import { MailpitClient } from 'mailpit-api'
import { base, refused, works } from './try.mjs'

const client = new MailpitClient(base + '/mailpit')

await works('sendMessage', async () => {
	const sent = await client.sendMessage({
		From: { Email: 'hello@acme.test', Name: 'Acme' }, To: [{ Email: 'ana@example.test', Name: 'Ana' }], Cc: [{ Email: 'ben@example.test' }],
		Bcc: ['carl@example.test'], ReplyTo: [{ Email: 'help@acme.test' }], Subject: 'Welcome aboard', Text: 'Your code is 482913.',
		HTML: '<p>Your code is <b>482913</b>.</p><img src="cid:logo">', Headers: { 'X-Campaign': 'spring', 'List-Unsubscribe': '<https://acme.test/u>' },
		Attachments: [
			{ Filename: 'terms.txt', Content: Buffer.from('The terms').toString('base64') },
			{ Filename: 'logo.png', Content: 'iVBORw0KGgo=', ContentType: 'image/png', ContentID: 'logo' },
		],
	})
	assert.ok(sent.ID)
})
let message
await works('waitForMessage', async () => {
	await client.waitForMessages({ query: 'bcc:carl' }, { timeout: 10_000, interval: 50 })
	message = await client.waitForMessage({ query: 'subject:"Welcome aboard" to:ana@example.test' }, { timeout: 10_000, interval: 50 })
	assert.equal(message.Subject, 'Welcome aboard')
	assert.deepEqual(message.From, { Name: 'Acme', Address: 'hello@acme.test' })
	assert.equal(message.Cc[0].Address, 'ben@example.test')
	assert.equal(message.ReplyTo[0].Address, 'help@acme.test')
	assert.match(message.Text, /482913/)
	assert.match(message.HTML, /<b>482913/)
	assert.equal(message.Attachments[0].FileName, 'terms.txt')
	assert.equal(message.Inline[0].ContentID, 'logo')
	assert.deepEqual(message.ListUnsubscribe.Links, ['https://acme.test/u'])
})
await works('waitForMessages', async () => {
	const list = await client.waitForMessages({ count: 1, exact: true }, { timeout: 10_000 })
	assert.equal(list.messages[0].Attachments, 2)
})
await works('getMessageSummary', async () => assert.equal((await client.getMessageSummary()).MessageID, message.MessageID))
await works('getMessageHeaders', async () => assert.deepEqual((await client.getMessageHeaders(message.ID))['X-Campaign'], ['spring']))
await works('getMessageAttachment', async () => {
	assert.equal(await (await client.getMessageAttachment(message.ID, message.Attachments[0].PartID)).text(), 'The terms')
})
await works('getMessageSource', async () => assert.match(await client.getMessageSource(message.ID), /^Subject: Welcome aboard/m))
await works('listMessages', async () => {
	await client.sendMessage({ From: { Email: 'shop@shop.test' }, To: [{ Email: 'ana@example.test' }], Subject: 'Receipt', Text: 'Thank you.' })
	await client.waitForMessage({ query: 'from:shop.test' }, { interval: 50 })
	const list = await client.listMessages(0, 1)
	assert.deepEqual([list.total, list.count, list.messages.length, list.messages[0].Subject], [2, 1, 1, 'Receipt'])
	assert.equal((await client.listMessages(1, 50)).messages[0].Subject, 'Welcome aboard')
})
await works('searchMessages', async () => {
	for (const [query, want] of Object.entries({
		'from:acme': 1, 'to:ana': 2, 'cc:ben@example.test': 1, 'bcc:carl': 1, 'reply-to:help': 1, 'addressed:shop.test': 1, 'subject:receipt': 1,
		'482913': 1, '"thank you"': 1, 'thank 482913': 0, '-from:acme': 1, '!482913': 1, 'has:attachment': 1, 'has:inline': 1,
		'after:2020-01-31': 2, 'before:2020/01/31': 0, [`message-id:${message.MessageID}`]: 1, 'to:ana from:shop.test "Thank you"': 1,
	})) {
		const found = await client.searchMessages({ query })
		assert.deepEqual([found.messages_count, found.total], [want, 2], query)
	}
	assert.equal((await client.searchMessages({ query: 'after:2020-01-31', tz: 'Europe/Berlin', limit: 1 })).messages.length, 1)
})
await refused('searchMessages with larger:', 'the search larger:1M is not supported', () => client.searchMessages({ query: 'larger:1M' }))
await refused('sendMessage with Tags', 'Tags is not supported', () =>
	client.sendMessage({ From: { Email: 'a@b.test' }, To: [{ Email: 'c@d.test' }], Subject: 'x', Text: 'x', Tags: ['x'] }))
await works('getInfo', async () => assert.equal((await client.getInfo()).Messages, 2))
await works('setReadStatus', async () => {
	await client.setReadStatus({ IDs: [message.ID], Read: true })
	assert.equal((await client.getInfo()).Unread, 1)
	assert.deepEqual((await client.searchMessages({ query: 'is:read' })).messages.map((m) => [m.ID, m.Read]), [[message.ID, true]])
	assert.equal((await client.searchMessages({ query: 'is:unread' })).messages[0].Subject, 'Receipt')
	await client.setReadStatus({ Read: false })
	assert.equal((await client.getInfo()).Unread, 2)
})
await works('setTags', async () => {
	await client.setTags({ IDs: [message.ID], Tags: ['Greeting', 'new user'] })
	assert.deepEqual((await client.getMessageSummary(message.ID)).Tags, ['greeting', 'new user'])
	const found = await client.searchMessages({ query: 'tag:"New user"' })
	assert.deepEqual([found.messages_count, found.tags], [1, ['greeting', 'new user']])
})
await works('getTags', async () => {
	assert.deepEqual(await client.getTags(), ['greeting', 'new user'])
	await client.setTags({ IDs: [message.ID], Tags: [] })
	assert.deepEqual(await client.getTags(), [])
})
await works('deleteMessagesBySearch', async () => {
	await client.deleteMessagesBySearch({ query: 'subject:receipt' })
	assert.equal((await client.listMessages()).total, 1)
})
await works('deleteMessages', async () => {
	await client.deleteMessages({ IDs: [message.ID] })
	assert.equal((await client.listMessages()).total, 0)
	await client.deleteMessages()
})
const text = 'Postroom has no'
await refused('renameTag', text, () => client.renameTag('a', 'b'))
await refused('deleteTag', text, () => client.deleteTag('a'))
await refused('getAttachmentThumbnail', text, () => client.getAttachmentThumbnail(message.ID, 'x'))
await refused('releaseMessage', text, () => client.releaseMessage(message.ID, ['a@b.test']))
await refused('htmlCheck', text, () => client.htmlCheck(message.ID))
await refused('linkCheck', text, () => client.linkCheck(message.ID))
await refused('spamAssassinCheck', text, () => client.spamAssassinCheck(message.ID))
await refused('getChaosTriggers', text, () => client.getChaosTriggers())
await refused('setChaosTriggers', text, () => client.setChaosTriggers({}))
await refused('getConfiguration', text, () => client.getConfiguration())
await refused('renderMessageHTML', text, () => client.renderMessageHTML(message.ID))
await refused('renderMessageText', text, () => client.renderMessageText(message.ID))
