/** Sends texts and files into the open conversation with a recipient. */
import { bearer, callProvider, mediaTypeOfName, type PartsOptions, sendParts, urlUnder } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Attachment, type Outbound, type Secret, type Sent } from '@sluice/sdk'

/** The longest caption of a file on WhatsApp. */
const CAPTION_MAX = 1024

export interface Api {
  readonly fetch: typeof fetch
  readonly url: string
  readonly token: Secret
  /** The channel of the account that sends replies. */
  readonly tenant: string | undefined
}

/** Implements `Channel.send`. A success means that the platform accepted the message, not that it was delivered. */
export async function sendMessage(api: Api, { to }: Address, { text, attachments = [] }: Outbound, options: PartsOptions): Promise<Sent> {
  const target = api.tenant === undefined || to.includes(':') ? to : `${api.tenant}:${to}`
  const [first] = attachments
  const isCaption = first !== undefined && text.length <= CAPTION_MAX
  const file = (attachment: Attachment) => () =>
    post(api, 'file', fileForm(target, attachment, isCaption && attachment === first ? text : ''), options.signal)
  const words = () => post(api, 'text', { target, text }, options.signal)
  return sendParts([...(isCaption ? [] : [words]), ...attachments.map(file)], options)
}

/** Without a caption the platform shows a file without its name. */
function fileForm(target: string, { name, mime, source }: Attachment, caption: string): FormData {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const form = new FormData()
  form.set('target', target)
  form.set('caption', caption || name)
  form.set('file', new File([new Uint8Array(source.bytes)], name, { type: mime ?? mediaTypeOfName(name) ?? 'application/octet-stream' }))
  return form
}

/** A text or a file; see https://docs.wati.io/reference/conversations_sendfile. */
async function post(api: Api, what: 'text' | 'file', body: object | FormData, signal: AbortSignal): Promise<Sent> {
  const { json } = await callProvider({
    fetch: api.fetch,
    provider: 'bizchat',
    url: urlUnder(api.url, `/api/ext/v3/conversations/messages/${what}`),
    method: 'POST',
    headers: bearer(api.token),
    body,
    signal,
    explain: (refusal) => textAt(refusal, 'message', 'error.message', 'error', 'info') || undefined,
  })
  const id = textAt(json, 'message.id', 'message.local_message_id')
  if (id === '') throw new AppError('upstream', 'bizchat accepted the message but returned no id for it')
  return { id }
}
