/** Downloads files that users shared. The token goes only to Slack's hosts, which is checked before each redirect. */
import { asUnavailable, downloadFile, followRedirects, mediaType } from '@sluice/kit'
import { members, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './slack-api.ts'

/** See `Channel.fetchMedia`. */
export function fetchMedia(api: SlackApi, attachment: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  return downloadFile({
    provider: 'slack',
    bytesMax,
    signal,
    isAuthorized: true,
    async request(during) {
      const response = await followRedirects(await addressOf(api, attachment, signal), (url) => requestFile(api, url, during))
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

async function requestFile(api: SlackApi, url: string, signal: AbortSignal): Promise<Response> {
  if (!isSlackUrl(url, api.url)) throw new AppError('forbidden', 'The file is not on a host of slack')
  return api.fetch(url, { headers: { authorization: api.authorization('bot_token') }, redirect: 'manual', signal })
}
