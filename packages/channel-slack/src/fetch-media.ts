/** Downloads files that users shared. The token goes only to Slack's hosts, which is checked before each redirect. */
import { readUpTo, signalScope } from '@sluice/kit'
import { members, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './slack-api.ts'

const REDIRECTS_MAX = 5
const TIMEOUT_MS = 60_000
const REDIRECTS = [301, 302, 303, 307, 308]

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: SlackApi, attachment: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await download(api, await addressOf(api, attachment, signal), limit.signal)
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    // Slack answers a token that may not read files with its sign-in page and status 200.
    if (mime === 'text/html' && attachment.mime !== 'text/html') {
      await response.body?.cancel()
      throw new AppError('forbidden', 'slack returned a web page instead of the file (does the app have the scope files:read?)')
    }
    const bytes = await readUpTo(response, bytesMax)
    if (!bytes) throw new AppError('too_large', `The file is larger than ${bytesMax} bytes`)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from slack was aborted')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `slack did not send the whole file within ${TIMEOUT_MS / 1000} s` : 'The download from slack broke off',
    )
  }
}

async function addressOf(api: SlackApi, { source }: Attachment, signal: AbortSignal): Promise<string> {
  if ('url' in source) return source.url
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has neither an address nor a file id of slack')
  try {
    const { file } = await api.call('files.info', { file: source.id }, { signal })
    return textAt(members(file), 'url_private_download', 'url_private')
  } catch (error) {
    const isTemporary = error instanceof AppError && ['rate_limited', 'upstream', 'upstream_timeout'].includes(error.code)
    throw isTemporary ? new AppError('unavailable', error.message) : error
  }
}

async function download(api: SlackApi, address: string, signal: AbortSignal): Promise<Response> {
  let url = address
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    if (!isSlackUrl(url, api.url)) throw new AppError('forbidden', 'The file is not on a host of slack')
    const response = await api.fetch(url, { headers: { authorization: api.authorization('bot_token') }, redirect: 'manual', signal })
    if (response.ok) return response
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (!REDIRECTS.includes(response.status) || location === null) throw refused(response.status)
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The file is more than ${REDIRECTS_MAX} redirects away`)
}

function refused(status: number): AppError {
  const isTemporary = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(isTemporary ? 'unavailable' : 'invalid_request', `slack answered ${status} when asked for a file`)
}
