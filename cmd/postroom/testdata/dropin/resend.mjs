import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Resend } from 'resend'
import { base, captured, header, refused, works } from './try.mjs'

const resend = new Resend('re_123', { baseUrl: base + '/resend' })

// ok returns the data of a response. An error is thrown, as other SDKs do.
async function ok(response) {
	const { data, error } = await response
	if (error) {
		throw new Error(JSON.stringify(error))
	}
	return data
}
const from = 'Acme <hello@acme.test>'
const ids = {}

await works('emails.send', async () => {
	const email = {
		from, to: ['ann@shop.test'], cc: 'carl@shop.test', replyTo: ['help@acme.test', 'Sales <sales@acme.test>'], subject: 'Welcome', html: '<p>Hello <img src="cid:logo"></p>',
		headers: { 'X-Entity-Ref-ID': '1042' }, tags: [{ name: 'flow', value: 'welcome' }],
		attachments: [
			{ filename: 'terms.txt', content: Buffer.from('The terms') }, { filename: 'logo.png', content: 'iVBORw0=', contentId: 'logo', contentType: 'image/png' },
		],
	}
	ids.email = (await ok(resend.emails.send(email, { idempotencyKey: 'welcome/1' }))).id
	assert.equal((await ok(resend.emails.send(email, { idempotencyKey: 'welcome/1' }))).id, ids.email)
	const m = await captured('ann@shop.test', 'Welcome')
	assert.equal(header(m, 'X-Entity-Ref-ID'), '1042')
	assert.deepEqual(m.reply_to.map((a) => a.email), ['help@acme.test', 'sales@acme.test'])
	assert.deepEqual(m.attachments.map((a) => [a.filename, a.inline, a.size]).sort(), [['logo.png', true, 5], ['terms.txt', false, 9]])
})
await works('emails.get', async () => {
	const e = await ok(resend.emails.get(ids.email))
	assert.equal(e.last_event, 'delivered')
	assert.deepEqual(e.to, ['ann@shop.test'])
	assert.deepEqual(e.tags, [{ name: 'flow', value: 'welcome' }])
	assert.match(e.message_id, /^<.+@acme.test>$/)
})
await works('emails.send with scheduledAt', async () => {
	const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
	ids.later = (await ok(resend.emails.send({ from, to: 'ann@shop.test', subject: 'Later', text: 'Later', scheduledAt }))).id
	assert.equal((await ok(resend.emails.get(ids.later))).last_event, 'scheduled')
})
await works('emails.update', async () => {
	const scheduledAt = new Date(Date.now() + 7_200_000).toISOString()
	await ok(resend.emails.update({ id: ids.later, scheduledAt }))
	assert.equal(new Date((await ok(resend.emails.get(ids.later))).scheduled_at).toISOString(), scheduledAt)
})
await works('emails.cancel', async () => {
	assert.deepEqual(await ok(resend.emails.cancel(ids.later)), { object: 'email', id: ids.later })
	assert.equal((await ok(resend.emails.get(ids.later))).last_event, 'canceled')
})
await works('batch.send', async () => {
	const { data } = await ok(resend.batch.send([
		{ from, to: 'one@shop.test', subject: 'Batch', text: '1' }, { from: 'other@acme.test', to: 'two@shop.test', subject: 'Batch', text: '2' },
	], { idempotencyKey: 'batch' }))
	assert.equal(data.length, 2)
	assert.equal((await captured('two@shop.test', 'Batch')).from.email, 'other@acme.test')
})
await works('batch.send, permissive', async () => {
	const { data, errors } = await ok(resend.batch.send([
		{ from, to: 'nobody', subject: 'Batch', text: '1' }, { from, to: 'one@shop.test', subject: 'Batch', text: '2' },
	], { batchValidation: 'permissive' }))
	assert.equal(data.length, 1)
	assert.equal(errors[0].index, 0)
})
await works('emails.list', async () => {
	const first = await ok(resend.emails.list({ limit: 2 }))
	assert.equal(first.data.length, 2)
	assert.ok(first.has_more)
	const next = await ok(resend.emails.list({ limit: 100, after: first.data[1].id }))
	assert.equal(next.data.at(-1).id, ids.email)
	assert.ok(next.data.every((e) => first.data.every((f) => f.id !== e.id)))
})
await works('templates.create, publish', async () => {
	ids.template = (await ok(resend.templates.create({
		name: 'order', subject: 'Order {{{ORDER}}}', html: '<p>Order {{{ORDER}}} for {{NAME}}</p>', variables: [{ key: 'ORDER', type: 'number' }, { key: 'NAME', type: 'string' }],
	}).publish())).id
})
await works('templates.get, list, update', async () => {
	await ok(resend.templates.update(ids.template, { text: 'Order {{ORDER}}' }))
	const t = await ok(resend.templates.get(ids.template))
	assert.equal(t.status, 'published')
	assert.equal(t.text, 'Order {{ORDER}}')
	assert.equal((await ok(resend.templates.list())).data[0].id, ids.template)
})
await works('emails.send with a template', async () => {
	await ok(resend.emails.send({ from, to: 'ann@shop.test', template: { id: 'order', variables: { ORDER: 1042, NAME: 'Ann <3' } } }))
	assert.match((await captured('ann@shop.test', 'Order 1042')).html, /Order 1042 for Ann &lt;3/)
})
await works('templates.remove', async () => assert.ok((await ok(resend.templates.remove(ids.template))).deleted))
await works('domains.create', async () => {
	const d = await ok(resend.domains.create({ name: 'mail.acme.example' }))
	assert.ok(d.records.some((r) => r.record === 'DKIM' && r.type === 'TXT'))
	ids.domain = d.id
})
await works('domains.get, list, verify', async () => {
	assert.equal((await ok(resend.domains.get(ids.domain))).status, 'pending')
	assert.equal((await ok(resend.domains.list())).data[0].name, 'mail.acme.example')
	assert.equal((await ok(resend.domains.verify(ids.domain))).id, ids.domain)
})
await works('domains.remove', async () => assert.ok((await ok(resend.domains.remove(ids.domain))).deleted))
await works('contacts.create', async () => {
	ids.contact = (await ok(resend.contacts.create({ email: 'ann@shop.test', firstName: 'Ann', unsubscribed: false, properties: { plan: 'team' } }))).id
})
await works('contacts.get, list', async () => {
	const c = await ok(resend.contacts.get({ email: 'ann@shop.test' }))
	assert.equal(c.id, ids.contact)
	assert.deepEqual(c.properties, { plan: { type: 'string', value: 'team' } })
	const [audience] = (await ok(resend.audiences.list())).data
	assert.equal((await ok(resend.contacts.list({ audienceId: audience.id }))).data[0].email, 'ann@shop.test')
})
await works('contacts.update', async () => {
	await ok(resend.contacts.update({ id: ids.contact, unsubscribed: true, lastName: 'Lee' }))
	const c = await ok(resend.contacts.get(ids.contact))
	assert.deepEqual([c.unsubscribed, c.first_name, c.last_name], [true, 'Ann', 'Lee'])
	await ok(resend.contacts.update({ id: ids.contact, unsubscribed: false }))
	assert.equal((await ok(resend.contacts.get(ids.contact))).unsubscribed, false)
})
await works('contacts.remove', async () => assert.ok((await ok(resend.contacts.remove(ids.contact))).deleted))
await works('emails.receiving.list', async () => {
	const { data } = await ok(resend.emails.receiving.list({ limit: 100 }))
	ids.received = data.find((e) => e.subject === 'Welcome' && e.received_for[0] === 'ann@shop.test').id
})
await works('emails.receiving.get', async () => {
	const e = await ok(resend.emails.receiving.get(ids.received))
	assert.equal(e.headers['x-entity-ref-id'], '1042')
	assert.match(await (await fetch(e.raw.download_url)).text(), /X-Entity-Ref-ID: 1042/)
})
await works('emails.receiving.attachments.list, get', async () => {
	const { data } = await ok(resend.emails.receiving.attachments.list({ emailId: ids.received }))
	const terms = data.find((a) => a.filename === 'terms.txt')
	const one = await ok(resend.emails.receiving.attachments.get({ emailId: ids.received, id: terms.id }))
	assert.equal(await (await fetch(one.download_url)).text(), 'The terms')
})

