/** The cloud API of chatapp on loopback: it accepts messages, serves media and returns the errors of the real API. */
import { equalTexts, sha256Hex } from '@sluice/sdk'
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { checkMessage, receiptIn } from './fake-message.ts'

/** How the fake of chatapp starts; each member has a default. */
export interface ChatappFakeOptions {
  readonly phoneNumberId?: string
  readonly accessToken?: string
  readonly apiVersion?: string
  readonly port?: number
}

/** An accepted message. */
export interface ChatappSent {
  readonly id: string
  /** A phone number in digits, a business-scoped id, or the id of a group. */
  readonly to: string
  readonly recipientType: 'individual' | 'group'
  readonly text: string
  /** The id of the quoted message. */
  readonly replyTo?: string
  readonly buttons?: readonly { readonly id: string; readonly title: string }[]
  /** The file that the message shows; `text` is then its caption. */
  readonly file?: { readonly type: string; readonly name: string; readonly bytes: Uint8Array }
}

/** A file that the API serves. */
export interface ChatappMedia {
  readonly bytes: Uint8Array
  readonly mime: string
  /** Members that the API reports in place of the true ones. */
  readonly said?: Readonly<Record<string, unknown>>
}

/** A running fake of chatapp. */
export interface ChatappFake extends FakeProvider {
  readonly phoneNumberId: string
  readonly accessToken: string
  /** The last `SENT_MAX` accepted messages. */
  readonly sent: readonly ChatappSent[]
  /** The ids of the messages under which the typing indicator was shown. */
  readonly typing: readonly string[]
  /** Stores a file and returns its media id. */
  addMedia(media: ChatappMedia): string
  /** Refuses the access token from now on. */
  expireToken(): void
}

