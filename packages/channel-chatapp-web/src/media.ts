/**
 * Encrypts and decrypts files. A file is encrypted with AES-256-CBC under keys that HKDF derives from its media key, and ends with ten
 * bytes of an HMAC. Source: `getMediaKeys`, `encryptedStream` and `downloadEncryptedContent` of baileys.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { downloadFile } from '@sluice/kit'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, equalDigests, type Host, hmacSha256, type Media } from '@sluice/sdk'

/** The kinds of files, as the platform encrypts and stores them. */
export type MediaKind = 'image' | 'video' | 'audio' | 'document'

const INFO: Readonly<Record<MediaKind, string>> = {
  image: 'WhatsApp Image Keys',
  video: 'WhatsApp Video Keys',
  audio: 'WhatsApp Audio Keys',
  document: 'WhatsApp Document Keys',
}
const MAC_BYTES = 10
const OWN_HOST = 'mmg.whatsapp.net'

/** The data that fetches a file; the id of an attachment is its JSON. */
export interface StoredFile {
  readonly kind: MediaKind
  readonly path: string
  /** The media key in base64. */
  readonly key: string
  /** The SHA-256 of the encrypted file in base64, if the message has it. */
  readonly hash: string
}

interface Keys {
  readonly iv: Buffer
  readonly cipher: Buffer
  readonly mac: Buffer
}

function keysOf(mediaKey: Uint8Array, kind: MediaKind): Keys {
  const bytes = Buffer.from(hkdfSync('sha256', mediaKey, Buffer.alloc(32), INFO[kind], 112))
  return { iv: bytes.subarray(0, 16), cipher: bytes.subarray(16, 48), mac: bytes.subarray(48, 80) }
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

const macOf = ({ iv, mac }: Keys, encrypted: Uint8Array): Buffer => hmacSha256(mac, iv, encrypted).subarray(0, MAC_BYTES)

export interface EncryptedFile {
  readonly bytes: Buffer
  readonly mediaKey: Buffer
  readonly fileSha256: Buffer
  readonly fileEncSha256: Buffer
}

export function encryptFile(plain: Uint8Array, kind: MediaKind, mediaKey: Buffer = randomBytes(32)): EncryptedFile {
  const keys = keysOf(mediaKey, kind)
  const cipher = createCipheriv('aes-256-cbc', keys.cipher, keys.iv)
  const encrypted = Buffer.concat([cipher.update(plain), cipher.final()])
  const bytes = Buffer.concat([encrypted, macOf(keys, encrypted)])
  return { bytes, mediaKey, fileSha256: sha256(plain), fileEncSha256: sha256(bytes) }
}

/** Throws `invalid_request` if the file is not the one of the message. */
export function decryptFile(bytes: Uint8Array, { kind, key, hash }: Pick<StoredFile, 'kind' | 'key' | 'hash'>): Buffer {
  const wrong = (): AppError => new AppError('invalid_request', 'The file is not the one that the message names')
  if (bytes.length <= MAC_BYTES || (hash !== '' && sha256(bytes).toString('base64') !== hash)) throw wrong()
  const keys = keysOf(Buffer.from(key, 'base64'), kind)
  const encrypted = bytes.subarray(0, -MAC_BYTES)
  if (!equalDigests(macOf(keys, encrypted), bytes.subarray(-MAC_BYTES))) throw wrong()
  try {
    const cipher = createDecipheriv('aes-256-cbc', keys.cipher, keys.iv)
    return Buffer.concat([cipher.update(encrypted), cipher.final()])
  } catch {
    throw wrong()
  }
}

export const fileId = (file: StoredFile): string => JSON.stringify(file)

function fileOf({ source }: Attachment): StoredFile {
  const { kind, path, key, hash } = members(parsedOrUndefined('id' in source ? source.id : ''))
  const file = { kind: text(kind) as MediaKind, path: text(path), key: text(key), hash: text(hash) }
  if (!Object.hasOwn(INFO, file.kind) || !file.path.startsWith('/') || file.key === '')
    throw new AppError('invalid_request', 'The attachment names no file of WhatsApp')
  return file
}

export interface FetchOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** `origin` is the address of the servers for files; the one of WhatsApp unless given. */
export async function fetchMedia(
  { fetch }: Pick<Host, 'fetch'>,
  attachment: Attachment,
  { bytesMax, signal, origin = `https://${OWN_HOST}` }: FetchOptions & { readonly origin?: string },
): Promise<Media> {
  const file = fileOf(attachment)
  // Padding and the HMAC make an encrypted file a little larger.
  const { bytes } = await downloadFile({
    provider: 'chatapp',
    bytesMax: bytesMax + 16 + MAC_BYTES,
    signal,
    isAuthorized: false,
    // The path comes from the sender, so it must not lead to another host.
    request: (limit) =>
      fetch(pathAt(origin, file.path), { redirect: 'manual', signal: limit, headers: { origin: 'https://web.whatsapp.com' } }),
  })
  const plain = decryptFile(bytes, file)
  if (plain.length > bytesMax) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
  return { bytes: plain, ...(attachment.mime !== undefined && { mime: attachment.mime }) }
}

function pathAt(origin: string, path: string): string {
  const url = new URL(origin)
  const [pathname = '/', query = ''] = path.split('?', 2)
  url.pathname = pathname
  url.search = query
  return url.href
}
