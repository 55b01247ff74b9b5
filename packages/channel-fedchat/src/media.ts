/** Attachments: uploads, downloads, and their encryption (client-server API, "Content repository" and "Sending encrypted attachments"). */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { downloadFile, followRedirects, withoutTrailing } from '@sluice/kit'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Host, type Media } from '@sluice/sdk'
import type { MatrixApi } from './api.ts'

/** The `EncryptedFile` of an event. */
export interface EncryptedFile {
  readonly url: string
  readonly key: { readonly k: string }
  readonly iv: string
  readonly hashes: { readonly sha256: string }
}

const UPLOAD_MS_MAX = 55_000
const IV_RANDOM_BYTES = 8
const KEY_BYTES = 32
const IV_BYTES = 16
const OCTETS = 'application/octet-stream'
const BAD_REQUEST = 400
const NOT_FOUND = 404
const MXC = /^mxc:\/\/([^/?#\s]+)\/([\w.~-]+)$/

/** Returns the id of an attachment, with which `fetchMedia` finds and decrypts it; undefined for content without a valid file. */
export function attachmentId(content: object): string | undefined {
  const { url, file } = members(content)
  const encrypted = members(file)
  if (file === undefined) return MXC.test(text(url)) ? JSON.stringify({ url }) : undefined
  const { v, iv } = encrypted
  const key = text(members(encrypted.key).k)
  const sha256 = text(members(encrypted.hashes).sha256)
  if (!MXC.test(text(encrypted.url)) || text(v) !== 'v2' || key === '' || sha256 === '') return undefined
  return JSON.stringify({ url: encrypted.url, key: { k: key }, iv: text(iv), hashes: { sha256 } })
}

/** See `Channel.fetchMedia`. */
export async function fetchMedia(
  api: MatrixApi,
  host: Pick<Host, 'publicFetch'>,
  { source, name }: Attachment,
  { bytesMax, signal }: { readonly bytesMax: number; readonly signal: AbortSignal },
): Promise<Media> {
  const file = members(parsedOrUndefined('id' in source ? source.id : ''))
  const [, server = '', id = ''] = MXC.exec(text(file.url)) ?? []
  if (server === '') throw new AppError('invalid_request', `The attachment ${JSON.stringify(name)} has no address`)
  const { bytes, mime } = await downloadFile({
    provider: 'the homeserver',
    bytesMax,
    signal,
    isAuthorized: true,
    request: (limit) => download(api, host, [server, id], bytesMax, limit),
  })
  if (file.key === undefined) return { bytes, ...(mime && { mime }) }
  return { bytes: decryptFile(bytes, file as unknown as EncryptedFile) }
}

/** Homeservers before version 1.11 of the specification have only the older address, which needs no token. */
async function download(
  api: MatrixApi,
  host: Pick<Host, 'publicFetch'>,
  media: readonly [string, string],
  bytesMax: number,
  signal: AbortSignal,
): Promise<Response> {
  const url = api.url(['client', 'v1', 'media', 'download', ...media])
  const answer = await fromHomeserver(api, host, url, bytesMax, signal)
  // Older homeservers answer an unknown address with 400 or 404 and this code.
  if (answer.status !== NOT_FOUND && answer.status !== BAD_REQUEST) return answer
  const refusal = parsedOrUndefined(await answer.text())
  const { errcode } = members(refusal)
  if (errcode === 'M_NOT_FOUND') throw new AppError('invalid_request', 'The homeserver does not have the attachment')
  if (answer.status === BAD_REQUEST && errcode !== 'M_UNRECOGNIZED')
    throw new AppError('invalid_request', `The homeserver refused to give the attachment (${text(errcode) || 'without a code'})`)
  return fromHomeserver(api, host, api.url(['media', 'v3', 'download', ...media], { allow_redirect: 'true' }), bytesMax, signal)
}

/** The homeserver may redirect to a store of files, which must be a public address and does not get the token. */
const fromHomeserver = (api: MatrixApi, host: Pick<Host, 'publicFetch'>, first: string, bytesMax: number, signal: AbortSignal) =>
  followRedirects(first, (url) =>
    url === first
      ? api.fetch(url, { headers: { ...api.authorization() }, redirect: 'manual', signal })
      : host.publicFetch(url, { signal, responseBytesMax: bytesMax }),
  )

/** Uploads a file and returns the members of its event that name it. */
export async function upload(
  api: MatrixApi,
  file: { readonly bytes: Uint8Array; readonly name: string; readonly mime: string },
  isEncrypted: boolean,
  signal: AbortSignal,
): Promise<{ readonly url: string } | { readonly file: object }> {
  const encrypted = isEncrypted ? encryptFile(file.bytes) : undefined
  const answer = await api.call({
    method: 'POST',
    path: ['media', 'v3', 'upload'],
    // The name and the type of an encrypted file are in its event, which the homeserver cannot read.
    query: { filename: encrypted ? undefined : file.name },
    headers: { 'content-type': encrypted ? OCTETS : file.mime },
    body: new Uint8Array(encrypted?.bytes ?? file.bytes),
    timeoutMs: UPLOAD_MS_MAX,
    signal,
  })
  const url = text(answer.content_uri)
  if (!MXC.test(url)) throw new AppError('upstream', 'The homeserver did not return the address of the uploaded file')
  return encrypted ? { file: { ...encrypted.file, url } } : { url }
}

export function encryptFile(bytes: Uint8Array): { readonly bytes: Buffer; readonly file: object } {
  const key = randomBytes(KEY_BYTES)
  // The lower half counts the blocks. It begins with zero, so that it never overflows.
  const iv = Buffer.concat([randomBytes(IV_RANDOM_BYTES), Buffer.alloc(IV_BYTES - IV_RANDOM_BYTES)])
  const cipher = createCipheriv('aes-256-ctr', key, iv)
  const encrypted = Buffer.concat([cipher.update(bytes), cipher.final()])
  const file = {
    v: 'v2',
    key: { kty: 'oct', key_ops: ['encrypt', 'decrypt'], alg: 'A256CTR', k: key.toString('base64url'), ext: true },
    iv: unpadded(iv),
    hashes: { sha256: unpadded(createHash('sha256').update(encrypted).digest()) },
  }
  return { bytes: encrypted, file }
}

/** Throws `invalid_request` for a file that was changed. */
export function decryptFile(bytes: Uint8Array, { key, iv, hashes }: EncryptedFile): Buffer {
  const expected = Buffer.from(hashes.sha256, 'base64')
  if (!createHash('sha256').update(bytes).digest().equals(expected)) {
    throw new AppError('invalid_request', 'The attachment does not match its hash, so it was changed on the way')
  }
  const secret = Buffer.from(key.k, 'base64url')
  const start = Buffer.from(iv, 'base64')
  if (secret.length !== KEY_BYTES || start.length !== IV_BYTES)
    throw new AppError('invalid_request', 'The key of the attachment is invalid')
  const decipher = createDecipheriv('aes-256-ctr', secret, start)
  return Buffer.concat([decipher.update(bytes), decipher.final()])
}

const unpadded = (bytes: Buffer): string => withoutTrailing(bytes.toString('base64'), '=')
