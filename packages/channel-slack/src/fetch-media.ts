/** The bytes of a file somebody shared: the token goes to Slack's hosts alone, at every hop. */

import { readUpTo, signalScope } from '@sluice/kit'
import { members, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Channel, type Host, type Media } from '@sluice/sdk'
import type { SlackConfig } from './config.ts'
import type { SlackApi } from './slack-api.ts'
import { isSlackUrl } from './slack-host.ts'

export interface MediaSource {
  readonly host: Pick<Host, 'fetch'>
  readonly config: Pick<SlackConfig, 'bot_token'>
  readonly api: SlackApi
}

type Options = Parameters<NonNullable<Channel['fetchMedia']>>[1]

const REDIRECTS_MAX = 5
const TIMEOUT_MS = 60_000
const REDIRECTS = [301, 302, 303, 307, 308]

/** See `Channel.fetchMedia`. */
export async function fetchMedia(from: MediaSource, attachment: Attachment, { bytesMax, signal }: Options): Promise<Media> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await follow(from, await addressOf(from, attachment, signal), limit.signal)
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    // Slack shows its sign-in page, with status 200, to tokens that may not read files.
    if (mime === 'text/html' && attachment.mime !== 'text/html') {
      await response.body?.cancel()
      throw new AppError('forbidden', 'slack gave a page instead of the file (does the app have the scope files:read?)')
    }
    const bytes = await readUpTo(response, bytesMax)
    if (!bytes) throw new AppError('too_large', `The file is larger than ${bytesMax} bytes`)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from slack was cut off')
    throw new AppError('unavailable', limit.timedOut ? `slack sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off')
  }
}

async function addressOf({ api }: MediaSource, { source }: Attachment, signal: AbortSignal): Promise<string> {
  if ('url' in source) return source.url
  if (!('id' in source)) throw new AppError('invalid_request', 'slack fetches files of its own messages alone')
  try {
    const { file } = await api.call('files.info', { file: source.id }, { signal })
    return textAt(members(file), 'url_private_download', 'url_private')
  } catch (error) {
    const mayPass = error instanceof AppError && ['rate_limited', 'upstream', 'upstream_timeout'].includes(error.code)
    throw mayPass ? new AppError('unavailable', error.message) : error
  }
}

/** Each hop is checked before it is asked. */
async function follow({ host, config, api }: MediaSource, first: string, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    if (!isSlackUrl(url, api.url)) throw new AppError('forbidden', 'The file is on another host than those of slack')
    const headers = { authorization: `Bearer ${config.bot_token.reveal().trim()}` }
    const response = await host.fetch(url, { headers, redirect: 'manual', signal })
    if (response.ok) return response
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (!REDIRECTS.includes(response.status) || location === null) throw refused(response.status)
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The file is more than ${REDIRECTS_MAX} redirects away`)
}

function refused(status: number): AppError {
  const mayPass = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `slack answered ${status} when asked for a file`)
}
