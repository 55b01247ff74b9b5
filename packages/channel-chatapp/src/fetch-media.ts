/** The bytes behind a media id: first where they lie and what they are, then they themselves, held to their digest. */

import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media, sha256Hex } from '@sluice/sdk'
import { type DownloadOptions, download } from './download.ts'
import type { Graph } from './graph.ts'
import { isMediaUrl } from './media-host.ts'

const MEDIA_ID = /^[\w-]+$/
/** What a question may run into and still be asked again; nothing is done twice by it. */
const PASSING = ['rate_limited', 'upstream', 'upstream_timeout']

export async function fetchMedia(graph: Graph, { source, mime }: Attachment, options: DownloadOptions): Promise<Media> {
  const id = 'id' in source ? source.id : ''
  if (!MEDIA_ID.test(id)) throw new AppError('invalid_request', 'The attachment has no media id of chatapp')
  const about = members(await lookUp(graph, id, options.signal))
  const url = text(about.url)
  if (!isMediaUrl(url, graph.baseUrl)) throw new AppError('forbidden', 'chatapp named a media host that is not its own')
  if (typeof about.file_size === 'number' && about.file_size > options.bytesMax) throw tooLarge(options.bytesMax)
  const bytes = await download(graph, url, options)
  if (!bytes) throw tooLarge(options.bytesMax)
  if (!hasDigest(bytes, about.sha256)) throw new AppError('unavailable', 'The attachment from chatapp arrived damaged')
  const type = text(about.mime_type) || mime
  return type ? { bytes, mime: type } : { bytes }
}

async function lookUp(graph: Graph, id: string, signal: AbortSignal): Promise<unknown> {
  try {
    return await graph.call({ method: 'GET', path: id, signal })
  } catch (error) {
    if (!(error instanceof AppError) || !PASSING.includes(error.code)) throw error
    throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
  }
}

/** The digest comes in hex, and in webhooks in base64; where there is none, none is asked for. */
function hasDigest(bytes: Uint8Array, digest: unknown): boolean {
  const expected = text(digest)
  if (expected === '') return true
  const actual = sha256Hex(bytes)
  return expected.toLowerCase() === actual || Buffer.from(expected, 'base64').toString('hex') === actual
}

const tooLarge = (bytesMax: number): AppError => new AppError('too_large', `The attachment from chatapp is larger than ${bytesMax} bytes`)
