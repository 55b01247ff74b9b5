/** Downloads the files of messages. LINE prepares a large video or audio file first, and deletes files after some time. */
import { downloadFile } from '@sluice/kit'
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { LineApi } from './api.ts'
import { contentPath } from './send.ts'

const PREPARING = 202
const POLL_MS = 1000
const POLLS_MAX = 30
/** The file and its preparation together. */
const TIMEOUT_MS = 120_000
const ID = /^\d{1,40}$/

/** See `Channel.fetchMedia`. The sender controls the address of a file on another server, so that request has no token. */
export async function fetchMedia(api: LineApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  const common = { provider: 'line', bytesMax, signal, timeoutMs: TIMEOUT_MS } as const
  if ('url' in source) {
    const { url } = source
    const request = (during: AbortSignal) => api.host.publicFetch(url, { signal: during, responseBytesMax: bytesMax })
    return downloadFile({ ...common, isAuthorized: false, request })
  }
  const id = 'id' in source ? source.id : ''
  if (!ID.test(id)) throw new AppError('invalid_request', 'The attachment has no message id of line')
  return downloadFile({ ...common, isAuthorized: true, request: (during) => requestContent(api, id, during) })
}

async function requestContent(api: LineApi, id: string, signal: AbortSignal): Promise<Response> {
  const get = (path: `/${string}`) => api.host.fetch(api.dataUrl(path), { headers: api.authorization, redirect: 'manual', signal })
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    const response = await get(contentPath(id))
    if (response.status !== PREPARING) return response
    await response.body?.cancel()
    await untilPrepared(api, id, get, signal)
  }
  throw new AppError('unavailable', 'line is still preparing the file')
}

/** Waits until LINE has prepared the file, or a while. Throws `invalid_request` if it cannot. */
async function untilPrepared(api: LineApi, id: string, get: (path: `/${string}`) => Promise<Response>, signal: AbortSignal): Promise<void> {
  await api.host.clock.sleep(POLL_MS, signal)
  const answer = await get(`${contentPath(id)}/transcoding`)
  const status = answer.ok ? text(members(parsedOrUndefined(await answer.text())).status) : ''
  if (!answer.ok) await answer.body?.cancel()
  if (status === 'failed') throw new AppError('invalid_request', 'line could not prepare the file')
}
