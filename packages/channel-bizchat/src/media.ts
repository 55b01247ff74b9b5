/** Fetches the bytes of attachments. The request carries the API token, so it goes only to the host of `api_url`, on any port. */
import { bearer, downloadFile, followRedirects } from '@sluice/kit'
import { AppError, type Attachment, type Host, type Media, sameOrigin } from '@sluice/sdk'
import type { Api } from './send.ts'

const BYTES_MAX = 26_214_400

/** Implements `Channel.fetchMedia` for files of at most 25 MiB. */
export const fetchMedia = (host: Host, api: Api, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> =>
  downloadFile({
    provider: 'bizchat',
    bytesMax: Math.min(bytesMax, BYTES_MAX),
    signal,
    isAuthorized: true,
    request: (during) => followRedirects('url' in source ? source.url : '', (url) => request(host, api, url, during)),
  })

/**
 * Requests one URL, which must be on the API's host. A URL with the API's own origin is as trusted as `api_url`. On another
 * port the request must not reach a private network, unless the API itself is in one.
 */
async function request(host: Host, api: Api, url: string, signal: AbortSignal): Promise<Response> {
  checkHost(url, api.url)
  const headers = bearer(api.token)
  if (sameOrigin(url, api.url) || (await isPrivate(host, api.url, signal))) return api.fetch(url, { headers, redirect: 'manual', signal })
  return host.publicFetch(url, { headers, signal, responseBytesMax: BYTES_MAX + 1, admit: (hop) => checkHost(hop.href, api.url) })
}

async function isPrivate(host: Host, apiUrl: string, signal: AbortSignal): Promise<boolean> {
  try {
    await host.publicAddresses(new URL(apiUrl).hostname, signal)
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return true
    throw error
  }
}

/** Throws `forbidden` for a URL on another host, with credentials that would replace the token, or over plain HTTP instead of HTTPS. */
function checkHost(text: string, apiUrl: string): void {
  const [url, api] = [URL.parse(text), URL.parse(apiUrl)]
  const isOwn = url !== null && url.hostname === api?.hostname && url.username === '' && url.password === ''
  if (!isOwn || !(url.protocol === api.protocol || url.protocol === 'https:')) {
    throw new AppError('forbidden', 'The attachment is not on the host of api_url')
  }
}
