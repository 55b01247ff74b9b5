// Signed messages of the chatapp provider, built before the clock runs: 1 KiB each, every server under measurement takes them.
import { createHmac, randomUUID } from 'node:crypto'

const SECRET = 'bench-secret'
const PHONE_NUMBER_ID = '200000000000002'
const BODY_BYTES = 1024
const SENDERS = 1000

function bodyOf(id, sender) {
  const message = { from: sender, id, timestamp: '1767225600', type: 'text', text: { body: '' } }
  const contacts = [{ profile: { name: 'Ada' }, wa_id: sender }]
  const metadata = { display_phone_number: '15550001111', phone_number_id: PHONE_NUMBER_ID }
  const value = { messaging_product: 'whatsapp', metadata, contacts, messages: [message] }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000001', changes: [{ field: 'messages', value }] }] }
  message.text.body = 'x'.repeat(BODY_BYTES - JSON.stringify(payload).length)
  return JSON.stringify(payload)
}

function requestOf({ url, number, id, isForged }) {
  const body = bodyOf(id, `1555${String(number % SENDERS).padStart(7, '0')}`)
  const signed = createHmac('sha256', isForged ? 'another-secret' : SECRET)
    .update(body)
    .digest('hex')
  const head = [
    'POST /chatapp HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Hub-Signature-256: sha256=${signed}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** A queue of requests for each connection; ids are random, as providers' are. */
export function chatappQueues({ url, connections, requests, sameKey, isForged }) {
  const perConnection = Math.ceil(requests / connections)
  if (sameKey || isForged) {
    const request = requestOf({ url, number: 0, id: 'wamid.SAME', isForged })
    return Array.from({ length: connections }, () => new Array(perConnection).fill(request))
  }
  return Array.from({ length: connections }, (_, connection) =>
    Array.from({ length: perConnection }, (_, index) => {
      const number = connection * perConnection + index
      return requestOf({ url, number, id: `wamid.${randomUUID()}` })
    }),
  )
}

/** One request after the other, for loads too long to be built beforehand. */
export const chatappRequest = ({ url, number }) => requestOf({ url, number, id: `wamid.${randomUUID()}` })

/** What Sluice has to know to take them. */
export const chatappConfig = ({ apiUrl }) => `[channels_config.chatapp]
access_token = "bench-token"
phone_number_id = "${PHONE_NUMBER_ID}"
verify_token = "bench-verify"
app_secret = "${SECRET}"
allowed_numbers = ["*"]
api_url = "${apiUrl}"
`
