import assert from 'node:assert/strict'
import client from '@sendgrid/client'
import sendgrid from '@sendgrid/mail'
import { base, captured, header, refused, works } from './try.mjs'

sendgrid.setClient(client)
sendgrid.setApiKey('SG.any-key')
client.setDefaultRequest('baseUrl', base + '/sendgrid/')
const from = 'Acme <hello@acme.test>'

await works('send', async () => {
	const [response] = await sendgrid.send({ to: 'ana@example.test', from, subject: 'Plain', text: 'Your code is 482913.' })
	assert.equal(response.statusCode, 202)
	assert.equal(response.body, '')
	assert.match(response.headers['x-message-id'], /^em_/)
	const m = await captured('ana@example.test', 'Plain')
	assert.equal(m.from.name, 'Acme')
	assert.equal(m.extracted.otp, '482913')
})
await works('send html', async () => {
	await sendgrid.send({ to: { email: 'ana@example.test', name: 'Ana' }, from, subject: 'Both', text: 'Hello', html: '<b>Hello</b>' })
	const m = await captured('ana@example.test', 'Both')
	assert.equal(m.to[0].name, 'Ana')
	assert.match(m.html, /<b>Hello/)
})
await works('send with cc and bcc', async () => {
	await sendgrid.send({ to: 'ana@example.test', cc: 'ben@example.test', bcc: 'carl@example.test', from, subject: 'Copies', text: 'Hello' })
	const m = await captured('carl@example.test', 'Copies')
	assert.deepEqual([m.cc[0].email, m.bcc.length], ['ben@example.test', 0])
	await captured('ben@example.test', 'Copies')
})
await works('send with replyTo', async () => {
	await sendgrid.send({ to: 'ana@example.test', from, replyTo: 'help@acme.test', subject: 'Answer', text: 'Hello' })
	assert.equal((await captured('ana@example.test', 'Answer')).reply_to[0].email, 'help@acme.test')
})
await works('send with replyToList', async () => {
	await sendgrid.send({ to: 'ana@example.test', from, replyToList: [{ email: 'a@acme.test' }, { email: 'b@acme.test' }], subject: 'Answers', text: 'Hello' })
	assert.equal((await captured('ana@example.test', 'Answers')).reply_to.length, 2)
})
await works('send with headers', async () => {
	await sendgrid.send({ to: 'ana@example.test', from, headers: { 'X-Campaign': 'spring' }, subject: 'Header', text: 'Hello' })
	assert.equal(header(await captured('ana@example.test', 'Header'), 'X-Campaign'), 'spring')
})
await works('send with attachments', async () => {
	await sendgrid.send({
		to: 'ana@example.test', from, subject: 'Files', html: '<img src="cid:logo">',
		attachments: [
			{ content: Buffer.from('The terms').toString('base64'), filename: 'terms.txt', type: 'text/plain', disposition: 'attachment' },
			{ content: 'iVBORw0KGgo=', filename: 'logo.png', type: 'image/png', disposition: 'inline', content_id: 'logo' },
		],
	})
	const m = await captured('ana@example.test', 'Files')
	assert.deepEqual(m.attachments.map((a) => [a.filename, a.inline, a.content_id]).sort(), [['logo.png', true, 'logo'], ['terms.txt', false, null]])
})
await works('send with categories and other settings', async () => {
	await sendgrid.send({
		to: 'ana@example.test', from, subject: 'Settings', text: 'Hello', categories: ['welcome'], customArgs: { user: '7' },
		asm: { groupId: 5 }, trackingSettings: { clickTracking: { enable: false } }, ipPoolName: 'fast', batchId: 'b1',
	})
	assert.deepEqual(JSON.parse(header(await captured('ana@example.test', 'Settings'), 'X-SendGrid-Settings')), {
		asm: { group_id: 5 }, batch_id: 'b1', categories: ['welcome'], custom_args: { user: '7' }, ip_pool_name: 'fast',
		tracking_settings: { click_tracking: { enable: false } },
	})
})
await works('send with personalizations', async () => {
	await sendgrid.send({
		from, subject: 'Many', text: 'Hello',
		personalizations: [{ to: 'ana@example.test' }, { to: 'ben@example.test', subject: 'Other', headers: { 'X-A': 'b' }, customArgs: { n: '1' } }],
	})
	await captured('ana@example.test', 'Many')
	const m = await captured('ben@example.test', 'Other')
	assert.deepEqual([header(m, 'X-A'), header(m, 'X-SendGrid-Settings')], ['b', '{"custom_args":{"n":"1"}}'])
})
await works('send with templateId', async () => {
	await fetch(`${base}/v1/templates`, {
		method: 'POST', headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify({ name: 'd-welcome', subject: 'Welcome {{name}}', html: '<p>Hello {{name}}</p>' }),
	})
	await sendgrid.send({ to: 'ana@example.test', from, templateId: 'd-welcome', dynamicTemplateData: { name: 'Ana' } })
	assert.match((await captured('ana@example.test', 'Welcome Ana')).html, /Hello Ana/)
})
await works('send with sendAt', async () => {
	await sendgrid.send({ to: 'ana@example.test', from, subject: 'Later', text: 'Hello', sendAt: Math.floor(Date.now() / 1000) + 1 })
	await captured('ana@example.test', 'Later')
})
await works('sendMultiple', async () => {
	await sendgrid.sendMultiple({ to: ['ana@example.test', 'ben@example.test'], from, subject: 'Each', text: 'Hello' })
	const m = await captured('ben@example.test', 'Each')
	assert.equal(m.to.length, 1)
})
await works('send an array', async () => {
	await sendgrid.send([{ to: 'ana@example.test', from, subject: 'One', text: '1' }, { to: 'ana@example.test', from, subject: 'Two', text: '2' }])
	await captured('ana@example.test', 'One')
	await captured('ana@example.test', 'Two')
})
const to = 'ana@example.test'
await refused('send with sandboxMode', 'mail_settings is not supported', () =>
	sendgrid.send({ to, from, subject: 'x', text: 'x', mailSettings: { sandboxMode: { enable: true } } }))
await refused('send with substitutions', 'substitutions is not supported', () =>
	sendgrid.send({ from, subject: 'x', text: 'x', personalizations: [{ to, substitutions: { a: 'b' } }] }))
await refused('send with sections', 'sections is not supported', () => sendgrid.send({ to, from, subject: 'x', text: 'x', sections: { a: 'b' } }))
await refused('send to no address', 'to', () => sendgrid.send({ to: 'nobody', from, subject: 'x', text: 'x' }))
await refused('client.request to other paths', 'Postroom has no', () => client.request({ method: 'GET', url: '/v3/templates' }))
