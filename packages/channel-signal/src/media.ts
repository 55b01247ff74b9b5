/** Fetches the bytes of attachments. */
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { call, type Rpc } from './rpc.ts'

/** The bytes arrive as base64 in JSON. */
const BASE64_RATIO = 4 / 3
const JSON_BYTES = 4096

/** Implements `Channel.fetchMedia`. signal-cli keeps the files that it received. */
export async function fetchMedia(rpc: Rpc, { source, mime }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has no id of Signal')
  const answerBytesMax = Math.ceil(bytesMax * BASE64_RATIO) + JSON_BYTES
  const { data } = await call(rpc, 'getAttachment', { id: source.id, recipient: [rpc.account] }, signal, answerBytesMax)
  const bytes = Buffer.from(text(data), 'base64')
  if (bytes.length === 0) throw new AppError('upstream', 'signal-cli returned no bytes for the attachment')
  if (bytes.length > bytesMax) throw new AppError('too_large', `The attachment has ${bytes.length} bytes, more than ${bytesMax}`)
  return { bytes, ...(mime && { mime }) }
}
