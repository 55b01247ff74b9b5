// Signed chatapp messages of 1 KiB, built before a measurement begins. Every measured server accepts them.
import { createHmac, randomUUID } from 'node:crypto'

const SECRET = 'bench-secret'
const PHONE_NUMBER_ID = '200000000000002'
const BODY_BYTES = 1024
/** A multiple of the numbers of connections, so that one connection sends all messages of a sender, in their order. */
const SENDERS = 1024

function bodyOf(id, sender, bytes = BODY_BYTES) {
  const message = { from: sender, id, timestamp: '1767225600', type: 'text', text: { body: '' } }
  const contacts = [{ profile: { name: 'Ada' }, wa_id: sender }]
  const metadata = { display_phone_number: '15550001111', phone_number_id: PHONE_NUMBER_ID }
  const value = { messaging_product: 'whatsapp', metadata, contacts, messages: [message] }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000001', changes: [{ field: 'messages', value }] }] }
  message.text.body = 'x'.repeat(bytes - JSON.stringify(payload).length)
  return JSON.stringify(payload)
}

function requestOf({ url, number, id, isForged, bytes }) {
  const body = bodyOf(id, `1555${String(number % SENDERS).padStart(7, '0')}`, bytes)
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

/** Random as a platform's ids are; the number shows the order of the messages. */
const idOf = (number) => `wamid.${number}.${randomUUID()}`

/** Returns a queue of requests for each connection. `first` is the number of the first message. */
export function chatappQueues({ url, connections, requests, sameKey, isForged, bytes, first = 0 }) {
  const perConnection = Math.ceil(requests / connections)
  if (sameKey || isForged) {
    const request = requestOf({ url, number: 0, id: 'wamid.SAME', isForged })
    return Array.from({ length: connections }, () => new Array(perConnection).fill(request))
  }
  return Array.from({ length: connections }, (_, connection) =>
    Array.from({ length: perConnection }, (_, index) => {
      const number = first + index * connections + connection
      return requestOf({ url, number, id: idOf(number), bytes })
    }),
  )
}

/** Returns one request, for loads that are too long to build in advance. */
export const chatappRequest = ({ url, number }) => requestOf({ url, number, id: idOf(number) })

/** Returns the section of the configuration with which Sluice accepts the requests. */
export const chatappConfig = ({ apiUrl }) => `[channels_config.chatapp]
access_token = "bench-token"
phone_number_id = "${PHONE_NUMBER_ID}"
verify_token = "bench-verify"
app_secret = "${SECRET}"
allowed_numbers = ["*"]
api_url = "${apiUrl}"
[limits]
loop_turns = 0
[limits.strangers]
turns_per_hour = 0
turns_in_flight = 0
pool = { turns_per_hour = 0, turns_in_flight = 0, usd_per_day = 0 }
`

/** The whole configuration of a daemon that answers messages of chatapp with the offline provider, through the platform at `apiUrl`. */
export const wholeMessagesConfig = (apiUrl) => `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "offline"

[log]
level = "warn"

${chatappConfig({ apiUrl })}`
