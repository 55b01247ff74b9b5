/** Fetches the bytes of attachments. */
import { downloadFile } from '@sluice/kit'
import { AppError, type Attachment, type Host, type Media } from '@sluice/sdk'

/**
 * Implements `Channel.fetchMedia`. The sender of the message controls the URL, so the request carries no token and goes only
 * to public addresses. The platform keeps the file for one hour.
 */
export async function fetchMedia({ publicFetch }: Host, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no URL')
  return downloadFile({
    provider: 'textrelay',
    request: (during) => publicFetch(source.url, { signal: during, responseBytesMax: bytesMax }),
    isAuthorized: false,
    bytesMax,
    signal,
  })
}