const posted = []
const receiver = createServer((request, response) => {
	let body = ''
	request.on('data', (part) => { body += part })
	request.on('end', () => {
		posted.push({ headers: request.headers, body })
		response.end()
	})
})
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve))
let secret
await works('webhooks.create', async () => {
	const hook = await ok(resend.webhooks.create({
		endpoint: `http://127.0.0.1:${receiver.address().port}/hook`, events: ['email.sent', 'email.delivered', 'email.received', 'suppression.added'],
	}))
	ids.webhook = hook.id
	secret = hook.signing_secret
})
await works('webhooks.verify', async () => {
	const { id } = await ok(resend.emails.send({ from, to: 'hook@shop.test', subject: 'Hook', text: 'x', tags: [{ name: 'a', value: 'b' }] }))
	for (let i = 0; i < 400 && posted.length < 3; i++) {
		await new Promise((resolve) => setTimeout(resolve, 50))
	}
	const events = posted.map(({ headers, body }) => resend.webhooks.verify({
		payload: body, webhookSecret: secret,
		headers: { id: headers['svix-id'], timestamp: headers['svix-timestamp'], signature: headers['svix-signature'] },
	}))
	assert.deepEqual(events.map((e) => e.type).sort(), ['email.delivered', 'email.received', 'email.sent'])
	const sent = events.find((e) => e.type === 'email.sent')
	assert.equal(sent.data.email_id, id)
	assert.deepEqual(sent.data.to, ['hook@shop.test'])
	assert.deepEqual(sent.data.tags, { a: 'b' })
	assert.match(events.find((e) => e.type === 'email.received').data.email_id, /^msg_/)
	assert.throws(() => resend.webhooks.verify({ payload: posted[0].body + ' ', webhookSecret: secret, headers: { id: 'a', timestamp: '1', signature: 'v1,a' } }))
})
await works('webhooks.get, list, update', async () => {
	await ok(resend.webhooks.update(ids.webhook, { status: 'disabled', events: ['email.bounced'] }))
	const hook = await ok(resend.webhooks.get(ids.webhook))
	assert.deepEqual([hook.status, hook.events], ['disabled', ['email.bounced']])
	assert.equal((await ok(resend.webhooks.list())).data[0].id, ids.webhook)
})
await works('webhooks.rotateSigningSecret', async () => assert.notEqual((await ok(resend.webhooks.rotateSigningSecret(ids.webhook))).signing_secret, secret))
await works('webhooks.remove', async () => assert.ok((await ok(resend.webhooks.remove(ids.webhook))).deleted))
receiver.close()

