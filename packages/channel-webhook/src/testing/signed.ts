/** Signs requests by the page of Standard Webhooks, without code of the channel. */
import { createHmac } from 'node:crypto'
import { WEBHOOK_SECRET } from './fake.ts'

/** Returns the three headers of a delivery. */
export function signed(body: string | Uint8Array, { id, atMs }: { readonly id: string; readonly atMs: number }) {
  const time = String(Math.floor(atMs / 1000))
  const key = Buffer.from(WEBHOOK_SECRET.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${signature}` }
}
