/** Files of messages: uploads for each way of sending, and downloads. */
import { downloadFile, followRedirects } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { WecomApi } from './api.ts'
import type { BotConnection } from './bot.ts'
import { openFile } from './seal.ts'

export type MediaType = 'image' | 'voice' | 'video' | 'file'

const MIB = 1024 * 1024
const LIMITS: Readonly<Record<string, { readonly type: MediaType; readonly bytesMax: number }>> = {
  jpg: { type: 'image', bytesMax: 10 * MIB },
  jpeg: { type: 'image', bytesMax: 10 * MIB },
  png: { type: 'image', bytesMax: 10 * MIB },
  mp4: { type: 'video', bytesMax: 10 * MIB },
  amr: { type: 'voice', bytesMax: 2 * MIB },
}
const CHUNK_BYTES = 512 * 1024
const OWN_HOSTS = /(?:^|\.)(?:qq\.com|myqcloud\.com|wework\.qpic\.cn)$/

/** Files that are too large for their type are sent as files of any type. */
export function typeOf(name: string, bytes: number): MediaType {
  const limit = LIMITS[/\.(\w{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? '']
  return limit && bytes <= limit.bytesMax ? limit.type : 'file'
}

export function bytesOf({ source }: Attachment): Uint8Array<ArrayBuffer> {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  return new Uint8Array(source.bytes)
}

export function formOf(file: Attachment): FormData {
  const form = new FormData()
  form.set('media', new Blob([bytesOf(file)], { type: file.mime ?? 'application/octet-stream' }), file.name)
  return form
}

/** Returns the `media_id` in an answer. */
export function mediaIn(answer: unknown): string {
  const id = text(members(answer).media_id)
  if (id === '') throw new AppError('upstream', 'wecom accepted a file but returned no id for it')
  return id
}

/** Uploads a file over the long connection, in chunks. Nothing reaches people before the message with it, so a failure may be repeated. */
export async function uploadToBot(bot: BotConnection, file: Attachment, type: MediaType, signal: AbortSignal): Promise<string> {
  const bytes = Buffer.from(bytesOf(file))
  const count = Math.max(1, Math.ceil(bytes.length / CHUNK_BYTES))
  try {
    const init = { type, filename: file.name, total_size: bytes.length, total_chunks: count, md5: md5(bytes) }
    const upload_id = text(members((await bot.request('aibot_upload_media_init', init, signal)).body).upload_id)
    for (let index = 0; index < count; index++) {
      const base64_data = bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES).toString('base64')
      await bot.request('aibot_upload_media_chunk', { upload_id, chunk_index: index, base64_data }, signal)
    }
    return mediaIn((await bot.request('aibot_upload_media_finish', { upload_id }, signal)).body)
  } catch (error) {
    if (!(error instanceof AppError) || !['upstream', 'upstream_timeout'].includes(error.code)) throw error
    throw new AppError('unavailable', `The upload of a file to wecom failed: ${error.message}`)
  }
}

export const md5 = (bytes: Uint8Array): string => process.getBuiltinModule('node:crypto').hash('md5', bytes, 'hex')

/** Implements `Channel.fetchMedia`: by the id of an app's message, or from the address in an AI bot's message, whose file is encrypted. */
export async function fetchMedia(api: WecomApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  const limits = { provider: 'wecom', bytesMax, signal }
  if ('id' in source) return downloadFile({ ...limits, isAuthorized: true, request: (during) => api.media(source.id, during) })
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no address')
  const [address = '', key = ''] = source.url.split('#')
  // The padding of an encrypted file is at most 32 bytes.
  const media = await downloadFile({
    ...limits,
    bytesMax: bytesMax + (key === '' ? 0 : 32),
    isAuthorized: false,
    request: (during) =>
      followRedirects(address, (url) => {
        if (!isOwnUrl(url, api.config.api_url))
          throw new AppError('invalid_request', 'The attachment is at an address that is not one of wecom')
        return api.fetch(url, { redirect: 'manual', signal: during })
      }),
  })
  return key === '' ? media : { bytes: opened(key, media.bytes, bytesMax) }
}

function opened(key: string, bytes: Uint8Array, bytesMax: number): Uint8Array {
  let plain: Uint8Array
  try {
    plain = openFile(key, bytes)
  } catch {
    throw new AppError('invalid_request', 'The attachment cannot be decrypted with the key in its message')
  }
  if (plain.length > bytesMax) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
  return plain
}

/** Whether an address is one of WeCom or its storage, or of the configured API. */
export function isOwnUrl(address: string, apiUrl: string): boolean {
  const url = URL.parse(address)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '' || url.password !== '') return false
  if (url.host === api.host) return url.protocol === 'https:' || url.protocol === api.protocol
  return url.protocol === 'https:' && url.port === '' && OWN_HOSTS.test(url.hostname)
}
