/** Files of messages: downloads by their code, and uploads for messages of the robot. */
import { downloadFile, followRedirects } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { DingtalkApi } from './api.ts'

/** The types that `sampleFile` accepts; see "Message types of robots". */
const FILE_TYPES = ['xlsx', 'pdf', 'zip', 'rar', 'doc', 'docx']
const PICTURE_TYPES = ['jpg', 'jpeg', 'png', 'gif', 'bmp']
const UPLOAD_HOSTS = /(?:^|\.)(?:dingtalk\.com|aliyuncs\.com|alicdn\.com)$/

/** The message that shows an uploaded file. */
export interface FileMessage {
  readonly key: 'sampleImageMsg' | 'sampleFile'
  readonly param: object
}

/** Uploads a file. A file of a type that DingTalk does not take is refused before anything is sent. */
export async function uploadFile(api: DingtalkApi, { kind, name, mime, source }: Attachment, signal: AbortSignal): Promise<FileMessage> {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const type = /\.(\w{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? ''
  const isPicture = kind === 'image' && PICTURE_TYPES.includes(type)
  if (!isPicture && !FILE_TYPES.includes(type)) {
    throw new AppError(
      'invalid_request',
      `dingtalk takes pictures (${PICTURE_TYPES.join(', ')}) and files (${FILE_TYPES.join(', ')}), not '${name}'`,
    )
  }
  const form = new FormData()
  form.set('media', new Blob([new Uint8Array(source.bytes)], { type: mime ?? 'application/octet-stream' }), name)
  const mediaId = await api.upload(isPicture ? 'image' : 'file', form, signal)
  return isPicture
    ? { key: 'sampleImageMsg', param: { photoURL: mediaId } }
    : { key: 'sampleFile', param: { mediaId, fileName: name, fileType: type } }
}

/** Implements `Channel.fetchMedia`: exchanges the code for an address, which needs no token. */
export async function fetchMedia(api: DingtalkApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has no download code of dingtalk')
  const { id } = source
  return downloadFile({
    provider: 'dingtalk',
    bytesMax,
    signal,
    isAuthorized: false,
    async request(during) {
      const answer = await api.call('/v1.0/robot/messageFiles/download', { downloadCode: id, robotCode: api.robotCode }, during)
      return followRedirects(text(answer.downloadUrl), (url) => {
        if (!isFileUrl(url, api.config.api_url))
          throw new AppError('invalid_request', 'dingtalk named an address for the attachment that is not its own')
        return api.fetch(url, { redirect: 'manual', signal: during })
      })
    },
  })
}

/** Whether a file may be fetched from an address: one of DingTalk or its storage, or the host of the configured API. */
export function isFileUrl(address: string, apiUrl: string): boolean {
  const url = URL.parse(address)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '' || url.password !== '') return false
  if (url.host === api.host) return url.protocol === api.protocol || url.protocol === 'https:'
  return (
    (url.protocol === 'https:' || url.protocol === 'http:') && UPLOAD_HOSTS.test(url.hostname) && (url.port === '' || url.port === '443')
  )
}
