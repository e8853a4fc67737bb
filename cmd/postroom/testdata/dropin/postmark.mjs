import assert from 'node:assert/strict'
import postmark from 'postmark'
import { base, captured, header, refused, works } from './try.mjs'

const client = new postmark.ServerClient('any-token', { requestHost: base.replace('http://', '') + '/postmark', useHttps: false })
const From = 'Acme <hello@acme.test>'
const To = 'ana@example.test'

await works('sendEmail', async () => {
	const sent = await client.sendEmail({ From, To, Subject: 'Plain', TextBody: 'Your code is 482913.' })
	assert.equal(sent.ErrorCode, 0)
	assert.match(sent.MessageID, /^em_/)
	assert.equal(sent.To, To)
	assert.equal((await captured(To, 'Plain')).extracted.otp, '482913')
})
await works('sendEmail with HtmlBody', async () => {
	await client.sendEmail({ From, To, Subject: 'Both', TextBody: 'Hello', HtmlBody: '<b>Hello</b>' })
	assert.match((await captured(To, 'Both')).html, /<b>Hello/)
})
await works('sendEmail to several', async () => {
	await client.sendEmail({ From, To: '"Ana, A." <ana@example.test>, ben@example.test', Subject: 'Several', TextBody: 'Hello' })
	assert.equal((await captured('ben@example.test', 'Several')).to[0].name, 'Ana, A.')
})
await works('sendEmail with Cc, Bcc and ReplyTo', async () => {
	await client.sendEmail({ From, To, Cc: 'ben@example.test', Bcc: 'carl@example.test', ReplyTo: 'help@acme.test', Subject: 'Copies', TextBody: 'Hello' })
	const m = await captured('carl@example.test', 'Copies')
	assert.deepEqual([m.cc[0].email, m.reply_to[0].email], ['ben@example.test', 'help@acme.test'])
})
await works('sendEmail with Bcc alone', async () => {
	await client.sendEmail({ From, To, Bcc: '"Dora" <dora@example.test>', Subject: 'Hidden', TextBody: 'Hello' })
	assert.equal((await captured('dora@example.test', 'Hidden')).cc.length, 0)
})
await works('sendEmail with Headers', async () => {
	await client.sendEmail({ From, To, Subject: 'Header', TextBody: 'Hello', Headers: [{ Name: 'X-Campaign', Value: 'spring' }] })
	assert.equal(header(await captured(To, 'Header'), 'X-Campaign'), 'spring')
})
await works('sendEmail with Tag, Metadata and MessageStream', async () => {
	await client.sendEmail({
		From, To, Subject: 'Settings', TextBody: 'Hello', Tag: 'welcome', Metadata: { user: '7' }, MessageStream: 'outbound', TrackOpens: true, TrackLinks: 'None',
	})
	const m = await captured(To, 'Settings')
	const names = ['X-PM-Tag', 'X-PM-Metadata-user', 'X-PM-Message-Stream', 'X-PM-TrackOpens', 'X-PM-TrackLinks']
	assert.deepEqual(names.map((name) => header(m, name)), ['welcome', '7', 'outbound', 'true', 'None'])
})
await works('sendEmail with Attachments', async () => {
	await client.sendEmail({
		From, To, Subject: 'Files', HtmlBody: '<img src="cid:logo">',
		Attachments: [
			new postmark.Models.Attachment('terms.txt', Buffer.from('The terms').toString('base64'), 'text/plain'),
			new postmark.Models.Attachment('logo.png', 'iVBORw0KGgo=', 'image/png', 'cid:logo'),
		],
	})
	const m = await captured(To, 'Files')
	assert.deepEqual(m.attachments.map((a) => [a.filename, a.inline, a.content_id]).sort(), [['logo.png', true, 'logo'], ['terms.txt', false, null]])
})
await works('sendEmail with a Message', async () => {
	await client.sendEmail(new postmark.Message(From, 'A Message', '<p>Hello</p>', 'Hello', To))
	await captured(To, 'A Message')
})
await works('sendEmailBatch', async () => {
	const sent = await client.sendEmailBatch([{ From, To, Subject: 'First', TextBody: '1' }, { From, To, Subject: 'Second', TextBody: '2' }])
	assert.deepEqual(sent.map((s) => s.ErrorCode), [0, 0])
	await captured(To, 'First')
	await captured(To, 'Second')
})
await works('sendEmailBatch with one wrong', async () => {
	const sent = await client.sendEmailBatch([{ From, To, Subject: 'Good', TextBody: '1' }, { From, To: 'nobody', Subject: 'Bad', TextBody: '2' }])
	assert.deepEqual(sent.map((s) => s.ErrorCode), [0, 300])
	await captured(To, 'Good')
})
await fetch(`${base}/v1/templates`, {
	method: 'POST', headers: { 'Content-Type': 'application/json' },
	body: JSON.stringify({ name: 'welcome', subject: 'Welcome {{name}}', html: '<p>Hello {{name}}</p>' }),
})
await works('sendEmailWithTemplate', async () => {
	await client.sendEmailWithTemplate({ From, To, TemplateAlias: 'welcome', TemplateModel: { name: 'Ana' } })
	assert.match((await captured(To, 'Welcome Ana')).html, /Hello Ana/)
})
await works('sendEmailBatchWithTemplates', async () => {
	const sent = await client.sendEmailBatchWithTemplates([
		{ From, To, TemplateAlias: 'welcome', TemplateModel: { name: 'Ben' } }, { From, To, TemplateAlias: 'none', TemplateModel: {} },
	])
	assert.deepEqual(sent.map((s) => s.ErrorCode), [0, 300])
	await captured(To, 'Welcome Ben')
})
await refused('sendEmailWithTemplate with TemplateId', 'TemplateId is not supported', () =>
	client.sendEmailWithTemplate({ From, To, TemplateId: 7, TemplateModel: {} }))
await refused('sendEmailWithTemplate with InlineCss', 'InlineCss is not supported', () =>
	client.sendEmailWithTemplate({ From, To, TemplateAlias: 'welcome', TemplateModel: {}, InlineCss: true }))
await refused('sendEmail without an address', 'To', () => client.sendEmail({ From, To: 'nobody', Subject: 'x', TextBody: 'x' }))
const text = 'Postroom has no'
await refused('getTemplates', text, () => client.getTemplates())
await refused('createTemplate', text, () => client.createTemplate({ Name: 'a' }))
await refused('getServer', text, () => client.getServer())
await refused('getOutboundMessages', text, () => client.getOutboundMessages())
await refused('getInboundMessages', text, () => client.getInboundMessages())
await refused('getBounces', text, () => client.getBounces())
await refused('getDeliveryStatistics', text, () => client.getDeliveryStatistics())
await refused('getOutboundOverview', text, () => client.getOutboundOverview())
await refused('getWebhooks', text, () => client.getWebhooks())
await refused('getMessageStreams', text, () => client.getMessageStreams())
await refused('getSuppressions', text, () => client.getSuppressions('outbound'))