const plain = { from, to: 'ann@shop.test', subject: 'x', text: 'x' }
await refused('emails.send with scheduledAt in words', 'scheduled_at', () => ok(resend.emails.send({ ...plain, scheduledAt: 'in 1 min' })))
await refused('emails.send with attachments by path', 'attachments[0].path', () => ok(resend.emails.send({ ...plain, attachments: [{ path: 'https://acme.test/a' }] })))
await refused('emails.send with topicId', 'topic_id', () => ok(resend.emails.send({ ...plain, topicId: 'x' })))
await refused('emails.send without a sender', 'missing_required_field', () => ok(resend.emails.send({ to: 'ann@shop.test', subject: 'x', text: 'x' })))
await refused('emails.send with another body for the same key', 'invalid_idempotent_request', () => ok(resend.emails.send(plain, { idempotencyKey: 'welcome/1' })))
await refused('emails.get of an unknown id', 'not_found', () => ok(resend.emails.get('49a3999c')))
await refused('batch.send with an invalid email', 'email 1 of the batch', () => ok(resend.batch.send([plain, { ...plain, from: '' }])))
await refused('domains.create with a region', 'region', () => ok(resend.domains.create({ name: 'mail.acme.example', region: 'eu-west-1' })))
await refused('templates.create with a fallback', 'variables[0].fallback_value', () => ok(resend.templates.create({ name: 'x', subject: 'x', html: '{{{A}}}', variables: [{ key: 'A', type: 'string', fallbackValue: 'b' }] })))
await refused('webhooks.create for contact.created', 'contact.created', () => ok(resend.webhooks.create({ endpoint: 'http://127.0.0.1:9/', events: ['contact.created'] })))
await refused('broadcasts.create', 'Postroom has no', () => ok(resend.broadcasts.create({ segmentId: 'x', from, subject: 'x', text: 'x' })))
await refused('apiKeys.create', 'Postroom has no', () => ok(resend.apiKeys.create({ name: 'x' })))
await refused('suppressions.list', 'Postroom has no', () => ok(resend.suppressions.list()))
await refused('topics.list', 'Postroom has no', () => ok(resend.topics.list()))
