/**
 * Files of messages. An upload has four steps: QQ names addresses for the parts, the parts are put there and confirmed, and QQ joins them.
 * See https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/rich-media.html.
 */
import { hash } from 'node:crypto'
import { downloadFile, followRedirects, signalScope } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { QqApi } from './api.ts'

const PICTURE = 1
const VIDEO = 2
const VOICE = 3
const FILE = 4
/** QQ compares the hash of the beginning of a file. */
const BEGINNING_BYTES = 10_002_432
const PARTS_MAX = 200
const PUT_MS_MAX = 60_000
const OWN_HOSTS = /(?:^|\.)(?:qq\.com|qq\.com\.cn|qpic\.cn|myqcloud\.com)$/

/** Returns the `file_info` of an uploaded file, which is valid in the kind of conversation that `path` names. */
export async function uploadFile(api: QqApi, path: `/${string}`, { name, source }: Attachment, signal: AbortSignal): Promise<string> {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const { bytes } = source
  const file = { file_type: typeOf(name), file_name: name }
  const prepared = await api.call(
    'POST',
    `${path}/upload_prepare`,
    {
      ...file,
      file_size: String(bytes.length),
      md5: hash('md5', bytes),
      sha1: hash('sha1', bytes),
      md5_10m: hash('md5', bytes.subarray(0, BEGINNING_BYTES)),
    },
    signal,
  )
  const upload_id = text(prepared.upload_id)
  await putParts(api, path, upload_id, partsOf(prepared, bytes), signal)
  const { file_info } = await api.call('POST', `${path}/files`, { ...file, srv_send_msg: false, upload_id }, signal)
  if (text(file_info) === '') throw new AppError('upstream', 'qq accepted a file but returned nothing to send it with')
  return text(file_info)
}

interface Part {
  readonly index: number
  readonly url: string
  readonly bytes: Uint8Array
}

/** The parts are in the order of the file. Their numbers begin with 0 in the documentation and with 1 in practice. */
function partsOf({ block_size, parts }: Readonly<Record<string, unknown>>, bytes: Uint8Array): Part[] {
  let offset = 0
  const found = list(parts)
    .slice(0, PARTS_MAX)
    .map((each): Part => {
      const part = members(each)
      const size = Number(part.block_size ?? block_size)
      const slice = bytes.subarray(offset, offset + size)
      offset += size
      return { index: Number(part.index), url: text(part.presigned_url), bytes: slice }
    })
  if (!(offset >= bytes.length)) throw new AppError('upstream', 'qq named no addresses for the whole file')
  return found
}

async function putParts(api: QqApi, path: `/${string}`, upload_id: string, parts: readonly Part[], signal: AbortSignal): Promise<void> {
  for (const { index, url, bytes } of parts) {
    if (!isOwnUrl(url, api.url)) throw new AppError('upstream', 'qq named an address for a file that is not its own')
    await put(api, url, bytes, signal)
    const block_size = String(bytes.length)
    await api.call('POST', `${path}/upload_part_finish`, { upload_id, part_index: index, block_size, md5: hash('md5', bytes) }, signal)
  }
}

/** Sends no token: the address contains its own credential. Nothing was sent to people yet, so any failure may be repeated. */
async function put(api: QqApi, url: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  using limit = signalScope([signal], PUT_MS_MAX)
  const response = await api
    .fetch(url, { method: 'PUT', body: new Uint8Array(bytes), redirect: 'manual', signal: limit.signal })
    .catch(() => undefined)
  await response?.body?.cancel()
  if (!response?.ok) throw new AppError('unavailable', `The upload of a file to qq failed (${response?.status ?? 'interrupted'})`)
}

function typeOf(name: string): number {
  const ending = /\.(\w{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? ''
  if (['png', 'jpg', 'jpeg'].includes(ending)) return PICTURE
  if (ending === 'mp4') return VIDEO
  return ending === 'silk' ? VOICE : FILE
}

/** Implements `Channel.fetchMedia`. The address contains its own credential. */
export async function fetchMedia(api: QqApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no address')
  return downloadFile({
    provider: 'qq',
    bytesMax,
    signal,
    isAuthorized: false,
    request: (during) =>
      followRedirects(source.url, (url) => {
        if (!isOwnUrl(url, api.url)) throw new AppError('invalid_request', 'The attachment is at an address that is not one of qq')
        return api.fetch(url, { redirect: 'manual', signal: during })
      }),
  })
}

/** Whether an address is one of QQ or its storage, or of the configured API. */
export function isOwnUrl(address: string, apiUrl: string): boolean {
  const url = URL.parse(address)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '' || url.password !== '') return false
  if (url.host === api.host) return url.protocol === 'https:' || url.protocol === api.protocol
  return url.protocol === 'https:' && url.port === '' && OWN_HOSTS.test(url.hostname)
}
