/** Sends replies into the open conversation with a recipient. */
import { bearer, callProvider, urlUnder } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Secret, type Sent } from '@sluice/sdk'

export interface Api {
  readonly fetch: typeof fetch
  readonly url: string
  readonly token: Secret
  /** The channel of the account that sends replies. */
  readonly tenant: string | undefined
}

/** Returns the headers that authorize a request with the API token. */

/** Implements `Channel.send`. A success means that the platform accepted the message, not that it was delivered. */
export async function sendMessage(api: Api, { to }: Address, { text }: Outbound, signal: AbortSignal): Promise<Sent> {
  const target = api.tenant === undefined || to.includes(':') ? to : `${api.tenant}:${to}`
  const { json } = await callProvider({
    fetch: api.fetch,
    provider: 'bizchat',
    url: urlUnder(api.url, '/api/ext/v3/conversations/messages/text'),
    method: 'POST',
    headers: bearer(api.token),
    body: { target, text },
    signal,
    explain: (refusal) => textAt(refusal, 'message', 'error.message', 'error', 'info') || undefined,
  })
  const id = textAt(json, 'message.id', 'message.local_message_id')
  if (id === '') throw new AppError('upstream', 'bizchat accepted the message but returned no id for it')
  return { id }
}
