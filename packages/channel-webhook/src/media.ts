/** Fetches the bytes of attachments. */
import { downloadFile } from '@sluice/kit'
import { AppError, type Attachment, type Host, type Media } from '@sluice/sdk'

/** Implements `Channel.fetchMedia`. The sender controls the URL, so the request carries no credential and goes only to public addresses. */
export async function fetchMedia({ publicFetch }: Host, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no URL')
  return downloadFile({
    provider: 'webhook',
    request: (during) => publicFetch(source.url, { signal: during, responseBytesMax: bytesMax }),
    isAuthorized: false,
    bytesMax,
    signal,
  })
}
