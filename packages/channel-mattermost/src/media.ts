/** Files: downloads the files of messages, and uploads the files of replies. An uploaded file is invisible until a post has it. */
import { asUnavailable, downloadFile, pathSegment } from '@sluice/kit'
import { list, members } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import type { MattermostApi } from './api.ts'
import { isId } from './ids.ts'

/** A post can have 10 files. A server accepts files of 100 MiB unless it is configured otherwise. */
export const FILES = { count: 10, bytesMax: 52_428_800 } as const
const UPLOAD_MS_MAX = 120_000

/** See `Channel.fetchMedia`. Follows no redirect: the server sends its files itself. */
export async function fetchMedia(api: MattermostApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  const id = 'id' in source ? source.id : ''
  if (!isId(id)) throw new AppError('invalid_request', 'The attachment has no file id of mattermost')
  return downloadFile({
    provider: 'mattermost',
    bytesMax,
    signal,
    isAuthorized: true,
    request: (during) =>
      api.fetch(api.url(`/files/${pathSegment(id)}`), { headers: api.authorization, redirect: 'manual', signal: during }),
  })
}

/** Returns the ids of the files. Throws `rate_limited` or `unavailable` if a repeat may succeed, since nothing was sent yet. */
export async function uploadFiles(
  api: MattermostApi,
  channel: string,
  attachments: readonly Attachment[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (const attachment of attachments) ids.push(await uploadFile(api, channel, attachment, signal))
  return ids
}

async function uploadFile(api: MattermostApi, channel: string, { name, mime, source }: Attachment, signal: AbortSignal): Promise<string> {
  if (!('bytes' in source) || source.bytes.length === 0) {
    throw new AppError('invalid_request', `mattermost accepts no empty file, and ${JSON.stringify(name)} has no content`)
  }
  const form = new FormData()
  form.append('channel_id', channel)
  form.append('files', new Blob([new Uint8Array(source.bytes)], { type: mime ?? 'application/octet-stream' }), name)
  try {
    const { json } = await api.call({ method: 'POST', path: '/files', body: form, signal, timeoutMs: UPLOAD_MS_MAX })
    const { id } = members(list(members(json).file_infos)[0])
    if (!isId(id)) throw new AppError('upstream', 'mattermost accepted a file but did not return its id')
    return id
  } catch (error) {
    throw signal.aborted ? error : asUnavailable(error)
  }
}
