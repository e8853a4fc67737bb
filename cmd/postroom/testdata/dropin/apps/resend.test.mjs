// The tests of an application that mails with Resend. RESEND_BASE_URL is all that changed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Resend } from 'resend'
import { captured } from '../try.mjs'
import { POST } from './signup.mjs'

const signUp = (email, code) => POST(new Request('http://localhost/api/signup', { method: 'POST', body: JSON.stringify({ email, code }) }))

test('a new user gets a code', async () => {
	const response = await signUp('ana@shop.test', '482913')
	assert.equal(response.status, 200)
	assert.equal((await captured('ana@shop.test', 'Your sign-in code')).extracted.otp, '482913')
	const { id } = await response.json()
	const { data } = await new Resend(process.env.RESEND_API_KEY).emails.get(id)
	assert.deepEqual(data.tags, [{ name: 'flow', value: 'signup' }])
})

test('a second request sends no second email', async () => {
	const first = await (await signUp('ben@shop.test', '118205')).json()
	assert.equal((await (await signUp('ben@shop.test', '118205')).json()).id, first.id)
})

test('a wrong address is an error', async () => {
	const response = await signUp('nobody', '482913')
	assert.equal(response.status, 422)
	assert.match((await response.json()).error.message, /^to\[0\]/)
})
