/** Fetches the file behind a media id: looks up its URL, checks the host, downloads it and compares its SHA-256. */
import { asUnavailable, downloadFile } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media, sameOrigin, sha256Hex } from '@sluice/sdk'
import type { Graph } from './api.ts'

const MEDIA_ID = /^[\w-]+$/
const MEDIA_HOSTS = ['graph.facebook.com']
const MEDIA_DOMAINS = ['.fbsbx.com', '.whatsapp.net']
const TIMEOUT_MS = 120_000
/** The platform rejects downloads without a user agent. */
const USER_AGENT = 'Sluice'

/** Implements `Channel.fetchMedia`. */
export async function fetchMedia(graph: Graph, { source, mime }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  const id = 'id' in source ? source.id : ''
  if (!MEDIA_ID.test(id)) throw new AppError('invalid_request', 'The attachment has no media id of chatapp')
  const file = members(await lookUp(graph, id, signal))
  const url = text(file.url)
  if (!isMediaUrl(url, graph.baseUrl)) throw new AppError('forbidden', 'The media URL from chatapp is not on a host of the platform')
  if (typeof file.file_size === 'number' && file.file_size > bytesMax) {
    throw new AppError('too_large', `The attachment from chatapp is larger than ${bytesMax} bytes`)
  }
  const headers = { ...graph.authorization(), 'user-agent': USER_AGENT }
  const { bytes } = await downloadFile({
    provider: 'chatapp',
    bytesMax,
    signal,
    isAuthorized: true,
    timeoutMs: TIMEOUT_MS,
    request: (during) => graph.fetch(url, { headers, redirect: 'manual', signal: during }),
  })
  if (!hasDigest(bytes, file.sha256)) throw new AppError('unavailable', 'The attachment from chatapp does not match its SHA-256')
  const type = text(file.mime_type) || mime
  return type ? { bytes, mime: type } : { bytes }
}

/** Returns whether a media URL belongs to the platform, so that it may receive the token. The origin of `apiUrl` counts, too. */
export function isMediaUrl(url: string, apiUrl: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, username, password, port, hostname } = new URL(url)
  if (username !== '' || password !== '') return false
  if (sameOrigin(url, apiUrl)) return true
  const isPlatform = MEDIA_HOSTS.includes(hostname) || MEDIA_DOMAINS.some((domain) => hostname.endsWith(domain))
  return protocol === 'https:' && port === '' && isPlatform
}

async function lookUp(graph: Graph, id: string, signal: AbortSignal): Promise<unknown> {
  try {
    return await graph.call({ method: 'GET', path: id, signal })
  } catch (error) {
    throw asUnavailable(error)
  }
}

/** Returns whether the bytes have a digest, in hex as in the API or in base64 as in webhooks. Without a digest, any bytes match. */
function hasDigest(bytes: Uint8Array, digest: unknown): boolean {
  const expected = text(digest)
  if (expected === '') return true
  const actual = sha256Hex(bytes)
  return expected.toLowerCase() === actual || Buffer.from(expected, 'base64').toString('hex') === actual
}