const SENT_MAX = 100_000
const MIB = 1_048_576
const FILE_BYTES_MAX = 100 * MIB
/** The types and sizes of https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media. */
const SHOWN: Readonly<Record<'image' | 'audio' | 'video' | 'document', { readonly mimes: readonly string[]; readonly bytesMax: number }>> =
  {
    image: { mimes: ['image/jpeg', 'image/png'], bytesMax: 5 * MIB },
    audio: { mimes: ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'], bytesMax: 16 * MIB },
    video: { mimes: ['video/mp4', 'video/3gpp'], bytesMax: 16 * MIB },
    document: { mimes: [], bytesMax: FILE_BYTES_MAX },
  }
const MEDIA_PATH = '/whatsapp_business/attachments/'

/** Starts the fake; call `close` to end it. */
export async function startChatappFake(options: ChatappFakeOptions = {}): Promise<ChatappFake> {
  const { phoneNumberId = '200000000000002', accessToken = 'chatapp-fake-token', apiVersion = 'v23.0', port = 0 } = options
  const sent: ChatappSent[] = []
  const typing: string[] = []
  const media = new Map<string, ChatappMedia>()
  let count = 0
  let expired = false

  const uploads = new Map<string, { readonly mime: string; readonly name: string; readonly bytes: Uint8Array }>()

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    const refused = expired ? tokenExpired : unauthorized(request, accessToken)
    if (refused) return refused
    if (request.path === MEDIA_PATH) return mediaBytes(request)
    const [version, object = '', edge, ...more] = request.path.slice(1).split('/')
    if (version !== apiVersion || more.length > 0) return refusal(400, 2500, `Unknown path components: ${request.path}`)
    if (request.method === 'GET' && edge === undefined) return mediaAbout(object)
    if (request.method === 'POST' && edge === 'media' && object === phoneNumberId) return takeFile(request)
    if (request.method !== 'POST' || edge !== 'messages' || object !== phoneNumberId) return unknownObject(request.method, object)
    return takeMessage(request)
  }

  const takeFile = async ({ headers, body }: ProviderRequest): Promise<ProviderReply> => {
    const type = headers.get('content-type') ?? ''
    if (!type.startsWith('multipart/form-data')) return invalid('The request body is no form')
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
    const [file, mime] = [form.get('file'), form.get('type')]
    if (form.get('messaging_product') !== 'whatsapp') return invalid('(#100) The parameter messaging_product is required.')
    if (!(file instanceof File) || typeof mime !== 'string') return invalid('(#100) The parameters file and type are required.')
    if (file.size > FILE_BYTES_MAX) return refusal(400, 131053, 'Media upload error')
    const id = String(800_000_000_000_000 + uploads.size)
    uploads.set(id, { mime, name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) })
    return { status: 200, body: { id } }
  }

  /** The API finds out that a file is of a wrong type or too large when it is sent. */
  const refusedFile = (type: keyof typeof SHOWN, id: string): ProviderReply | undefined => {
    const file = uploads.get(id)
    if (!file) return invalid(`Media with the id ${id} does not exist`)
    const { mimes, bytesMax } = SHOWN[type]
    const isGood = file.bytes.length <= bytesMax && (mimes.length === 0 || mimes.includes(file.mime))
    return isGood ? undefined : refusal(400, 131053, `Media upload error: ${file.mime} is no ${type} of at most ${bytesMax} bytes`)
  }

  const takeMessage = ({ headers, json }: ProviderRequest): ProviderReply => {
    if (!headers.get('content-type')?.startsWith('application/json')) return invalid('The request body is not JSON')
    const receipt = receiptIn(json)
    if (receipt) {
      if (receipt.typing_indicator) typing.push(receipt.message_id)
      return { status: 200, body: { success: true } }
    }
    const checked = checkMessage(json)
    if ('problem' in checked) return invalid(checked.problem)
    const { to, recipient, recipient_type, type, text, interactive, context, ...shown } = checked.message
    const isFile = type !== 'text' && type !== 'interactive'
    const media = isFile ? shown[type] : undefined
    const refused = isFile && media ? refusedFile(type, media.id) : undefined
    if (refused) return refused
    const upload = media && uploads.get(media.id)
    const { caption } = (media ?? {}) as { readonly caption?: string }
    const { filename: name } = (media ?? {}) as { readonly filename?: string }
    const id = `wamid.FAKE${String(++count).padStart(8, '0')}`
    const address = to ?? recipient ?? ''
    sent.push({
      id,
      to: address,
      recipientType: recipient_type,
      text: text?.body ?? interactive?.body.text ?? caption ?? '',
      ...(interactive && { buttons: interactive.action.buttons.map(({ reply }) => reply) }),
      ...(context && { replyTo: context.message_id }),
      ...(upload && { file: { type, name: name ?? upload.name, bytes: upload.bytes } }),
    })
    if (sent.length > SENT_MAX) sent.shift()
    const contact = recipient === undefined ? { input: address, wa_id: address } : { input: address, user_id: address }
    return { status: 200, body: { messaging_product: 'whatsapp', contacts: [contact], messages: [{ id }] } }
  }

  const mediaAbout = (id: string): ProviderReply => {
    const found = media.get(id)
    if (!found) return unknownObject('GET', id)
    const { bytes, mime, said } = found
    const url = `${fake.url}${MEDIA_PATH}?mid=${id}`
    const about = { messaging_product: 'whatsapp', url, mime_type: mime, sha256: sha256Hex(bytes), file_size: bytes.length, id }
    return { status: 200, body: { ...about, ...said } }
  }

  const mediaBytes = ({ method, query, headers }: ProviderRequest): ProviderReply => {
    const found = media.get(query.get('mid') ?? '')
    if (method !== 'GET' || !found || !headers.get('user-agent')) return { status: 404, body: '' }
    return { status: 200, headers: { 'content-type': found.mime }, body: found.bytes }
  }

  const fake = await startFakeProvider(answer, { port })
  return {
    ...fake,
    phoneNumberId,
    accessToken,
    sent,
    typing,
    addMedia(added) {
      const id = String(700_000_000_000_000 + media.size)
      media.set(id, added)
      return id
    },
    expireToken() {
      expired = true
    },
  }
}

/** An error in the format of the graph API. */
const refusal = (status: number, code: number, message: string, more: Readonly<Record<string, unknown>> = {}): ProviderReply => ({
  status,
  body: { error: { message, type: 'OAuthException', code, ...more, fbtrace_id: 'AFakeTraceIdOfThisRequest' } },
})

const invalid = (details: string): ProviderReply =>
  refusal(400, 100, '(#100) Invalid parameter', { error_data: { messaging_product: 'whatsapp', details } })

const unknownObject = (method: string, id: string): ProviderReply =>
  refusal(400, 100, `Unsupported ${method.toLowerCase()} request. Object with ID '${id}' does not exist`, { error_subcode: 33 })

const tokenExpired = refusal(401, 190, 'Error validating access token: Session has expired', { error_subcode: 463 })

function unauthorized({ headers }: ProviderRequest, accessToken: string): ProviderReply | undefined {
  const [, token] = /^Bearer (\S+)$/.exec(headers.get('authorization') ?? '') ?? []
  if (token === undefined) return refusal(401, 104, 'An access token is required to request this resource.')
  if (!equalTexts(token, accessToken)) return refusal(401, 190, `Malformed access token ${token}`)
  return undefined
}

if (import.meta.main) {
  const fake = await startChatappFake({ port: Number(process.argv[2] ?? 0) })
  console.log(`api_url = "${fake.url}"\nphone_number_id = "${fake.phoneNumberId}"\naccess_token = "${fake.accessToken}"`)
}
