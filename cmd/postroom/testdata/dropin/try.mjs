// Runs operations of an SDK and prints how each went, one a line, as docs/moving.md lists them.
import assert from 'node:assert/strict'

export const base = process.env.POSTROOM_URL

export async function works(name, run) {
	try {
		await run()
	} catch (e) {
		throw new Error(`${name}: ${describe(e)}`, { cause: e })
	}
	console.log(`${name}: works`)
}

// refused wants an error that shows text.
export async function refused(name, text, run) {
	let error
	try {
		await run()
	} catch (e) {
		error = e
	}
	assert.ok(error, `${name} is not refused`)
	const said = describe(error)
	assert.ok(said.includes(text), `${name}: ${said} does not name ${text}`)
	console.log(`${name}: ${said.includes('Postroom has no') ? 'not mapped' : 'refused'}`)
}

function describe(e) {
	return `${e.message} ${JSON.stringify({ ...e, cause: undefined }, (k, v) => (k === 'request' || k === 'config' ? undefined : v))} ${e.response?.body ?? ''} ${JSON.stringify(e.response?.body ?? '')}`
}

// send sends an email with the API of Postroom.
export async function send(email) {
	const response = await fetch(`${base}/v1/emails`, {
		method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(email),
	})
	assert.equal(response.status, 201, await response.clone().text())
}

// captured waits for the mail to an address and returns it, as the API of Postroom has it.
export async function captured(to, subject) {
	for (let i = 0; i < 400; i++) {
		const list = await (await fetch(`${base}/v1/messages?direction=in&limit=100&subject=${encodeURIComponent(subject)}`)).json()
		const found = list.data.find((m) => m.delivered_to === to)
		if (found) {
			return (await fetch(`${base}/v1/messages/${found.id}`)).json()
		}
		await new Promise((resolve) => setTimeout(resolve, 50))
	}
	throw new Error(`no mail to ${to} with the subject ${subject}`)
}

export const header = (message, name) => message.headers.find((h) => h.name.toLowerCase() === name.toLowerCase())?.value
