/** Downloads files that users shared. The token goes only to Slack's hosts, which is checked before each redirect. */
import { asUnavailable, downloadFile, mediaType } from '@sluice/kit'
import { members, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './slack-api.ts'

const REDIRECTS_MAX = 5
const REDIRECTS = [301, 302, 303, 307, 308]

/** See `Channel.fetchMedia`. */
export function fetchMedia(api: SlackApi, attachment: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  return downloadFile({
    provider: 'slack',
    bytesMax,
    signal,
    isAuthorized: true,
    async request(during) {
      const response = await followRedirects(api, await addressOf(api, attachment, signal), during)
      // Slack answers a token that may not read files with its sign-in page and status 200.
      if (response.ok && mediaType(response.headers) === 'text/html' && attachment.mime !== 'text/html') {
        await response.body?.cancel()
        throw new AppError('forbidden', 'slack returned a web page instead of the file (does the app have the scope files:read?)')
      }
      return response
    },
  })
}

async function addressOf(api: SlackApi, { source }: Attachment, signal: AbortSignal): Promise<string> {
  if ('url' in source) return source.url
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has neither an address nor a file id of slack')
  try {
    const { file } = await api.call('files.info', { file: source.id }, { signal })
    return textAt(members(file), 'url_private_download', 'url_private')
  } catch (error) {
    throw asUnavailable(error)
  }
}

async function followRedirects(api: SlackApi, address: string, signal: AbortSignal): Promise<Response> {
  let url = address
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    if (!isSlackUrl(url, api.url)) throw new AppError('forbidden', 'The file is not on a host of slack')
    const response = await api.fetch(url, { headers: { authorization: api.authorization('bot_token') }, redirect: 'manual', signal })
    const location = response.headers.get('location')
    if (!REDIRECTS.includes(response.status) || location === null) return response
    await response.body?.cancel()
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The file is more than ${REDIRECTS_MAX} redirects away`)
}
