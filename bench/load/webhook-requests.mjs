// The requests of a webhook load, built and signed before a measurement begins.
import { createHmac, randomUUID } from 'node:crypto'

const SECRET = 'bench-secret'
const BODY_BYTES = 1024

/** Returns the bytes of a request that every measured server accepts: each server checks the credentials that it knows. */
export function webhookRequest({ url, token, key, session }) {
  const { host } = new URL(url)
  const text = `bench ${key} `
  const body = JSON.stringify({ message: text.padEnd(BODY_BYTES - '{"message":""}'.length, 'x') })
  const head = [
    'POST /webhook HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Hub-Signature-256: sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
    `X-Idempotency-Key: ${key}`,
    `X-Session-Id: ${session}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Returns a queue of requests for each connection. All requests of a connection have the same session. */
export function webhookQueues({ url, token, connections, requests, sameKey }) {
  const run = randomUUID()
  const perConnection = Math.ceil(requests / connections)
  return Array.from({ length: connections }, (_, connection) => {
    const session = `bench-${connection}`
    const request = (number) => webhookRequest({ url, token, key: sameKey ? 'bench-same' : `${run}-${connection}-${number}`, session })
    return sameKey ? new Array(perConnection).fill(request(0)) : Array.from({ length: perConnection }, (_, number) => request(number))
  })
}
