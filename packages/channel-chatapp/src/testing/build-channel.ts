/** Helpers for the tests of this package: a channel for a section, and requests to it. */
import type { Channel, Raw, Webhook } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { chatappSection } from '../config.ts'
import feature from '../index.ts'

export const ACCOUNT = '200000000000002'

/** Builds the channel of a section with the required keys and the given ones. */
export function build(section: object, host: TestHost = testHost()): { channel: Channel; webhook: Webhook } {
  const required = { access_token: 'sample-access-token', verify_token: 'sample-verify-token', phone_number_id: ACCOUNT }
  const [channel] = feature.build(host, v.parse(chatappSection.schema, { ...required, ...section })).channels ?? []
  if (!channel?.webhook) throw new Error('the section builds no channel')
  return { channel, webhook: channel.webhook }
}

/** Returns a webhook request with a body and a signature header. */
export const requestOf = (body: string | Uint8Array, signature?: string): Raw => ({
  headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature },
  url: new URL('http://localhost/chatapp'),
  body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
  receivedAtMs: 1_767_225_600_000,
})

/** Returns the error that a call throws; undefined when it throws none. */
export function errorOf(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return undefined
}
