// A route of Next.js that mails a code with Resend, as its documentation shows it.
import { Resend } from 'resend'

const resend = new Resend(process.env.RESEND_API_KEY)

export async function POST(request) {
	const { email, code } = await request.json()
	const { data, error } = await resend.emails.send({
		from: 'Acme <onboarding@acme.test>',
		to: [email],
		subject: 'Your sign-in code',
		html: `<p>Your code is <strong>${code}</strong>. <a href="${process.env.APP_URL}/confirm?code=${code}">Confirm</a></p>`,
		attachments: [{ filename: 'terms.txt', content: Buffer.from('The terms') }],
		tags: [{ name: 'flow', value: 'signup' }],
	}, { idempotencyKey: `signup/${email}` })
	if (error) {
		return Response.json({ error }, { status: error.statusCode ?? 500 })
	}
	return Response.json(data)
}
