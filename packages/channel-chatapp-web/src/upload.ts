/** Uploads files, encrypted, and makes the parts of messages that name them. */
import { mediaTypeOfName, readUpTo, signalScope } from '@sluice/kit'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import { AppError, type Attachment, type Host } from '@sluice/sdk'
import type { proto, WASocket } from '@whiskeysockets/baileys'
import { encryptFile, type MediaKind } from './media.ts'

const UPLOAD_MS_MAX = 120_000
const ANSWER_BYTES_MAX = 65_536
const NAME_CHARS_MAX = 240
const OPUS_RATE = 48_000

export interface UploadOptions {
  readonly sock: Pick<WASocket, 'refreshMediaConn'>
  readonly fetch: Host['fetch']
  /** `http:` on loopback in tests, else `https:`. */
  readonly scheme: 'https:' | 'http:'
}

/** A file as part of a message. */
export interface Uploaded {
  readonly message: proto.IMessage
  readonly hasCaption: boolean
}

interface Shown {
  readonly kind: MediaKind
  readonly mime: string
  readonly name: string
  readonly bytes: Uint8Array
}

/** Throws `unavailable` after a failure that may pass, because an upload that is repeated does no harm. */
export async function uploadFile(options: UploadOptions, attachment: Attachment, caption: string, signal: AbortSignal): Promise<Uploaded> {
  const { source } = attachment
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const name = attachment.name.slice(-NAME_CHARS_MAX) || 'file'
  const mime = attachment.mime ?? mediaTypeOfName(name) ?? 'application/octet-stream'
  const kind = kindOf(mime)
  const { mediaKey, fileSha256, fileEncSha256, bytes } = encryptFile(source.bytes, kind)
  const path = await upload(options, kind, fileEncSha256, bytes, signal)
  const file = {
    url: path.url,
    directPath: path.directPath,
    mediaKey,
    fileSha256,
    fileEncSha256,
    fileLength: source.bytes.length,
    mediaKeyTimestamp: Math.floor(Date.now() / 1000),
    mimetype: mime,
  }
  return { message: fileMessage(file, { kind, mime, name, bytes: source.bytes }, caption), hasCaption: kind !== 'audio' }
}

/** Returns the kind as which the platform shows a file: a picture, a video or a recording, else a document. */
function kindOf(mime: string): MediaKind {
  if (/^image\/(?:jpeg|png)$/.test(mime)) return 'image'
  if (/^video\/(?:mp4|3gpp)$/.test(mime)) return 'video'
  return attachmentKind(mime) === 'audio' ? 'audio' : 'document'
}

type File = Pick<
  proto.Message.IDocumentMessage,
  'url' | 'directPath' | 'mediaKey' | 'fileSha256' | 'fileEncSha256' | 'fileLength' | 'mimetype'
>

function fileMessage(file: File, { kind, mime, name, bytes }: Shown, caption: string): proto.IMessage {
  const words = caption === '' ? {} : { caption }
  if (kind === 'image') return { imageMessage: { ...file, ...words } }
  if (kind === 'video') return { videoMessage: { ...file, ...words } }
  if (kind === 'document') return { documentMessage: { ...file, ...words, fileName: name, title: name } }
  // Opus in an Ogg container is a voice message.
  if (!/^audio\/(?:ogg|opus)/.test(mime)) return { audioMessage: { ...file, ptt: false } }
  return { audioMessage: { ...file, mimetype: 'audio/ogg; codecs=opus', ptt: true, seconds: opusSeconds(bytes) } }
}

/** The length of an Ogg file, from the position in its last page (RFC 3533, RFC 7845). */
export function opusSeconds(bytes: Uint8Array): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const page = buffer.lastIndexOf('OggS')
  if (page < 0 || page + 14 > buffer.length) return 0
  return Math.ceil(Number(buffer.readBigUInt64LE(page + 6)) / OPUS_RATE)
}

async function upload(
  { sock, fetch, scheme }: UploadOptions,
  kind: MediaKind,
  hash: Buffer,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly directPath: string }> {
  const { hosts, auth } = await sock.refreshMediaConn(false).catch((cause: unknown) => {
    throw new AppError('unavailable', 'WhatsApp named no server for files', { cause })
  })
  using limit = signalScope([signal], UPLOAD_MS_MAX)
  let problem: AppError | undefined
  for (const { hostname } of hosts) {
    const token = hash.toString('base64url')
    const url = new URL(`${scheme}//${hostname}/mms/${kind}/${token}`)
    if (scheme === 'https:' && !url.hostname.endsWith('.whatsapp.net')) {
      problem = new AppError('unavailable', `WhatsApp named ${url.host} for files, a host that is not its own`)
      continue
    }
    url.search = new URLSearchParams({ auth, token }).toString()
    try {
      const headers = { 'content-type': 'application/octet-stream', origin: 'https://web.whatsapp.com' }
      const response = await fetch(url, { method: 'POST', body: new Uint8Array(bytes), headers, redirect: 'manual', signal: limit.signal })
      const answer = members(parsedOrUndefined((await readUpTo(response, ANSWER_BYTES_MAX)) ?? ''))
      const directPath = text(answer.direct_path)
      if (response.ok && directPath !== '') return { url: text(answer.url), directPath }
      problem = new AppError(response.status === 413 ? 'too_large' : 'unavailable', `The server for files answered ${response.status}`)
    } catch (error) {
      if (signal.aborted) throw new AppError('aborted', 'The upload was aborted')
      // The cause may name the address, which has a credential.
      problem = error instanceof AppError ? error : new AppError('unavailable', 'The server for files cannot be reached')
    }
  }
  if (problem?.code === 'unavailable') await sock.refreshMediaConn(true).catch(() => undefined)
  throw problem ?? new AppError('unavailable', 'WhatsApp named no server for files')
}
