/** Parses the message a bot posts to discord, as JSON or with files, and finds the platform's objections to it. */
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'

/** A message as a bot posts it. */
export interface DiscordMessageBody {
  readonly content: string
  readonly components: readonly unknown[]
  readonly files: readonly { readonly name: string; readonly mime?: string; readonly bytes: Uint8Array }[]
  readonly replyTo?: string
  /** Whether the quoted message must exist. */
  readonly mustExist: boolean
  readonly nonce?: string
  readonly isNonceEnforced: boolean
  /** Whether this text notifies anyone. */
  pings(content: string): boolean
}

const CONTENT_MAX = 2000
const NONCE_MAX = 25
const FILES_MAX = 10
const FILE_BYTES_MAX = 10 * 1024 * 1024
const ROWS_MAX = 5

/** Reads a message from a JSON body or from a form with files. */
export async function readDiscordBody({ headers, body, json }: ProviderRequest): Promise<DiscordMessageBody> {
  const type = headers.get('content-type') ?? ''
  if (!type.startsWith('multipart/form-data')) return bodyOf(members(json), [])
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  const payload = members(JSON.parse(String(form.get('payload_json') ?? '{}')))
  const files = await Promise.all(
    [...form].flatMap(([name, file]) => (/^files\[\d+\]$/.test(name) && typeof file !== 'string' ? [readFile(file)] : [])),
  )
  return bodyOf(payload, files)
}

const readFile = async (file: File) => ({ name: file.name, mime: file.type, bytes: new Uint8Array(await file.arrayBuffer()) })

function bodyOf(json: Members, files: DiscordMessageBody['files']): DiscordMessageBody {
  const reference = members(json.message_reference)
  return {
    content: typeof json.content === 'string' ? json.content : '',
    components: Array.isArray(json.components) ? json.components : [],
    files,
    ...(typeof reference.message_id === 'string' && { replyTo: reference.message_id }),
    mustExist: reference.fail_if_not_exists !== false,
    ...((typeof json.nonce === 'string' || typeof json.nonce === 'number') && { nonce: String(json.nonce) }),
    isNonceEnforced: json.enforce_nonce === true,
    pings: (content) => isPing(content, json.allowed_mentions),
  }
}

/** Without `allowed_mentions` every mention in the text notifies; with it, only the kinds it lists. */
function isPing(content: string, allowed: unknown): boolean {
  const { parse, users, roles } = members(allowed)
  const kinds = allowed === undefined ? ['everyone', 'users', 'roles'] : Array.isArray(parse) ? parse : []
  if (kinds.includes('everyone') && /@everyone|@here/.test(content)) return true
  if (/<@!?\d+>/.test(content) && (kinds.includes('users') || (Array.isArray(users) && users.length > 0))) return true
  return /<@&\d+>/.test(content) && (kinds.includes('roles') || (Array.isArray(roles) && roles.length > 0))
}

/** The platform's refusal of the message; `undefined` if it accepts it. */
export function checkDiscordMessage({ content, components, files, nonce }: DiscordMessageBody): ProviderReply | undefined {
  if ([...content].length > CONTENT_MAX) return invalid({ content: errors('BASE_TYPE_MAX_LENGTH', 'Must be 2000 or fewer in length.') })
  if (nonce !== undefined && nonce.length > NONCE_MAX) return invalid({ nonce: errors('NONCE_TYPE_TOO_LONG', 'Too long.') })
  if (content.trim() === '' && files.length === 0) return { status: 400, body: { message: 'Cannot send an empty message', code: 50006 } }
  if (files.length > FILES_MAX) return invalid({ attachments: errors('BASE_TYPE_MAX_LENGTH', 'Must be 10 or fewer in length.') })
  if (files.some(({ bytes }) => bytes.length > FILE_BYTES_MAX))
    return { status: 413, body: { message: 'Request entity too large', code: 40005 } }
  if (components.length > ROWS_MAX || !components.every(isRow)) return invalid({ components: errors('COMPONENT_TYPE_INVALID', 'Invalid.') })
  return undefined
}

function isRow(row: unknown): boolean {
  const { type, components } = members(row)
  if (type !== 1 || !Array.isArray(components) || components.length === 0 || components.length > 5) return false
  const ids = components.map((component) => members(component).custom_id)
  return new Set(ids).size === ids.length && components.every(isButton)
}

function isButton(component: unknown): boolean {
  const { type, style, label, custom_id } = members(component)
  if (type !== 2 || ![1, 2, 3, 4].includes(Number(style))) return false
  if (typeof custom_id !== 'string' || custom_id === '' || custom_id.length > 100) return false
  return typeof label === 'string' && label !== '' && [...label].length <= 80
}

type Members = Readonly<Record<string, unknown>>

const members = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const errors = (code: string, message: string) => ({ _errors: [{ code, message }] })

const invalid = (fields: object): ProviderReply => ({ status: 400, body: { message: 'Invalid Form Body', code: 50035, errors: fields } })
