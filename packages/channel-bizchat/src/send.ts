/** Replies, into the conversation that is open with somebody. */

import { callProvider, withoutTrailing } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Secret, type Sent } from '@sluice/sdk'

export interface Api {
  readonly fetch: typeof fetch
  readonly url: string
  readonly token: Secret
  /** Which of the account's channels a reply leaves by. */
  readonly tenant: string | undefined
}

export const authorization = ({ token }: Pick<Api, 'token'>) => ({ authorization: `Bearer ${token.reveal().trim()}` })

/** See `Channel.send`. What the provider takes it has accepted, not delivered. */
export async function sendMessage(api: Api, { to }: Address, { text }: Outbound, signal: AbortSignal): Promise<Sent> {
  const target = api.tenant === undefined || to.includes(':') ? to : `${api.tenant}:${to}`
  const { json } = await callProvider({
    fetch: api.fetch,
    provider: 'bizchat',
    url: `${withoutTrailing(api.url, '/')}/api/ext/v3/conversations/messages/text`,
    method: 'POST',
    headers: authorization(api),
    body: { target, text },
    signal,
    explain: (refusal) => textAt(refusal, 'message', 'error.message', 'error', 'info') || undefined,
  })
  const id = textAt(json, 'message.id', 'message.local_message_id')
  if (id === '') throw new AppError('upstream', 'bizchat took the message but gave no id for it')
  return { id }
}
