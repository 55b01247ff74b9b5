/** Files: downloads the files of messages, and uploads the files of replies. An uploaded file is invisible until a message has it. */
import { downloadFile, nothingSent, pathSegment } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import type { Payload } from './card.ts'
import { MERGED_TYPE } from './content.ts'
import { fetchPassedOn } from './passed-on.ts'

/** The largest file and picture that the platform accepts. A larger picture is sent as a file. */
export const FILE_BYTES_MAX = 30_000_000
const PICTURE_BYTES_MAX = 10_000_000
const PICTURES = /\.(?:jpe?g|png|webp|gif|bmp|ico|tiff?|heic)$/i
const UPLOAD_MS_MAX = 60_000

/** The platform's names of file types, by extension; any other file is a `stream`. */
const FILE_TYPES: Readonly<Record<string, string>> = {
  opus: 'opus',
  mp4: 'mp4',
  pdf: 'pdf',
  doc: 'doc',
  docx: 'doc',
  xls: 'xls',
  xlsx: 'xls',
  ppt: 'ppt',
  pptx: 'ppt',
}

interface FetchLimits {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** See `Channel.fetchMedia`. The source is `<message>/<image or file>/<key>`, or that of `passedOnFile`. */
export function fetchMedia(api: WorkchatApi, account: string, { source }: Attachment, limits: FetchLimits): Promise<Media> {
  const { bytesMax, signal } = limits
  const [message = '', type = '', key = '', ...more] = 'id' in source ? source.id.split('/') : []
  if (type === MERGED_TYPE && key === '') return fetchPassedOn(api, { id: message, bot: { account, openId: undefined }, bytesMax, signal })
  if (more.length > 0 || !['image', 'file'].includes(type)) throw new AppError('invalid_request', 'The attachment has no id of workchat')
  const path = `/im/v1/messages/${pathSegment(message)}/resources/${pathSegment(key)}` as const
  return downloadFile({
    provider: 'workchat',
    bytesMax,
    signal,
    isAuthorized: true,
    request: (during) => api.download({ path, query: { type }, signal: during }),
  })
}

/** Uploads files, and returns the message of each. Throws `rate_limited` or `unavailable` if a repeat may succeed. */
export async function uploadFiles(api: WorkchatApi, attachments: readonly Attachment[], signal: AbortSignal): Promise<Payload[]> {
  const payloads: Payload[] = []
  try {
    for (const attachment of attachments) payloads.push(await upload(api, attachment, signal))
    return payloads
  } catch (error) {
    throw nothingSent(error)
  }
}

async function upload(api: WorkchatApi, { kind, name, source }: Attachment, signal: AbortSignal): Promise<Payload> {
  if (!('bytes' in source) || source.bytes.length === 0) {
    throw new AppError('invalid_request', `workchat accepts no empty file, and ${JSON.stringify(name)} has no content`)
  }
  const bytes = new Blob([new Uint8Array(source.bytes)])
  const isPicture = kind === 'image' && PICTURES.test(name) && source.bytes.length <= PICTURE_BYTES_MAX
  const form = new FormData()
  if (isPicture) {
    form.set('image_type', 'message')
    form.set('image', bytes, name)
    const { image_key } = await api.call({ method: 'POST', path: '/im/v1/images', body: form, signal, timeoutMs: UPLOAD_MS_MAX })
    return { msg_type: 'image', content: JSON.stringify({ image_key: keyIn(image_key) }) }
  }
  const fileType = FILE_TYPES[/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''] ?? 'stream'
  form.set('file_type', fileType)
  form.set('file_name', name)
  form.set('file', bytes, name)
  const { file_key } = await api.call({ method: 'POST', path: '/im/v1/files', body: form, signal, timeoutMs: UPLOAD_MS_MAX })
  const messageType = fileType === 'opus' ? 'audio' : fileType === 'mp4' ? 'media' : 'file'
  return { msg_type: messageType, content: JSON.stringify({ file_key: keyIn(file_key) }) }
}

function keyIn(value: unknown): string {
  if (text(value) === '') throw new AppError('upstream', 'workchat accepted the file but did not return its key')
  return text(value)
}
