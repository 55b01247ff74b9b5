// Verifies the webhooks of a platform in an Express application, and prints the messages in them. No runtime of Sluice takes part.
import { createWebhook } from '@sluice/channel-textrelay/webhook'
import { AppError, rawRequest } from '@sluice/sdk/webhook'
import express from 'express'

const { PORT = '3000', TEXTRELAY_SECRET = 'a-secret-for-tries' } = process.env
const webhook = createWebhook({ secret: TEXTRELAY_SECRET, fromPhone: '+15550100' })

const app = express()
// A signature covers the bytes of the body, so nothing may parse it before: `express.raw`, not `express.json`.
app.post('/hooks/textrelay', express.raw({ type: '*/*', limit: webhook.bodyBytesMax }), async (request, response) => {
  try {
    const raw = rawRequest({ url: request.originalUrl, headers: request.headers, body: request.body })
    await webhook.verify(raw)
    for (const { sender, text } of await webhook.parse(raw)) console.log(`${sender} wrote: ${text}`)
    response.json({ status: 'ok' })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    response.status(error.status).json({ error: error.message, code: error.code })
  }
})

const server = app.listen(Number(PORT), '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/hooks/textrelay`
  console.log(`listening on ${url}`)
  if (process.argv.includes('--try')) {
    await tryIt(url)
    server.close()
  }
})

/** Sends a signed request as the platform would, and the same one with another body. */
async function tryIt(url) {
  const { headers, body } = webhook.sample({ id: 'try-1', sender: '+15550199', text: 'hello', atMs: Date.now() })
  for (const text of [body, body.replace('hello', 'HELLO')]) {
    const answer = await fetch(url, { method: 'POST', headers, body: text })
    console.log(answer.status, await answer.text())
  }
}
